/* ember/scope.h: scopes own the results of the short forms (ember/short.h), so that an expression is written as one:
 *
 *     em_scope *s = em_scope_begin();
 *     em_tensor *loss = em_cross_entropy_loss(em_linear_with(em_relu(em_linear_with(x, w1, b1)), w2, b2), labels);
 *     em_backward(loss, NULL, 0);
 *     if (em_scope_end(s) != EM_OK) fprintf(stderr, "%s\n", em_error_message());
 *
 * A short form that fails returns NULL, and so does every one that is given NULL where a tensor is needed: the first
 * failure travels to the end, where em_scope_end tells it. Scopes nest; each belongs to the thread that began it. */
#ifndef EMBER_SCOPE_H
#define EMBER_SCOPE_H
#include "types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct em_scope em_scope;

/* Opens a scope in the calling thread. NULL without memory: short forms then fail until em_scope_end(NULL), which says
 * so. */
EM_API em_scope *em_scope_begin(void);
/* Releases what the scope owns and closes it (and scopes inside it that were left open). Returns the first failure of
 * its short forms, whose message is then in the record, or EM_OK. */
EM_API em_status em_scope_end(em_scope *scope);
/* A result that is to outlive its scope: one more reference, the caller's. NULL stays NULL. */
EM_API em_tensor *em_keep(em_tensor *t);

/* The i-th tensor of a list; NULL beyond the last, and so for the empty list that a failure leaves. */
static inline em_tensor *em_list_at(em_tensors list, int64_t i) { return i >= 0 && i < list.n ? list.p[i] : NULL; }

/* What the short forms are made of. em_scope_take hands a new reference to the innermost scope and returns the tensor;
 * after a failure it notes the failure and returns NULL. */
EM_API em_tensor *em_scope_take(em_status status, em_tensor *result);
EM_API em_tensors em_scope_take_list(em_status status, em_tensor_list *result); /* the scope owns the list too */
EM_API em_tensor *em_scope_note(em_status status, em_tensor *written);          /* in-place forms: owns nothing */
/* Calls in a scope that are not operators: `if (em_scope_check(em_backward(loss, NULL, 0)) != EM_OK) ...`. */
EM_API em_status em_scope_check(em_status status);

#ifdef __cplusplus
}
#endif
#endif
