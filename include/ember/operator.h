/* ember/operator.h: the operator table: calling by name, and operators of your own, with kernels and a derivative.
 *
 *     em_operator *op;
 *     em_operator_define("mine::cube(Tensor x) -> Tensor", &op);
 *     em_operator_set_kernel(op, EM_DEVICE_CPU, cube, NULL, NULL);
 *     em_operator_set_derivative(op, cube_backward, NULL, NULL);
 *
 * Python sees it as ember.ops.mine.cube. Definitions are not thread-safe against calls of the same operator. */
#ifndef EMBER_OPERATOR_H
#define EMBER_OPERATOR_H
#include "value.h"
#ifdef __cplusplus
extern "C" {
#endif

/* A kernel: args has em_operator_arg_count() borrowed values, the defaults filled in; it fills rets (all EM_TAG_NONE at
 * first) with new references. In-place and out= operators return the arguments they wrote. ks is the set of layers that
 * were not passed yet; kernels of devices ignore it. */
typedef em_status (*em_boxed_fn)(const em_operator *op, uint64_t ks, void *context, const em_value *args, em_value *rets);

/* NULL if there is none. overload "" is the default one: em_operator_find("aten", "add", "Tensor"). */
EM_API em_operator *em_operator_find(const char *ns, const char *name, const char *overload);
EM_API size_t em_operator_count(void);
EM_API em_operator *em_operator_at(size_t i); /* 0 to count - 1, in the table's order; NULL beyond */
EM_API const char *em_operator_schema(const em_operator *op); /* "add.Tensor(Tensor self, Tensor other, *, ..." */
EM_API int em_operator_arg_count(const em_operator *op);
EM_API int em_operator_return_count(const em_operator *op);

/* Calls any operator: args as for a kernel; results are new references. */
EM_API EM_MUST_CHECK em_status em_call_boxed(const em_operator *op, const em_value *args, em_value *rets);

/* A new operator from PyTorch's schema language, "namespace::name.overload(arguments) -> returns". It lives as long as the
 * process. Errors: EM_ERR_RUNTIME with the position in a bad schema, or when the name is taken. */
EM_API EM_MUST_CHECK em_status em_operator_define(const char *schema, em_operator **out);

/* The kernel for a kind of device (em_device_type); NULL `fn` removes it. EM_DEVICE_META: shapes without data. It replaces
 * the built-in one, for the operators that have one. release(context) runs when it is replaced. */
EM_API EM_MUST_CHECK em_status em_operator_set_kernel(em_operator *op, int device_type, em_boxed_fn fn, void *context,
                                                      void (*release)(void *));

/* The derivative of an operator of your own whose arguments are not written. `args` and `results` are what the call had;
 * grads: the gradients of its results (NULL: zero). For each Tensor argument i with wanted[i], grad_args[i] may receive a
 * new reference: the gradient, of the argument's shape or one that sums to it (NULL: zero). Written with operators, it can
 * be differentiated again. */
typedef em_status (*em_derivative_fn)(void *context, const em_value *args, em_tensor *const *results,
                                      em_tensor *const *grads, const bool *wanted, em_tensor **grad_args);
/* Errors: EM_ERR_RUNTIME for built-in operators and for those that write an argument or take or return lists of tensors. */
EM_API EM_MUST_CHECK em_status em_operator_set_derivative(em_operator *op, em_derivative_fn fn, void *context,
                                                          void (*release)(void *));

#ifdef __cplusplus
}
#endif
#endif
