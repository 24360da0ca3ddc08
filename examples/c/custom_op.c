/* custom_op.c: an operator of one's own, softsquare(x, knee) = x^2 / (1 + |x| / knee), with a kernel over raw memory and a
 * derivative made of operators; em_gradcheck compares it, and its own derivative, with differences. */
#include <ember/ember.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void check(em_status st) {
  if (st == EM_OK) return;
  fprintf(stderr, "%s: %s\n", em_status_exception(st), em_error_message());
  exit(1);
}

/* The kernel sees memory: it asks for a contiguous double tensor, and makes another one. */
static em_status kernel(const em_operator *op, uint64_t ks, void *context, const em_value *args, em_value *rets) {
  (void)op, (void)ks, (void)context;
  em_tensor *x = args[0].tensor, *out;
  double knee = args[1].d;
  if (em_tensor_dtype(x) != EM_F64)
    return em_fail(EM_ERR_TYPE, "softsquare(): expected x of float64, got %s", em_dtype_text(em_tensor_dtype(x)));
  if (!(knee > 0)) return em_fail(EM_ERR_VALUE, "softsquare(): knee must be positive, got %g", knee);
  em_status st = em_call_contiguous(x, EM_FORMAT_CONTIGUOUS, &x);
  if (st != EM_OK) return st;
  st = em_tensor_new(em_tensor_ndim(x), em_tensor_sizes(x), EM_F64, em_tensor_device(x), &out);
  if (st == EM_OK) {
    const double *from = em_tensor_data(x);
    double *to = em_tensor_data(out);
    for (int64_t i = 0; i < em_tensor_numel(x); i++) to[i] = from[i] * from[i] / (1 + fabs(from[i]) / knee);
    rets[0] = em_value_tensor_steal(out);
  }
  em_tensor_release(x);
  return st;
}

/* x (2 + |x| / knee) / (1 + |x| / knee)^2, times the gradient: with operators, so that it can be differentiated again. */
static em_status backward(void *context, const em_value *args, em_tensor *const *results, em_tensor *const *grads,
                          const bool *wanted, em_tensor **grad_args) {
  (void)context, (void)results;
  if (!wanted[0]) return EM_OK;
  em_scope *s = em_scope_begin();
  em_tensor *x = args[0].tensor, *part = em_div_Scalar(em_abs(x), em_scalar_double(args[1].d));
  em_tensor *above = em_mul(x, em_add_Scalar(part, em_scalar_int(2)));
  em_tensor *below = em_square(em_add_Scalar(part, em_scalar_int(1)));
  grad_args[0] = em_keep(em_mul(grads[0], em_div(above, below)));
  return em_scope_end(s);
}

static em_operator *softsquare;

/* The operator as a function: its result belongs to the current scope. */
static em_tensor *call(em_tensor *x, double knee) {
  em_value args[] = {em_value_tensor(x), em_value_double(knee)}, ret = em_value_none();
  em_status st = em_call_boxed(softsquare, args, &ret);
  return em_scope_take(st, st == EM_OK ? ret.tensor : NULL);
}

/* What is checked against differences: the operator, and its slope. */
static em_status value(void *knee, em_tensor *const *inputs, int64_t n, em_tensor **out) {
  (void)n;
  *out = em_keep(call(inputs[0], *(double *)knee));
  return EM_OK;
}
static em_status slope(void *knee, em_tensor *const *inputs, int64_t n, em_tensor **out) {
  (void)n;
  em_tensor *sum = em_sum(call(inputs[0], *(double *)knee));
  return em_grad(&sum, NULL, 1, inputs, 1, EM_CREATE_GRAPH, out);
}

int main(void) {
  check(em_operator_define("example::softsquare(Tensor x, float knee=1.0) -> Tensor", &softsquare));
  check(em_operator_set_kernel(softsquare, EM_DEVICE_CPU, kernel, NULL, NULL));
  check(em_operator_set_derivative(softsquare, backward, NULL, NULL));

  em_manual_seed(0);
  double knee = 1.5;
  em_scope *s = em_scope_begin();
  em_tensor *x = em_randn_with(EM_INTS(5), EM_F64, -1, EM_DEVICE_NONE, -1);
  check(em_tensor_set_requires_grad(x, true));
  check(em_gradcheck(value, &knee, &x, 1, 1e-6, 1e-5, 1e-3));
  check(em_gradcheck(slope, &knee, &x, 1, 1e-6, 1e-5, 1e-3));
  char text[500];
  check(em_tensor_text(call(x, knee), text, sizeof text));
  printf("softsquare: %s\nslope and curvature agree with differences\n", text);
  check(em_scope_end(s));

  s = em_scope_begin();
  call(em_ones(EM_INTS(2)), 1.5); /* float32: the kernel refuses, the scope remembers */
  if (em_scope_end(s) != EM_ERR_TYPE) return 1;
  printf("and float32 is refused: %s\n", em_error_message());
  return 0;
}
