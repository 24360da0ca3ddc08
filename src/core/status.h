// status.h: how every fallible function reports: a code is returned, results go to out-parameters, and the message
// waits in a thread-local record until somebody reads or clears it. No longjmp, no exit, no abort.
//
// Pattern of a function that owns things:
//     em_status st = EM_OK; em_tensor *t = NULL;
//     EM_TRY(em_call_mul(a, b, &t));
//     ...
//   fail:
//     em_tensor_release(t);
//     return st;
#ifndef EMBER_CORE_STATUS_H
#define EMBER_CORE_STATUS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EM_LIKELY(x) __builtin_expect(!!(x), 1)
#define EM_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define EM_PRIV __attribute__((visibility("default")))  // em_*, em_priv_*: seen by the bridge
#define EM_MUST_CHECK __attribute__((warn_unused_result))

// code, Python exception class, text for logs
#define EM_STATUS_LIST(X)                                          \
  X(EM_ERR_RUNTIME, "RuntimeError", "runtime error")               \
  X(EM_ERR_TYPE, "TypeError", "wrong type")                        \
  X(EM_ERR_VALUE, "ValueError", "wrong value")                     \
  X(EM_ERR_INDEX, "IndexError", "index out of range")              \
  X(EM_ERR_NOT_IMPLEMENTED, "NotImplementedError", "not implemented") \
  X(EM_ERR_OOM, "OutOfMemoryError", "out of memory")               \
  X(EM_ERR_OVERFLOW, "OverflowError", "overflow")                  \
  X(EM_ERR_ZERO_DIVISION, "ZeroDivisionError", "division by zero") \
  X(EM_ERR_ATTRIBUTE, "AttributeError", "no such attribute")       \
  X(EM_ERR_LINALG, "LinAlgError", "linear algebra failed")         \
  X(EM_ERR_FOREIGN, "", "an exception of the host language is pending") \
  X(EM_ERR_INTERNAL, "RuntimeError", "a bug in Ember, please report")

typedef enum em_status {
  EM_OK = 0,
#define X(code, exc, text) code,
  EM_STATUS_LIST(X)
#undef X
  EM_STATUS_COUNT
} em_status;

// Fills the calling thread's error record and returns `code`, so that callers write `return em_fail(...)`.
// The message starts with PyTorch's words where they are well known; detail follows. Never fails itself:
// without memory the record holds a fixed text.
EM_PRIV em_status em_fail(em_status code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
// Names the operator in the record of the failure in flight, once (the innermost operator wins). Returns `code`.
EM_PRIV em_status em_fail_operator(em_status code, const char *op) __attribute__((cold));
// The record: message text (never NULL), operator name or NULL, code. Valid until the thread's next em_fail.
EM_PRIV const char *em_error_message(void);
EM_PRIV const char *em_error_operator(void);
EM_PRIV em_status em_error_code(void);
EM_PRIV void em_error_clear(void);
// The Python exception class's name for a code.
EM_PRIV const char *em_status_exception(em_status code);

// A warning for the user. The bridge installs a handler that raises Python's UserWarning; in a C program the default
// prints to stderr once per distinct text. The handler may return EM_ERR_FOREIGN (warnings turned into errors).
typedef em_status (*em_warn_fn)(const char *message);
EM_PRIV void em_priv_set_warn_handler(em_warn_fn fn);
EM_PRIV em_status em_warn(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

#define EM_TRY(call)                                    \
  do {                                                  \
    if (EM_UNLIKELY((st = (call)) != EM_OK)) goto fail; \
  } while (0)
#define EM_FAIL(...)          \
  do {                        \
    st = em_fail(__VA_ARGS__); \
    goto fail;                \
  } while (0)
// for functions that own nothing
#define EM_PASS(call)                                 \
  do {                                                \
    em_status em_st_ = (call);                        \
    if (EM_UNLIKELY(em_st_ != EM_OK)) return em_st_;  \
  } while (0)
#endif
