// status.c: the thread's error record and the warning channel.
#include "status.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gen_keys.h"
#include "tls.h"

// Every thread starts with Alias included, as inference tensors do not carry it: their writes outside inference mode must be seen.
_Thread_local em_tls em_priv_tls __attribute__((tls_model("initial-exec"))) = {.include = EM_KEYBIT(EM_KEY_Alias)};

typedef struct em_error_record {
  em_status code;
  const char *op;      // static or interned for the process's life
  char message[3072];
} em_error_record;

static pthread_key_t record_key;
static pthread_once_t record_once = PTHREAD_ONCE_INIT;
static void record_make_key(void) { (void)pthread_key_create(&record_key, free); }

// The record is plain malloc: an error about failing allocations must not depend on the allocator that fails.
static em_error_record *record_get(void) {
  em_error_record *r = em_priv_tls.error;
  if (r == NULL) {
    pthread_once(&record_once, record_make_key);
    r = calloc(1, sizeof *r);
    if (r == NULL) return NULL;
    em_priv_tls.error = r;
    pthread_setspecific(record_key, r);
  }
  return r;
}

em_status em_fail(em_status code, const char *format, ...) {
  em_error_record *r = record_get();
  if (r == NULL) return code;
  va_list ap;
  va_start(ap, format);
  vsnprintf(r->message, sizeof r->message, format, ap);
  va_end(ap);
  r->code = code;
  r->op = NULL;
  return code;
}
em_status em_fail_operator(em_status code, const char *op) {
  em_error_record *r = em_priv_tls.error;
  if (r != NULL && r->op == NULL && code != EM_ERR_FOREIGN) r->op = op;
  return code;
}
void em_priv_set_pending(const em_failure *f) { em_priv_tls.pending = f; }
em_status em_priv_pending(void) {
  const em_failure *f = em_priv_tls.pending;
  if (f == NULL) return EM_OK;
  em_status st = em_fail(f->code, "%s", f->message);
  return f->op == NULL ? st : em_fail_operator(st, f->op);
}
em_status em_fail_null(const char *who, const char *what) {
  EM_PASS(em_priv_pending());
  return em_fail(EM_ERR_TYPE, "%s(): the %s is NULL", who, what);
}
em_status em_fail_null_entry(const char *who, const char *what, int64_t i) {
  EM_PASS(em_priv_pending());
  return em_fail(EM_ERR_TYPE, "%s(): %s %lld is NULL", who, what, (long long)i);
}
const char *em_error_message(void) {
  em_error_record *r = em_priv_tls.error;
  return r == NULL ? "out of memory (and none left to say where)" : r->message;
}
const char *em_error_operator(void) { return em_priv_tls.error == NULL ? NULL : em_priv_tls.error->op; }
em_status em_error_code(void) { return em_priv_tls.error == NULL ? EM_OK : em_priv_tls.error->code; }
void em_error_clear(void) {
  em_error_record *r = em_priv_tls.error;
  if (r != NULL) {
    r->code = EM_OK;
    r->op = NULL;
    r->message[0] = 0;
  }
}
const char *em_status_exception(em_status code) {
  static const char *const names[EM_STATUS_COUNT] = {
      [EM_OK] = "",
      [EM_ERR_RUNTIME] = "RuntimeError",
      [EM_ERR_TYPE] = "TypeError",
      [EM_ERR_VALUE] = "ValueError",
      [EM_ERR_INDEX] = "IndexError",
      [EM_ERR_NOT_IMPLEMENTED] = "NotImplementedError",
      [EM_ERR_OOM] = "OutOfMemoryError",
      [EM_ERR_OVERFLOW] = "OverflowError",
      [EM_ERR_ZERO_DIVISION] = "ZeroDivisionError",
      [EM_ERR_ATTRIBUTE] = "AttributeError",
      [EM_ERR_LINALG] = "LinAlgError",
      [EM_ERR_FOREIGN] = "",
      [EM_ERR_INTERNAL] = "RuntimeError",
  };
  return (unsigned)code < EM_STATUS_COUNT ? names[code] : "RuntimeError";
}

static em_status warn_to_stderr(const char *message) {
  static char last[256];  // enough to keep one text from scrolling; a torn read only prints twice
  if (strncmp(last, message, sizeof last - 1) != 0) {
    strncpy(last, message, sizeof last - 1);
    fprintf(stderr, "ember: warning: %s\n", message);
  }
  return EM_OK;
}
static em_warn_fn warn_handler = warn_to_stderr;
void em_warn_set_handler(em_warn_fn fn) { warn_handler = fn == NULL ? warn_to_stderr : fn; }
em_status em_warn(const char *format, ...) {
  char text[2048];
  va_list ap;
  va_start(ap, format);
  vsnprintf(text, sizeof text, format, ap);
  va_end(ap);
  return warn_handler(text);
}
