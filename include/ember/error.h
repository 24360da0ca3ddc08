/* ember/error.h: what went wrong, and the warnings. */
#ifndef EMBER_ERROR_H
#define EMBER_ERROR_H
#include "types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The calling thread's last failure: the message (never NULL), the operator that failed or NULL, the code. The texts are
 * valid until the thread's next failure. */
EM_API const char *em_error_message(void);
EM_API const char *em_error_operator(void);
EM_API em_status em_error_code(void);
EM_API void em_error_clear(void);

/* Fills the record and returns `code`: kernels and hooks of your own write `return em_fail(EM_ERR_VALUE, "...", ...)`. */
EM_API em_status em_fail(em_status code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Python's name of the exception that a code is: "ValueError". Static storage. */
EM_API const char *em_status_exception(em_status code);

/* Replaces what happens to a warning (it is printed to stderr, once a text). The handler may return a status other than
 * EM_OK, which then is the failure of the call that warned. NULL puts the default back. */
typedef em_status (*em_warn_fn)(const char *message);
EM_API void em_warn_set_handler(em_warn_fn handler);

#ifdef __cplusplus
}
#endif
#endif
