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
#include <ember/error.h>

#define EM_LIKELY(x) __builtin_expect(!!(x), 1)
#define EM_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define EM_PRIV EM_API  // em_*, em_priv_*: seen by the bridge

// em_fail fills the calling thread's record and returns `code`, so that callers write `return em_fail(...)`; the message
// starts with PyTorch's words where they are well known. It never fails itself: without memory the record holds a fixed text.
// Names the operator in the record of the failure in flight, once (the innermost operator wins). Returns `code`.
EM_PRIV em_status em_fail_operator(em_status code, const char *op) __attribute__((cold));
// A warning for the user. The bridge installs a handler that raises Python's UserWarning; in a C program the default
// prints to stderr once per distinct text. The handler may return EM_ERR_FOREIGN (warnings turned into errors).
EM_PRIV em_status em_warn(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

// A failure that a scope of this thread remembers (src/api/scope.c). While there is one, a NULL where a handle must be is its
// consequence, and the first failure is what the user has to read.
typedef struct em_failure { em_status code; const char *op; char message[1024]; } em_failure;
EM_PRIV void em_priv_set_pending(const em_failure *f);  // borrowed; NULL: there is none
EM_PRIV em_status em_priv_pending(void);                // reports it again; EM_OK if there is none
// "em_backward(): the root is NULL", or the failure that it came from.
EM_PRIV em_status em_fail_null(const char *who, const char *what) __attribute__((cold));
EM_PRIV em_status em_fail_null_entry(const char *who, const char *what, int64_t i) __attribute__((cold));  // "input 1 is NULL"

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
