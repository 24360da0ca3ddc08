// test_gradcheck.c: em_gradcheck finds what is wrong and passes what is right; em_tensor_text prints as PyTorch does.
#include <ember/ember.h>
#include <math.h>
#include <string.h>
#include "check.h"

static em_status product(void *context, em_tensor *const *in, int64_t n, em_tensor **out) {
  (void)context, (void)n;
  *out = em_keep(em_mm(em_sin(in[0]), in[1]));
  return EM_OK;
}
// Its second input plays a part that the graph does not record, where *context is 1.
static em_status partly(void *context, em_tensor *const *in, int64_t n, em_tensor **out) {
  (void)n;
  em_tensor *b = em_mul(in[1], in[1]);
  *out = em_keep(em_add(em_mul(in[0], in[0]), *(int *)context ? em_detach(b) : b));
  return EM_OK;
}
static em_status refuses(void *context, em_tensor *const *in, int64_t n, em_tensor **out) {
  (void)context, (void)n, (void)out;
  em_mm(in[0], in[0]);  // fails; the scope remembers
  return EM_OK;
}
static em_status forgets(void *context, em_tensor *const *in, int64_t n, em_tensor **out) {
  (void)context, (void)in, (void)n;
  *out = NULL;
  return EM_OK;
}
static em_status constant(void *context, em_tensor *const *in, int64_t n, em_tensor **out) {
  (void)context, (void)n;
  *out = em_keep(em_detach(in[0]));
  return EM_OK;
}

static em_tensor *doubles(em_ints sizes) { return em_randn_with(sizes, EM_F64, -1, EM_DEVICE_NONE, -1); }

static void gradchecks(void) {
  em_scope *s = em_scope_begin();
  em_tensor *turned = doubles(EM_INTS(3, 2)), *in[2] = {em_t(turned), doubles(EM_INTS(3, 2))}, *same[2];
  in[0] = em_detach(in[0]);  // a leaf with strides of its own
  for (int i = 0; i < 2; i++) CHECK_OK(em_tensor_set_requires_grad(in[i], true));
  double before[6], after[6];
  CHECK_OK(em_tensor_read(in[0], EM_F64, before, sizeof before));
  CHECK_OK(em_gradcheck(product, NULL, in, 2, 1e-6, 1e-5, 1e-3));
  CHECK_OK(em_tensor_read(in[0], EM_F64, after, sizeof after));
  CHECK(memcmp(before, after, sizeof before) == 0);

  int wrong = 0;
  for (int i = 0; i < 2; i++) {
    same[i] = em_full_with(EM_INTS(2, 2), em_scalar_double(3), EM_F64, -1, EM_DEVICE_NONE, -1);
    CHECK_OK(em_tensor_set_requires_grad(same[i], true));
  }
  CHECK_OK(em_gradcheck(partly, &wrong, same, 2, 1e-6, 1e-5, 1e-3));
  wrong = 1;
  CHECK(em_gradcheck(partly, &wrong, same, 2, 1e-6, 1e-5, 1e-3) == EM_ERR_RUNTIME);
  CHECK(strstr(em_error_message(), "input 1, element [0, 0] (result element [0, 0]): backward gives 0, differences give ") != NULL);
  CHECK(fabs(atof(strstr(em_error_message(), "give ") + 5) - 6) < 1e-6);

  CHECK(em_gradcheck(refuses, NULL, in, 2, 1e-6, 1e-5, 1e-3) == EM_ERR_RUNTIME && strstr(em_error_message(), "mat1 and mat2"));
  CHECK(em_gradcheck(forgets, NULL, in, 2, 1e-6, 1e-5, 1e-3) == EM_ERR_TYPE);
  CHECK(em_gradcheck(constant, NULL, in, 2, 1e-6, 1e-5, 1e-3) == EM_ERR_VALUE);
  CHECK(em_gradcheck(NULL, NULL, in, 2, 1e-6, 1e-5, 1e-3) == EM_ERR_TYPE);
  CHECK(em_gradcheck(product, NULL, NULL, 2, 1e-6, 1e-5, 1e-3) == EM_ERR_TYPE);
  CHECK(em_gradcheck(product, NULL, in, 0, 1e-6, 1e-5, 1e-3) == EM_ERR_VALUE);
  CHECK(em_gradcheck(product, NULL, in, 2, NAN, 1e-5, 1e-3) == EM_ERR_VALUE);
  em_tensor *single = em_ones(EM_INTS(2)), *wide;
  CHECK(em_gradcheck(constant, NULL, &single, 1, 1e-6, 1e-5, 1e-3) == EM_ERR_VALUE && strstr(em_error_message(), "no input"));
  CHECK_OK(em_tensor_set_requires_grad(single, true));
  CHECK(em_gradcheck(constant, NULL, &single, 1, 1e-6, 1e-5, 1e-3) == EM_ERR_VALUE && strstr(em_error_message(), "float32"));
  wide = em_detach(em_expand(doubles(EM_INTS(1)), EM_INTS(4)));
  CHECK_OK(em_tensor_set_requires_grad(wide, true));
  CHECK(em_gradcheck(constant, NULL, &wide, 1, 1e-6, 1e-5, 1e-3) == EM_ERR_VALUE && strstr(em_error_message(), "expanded"));
  CHECK_OK(em_scope_end(s));
}

// What PyTorch 2.13 prints for the same tensors.
static void prints(em_tensor *t, const char *expected) {
  char text[8192];
  CHECK_OK(em_tensor_text(t, text, sizeof text));
  if (strcmp(text, expected) == 0) return;
  fprintf(stderr, "printed:\n%s\nexpected:\n%s\n", text, expected);
  check_failures++;
}
static em_tensor *of(const double *values, int64_t n) {
  em_tensor *t = NULL;
  CHECK_OK(em_tensor_from_data(values, EM_F64, 1, &n, &t));
  return em_to_dtype(em_scope_take(EM_OK, t), EM_F32);
}
#define OF(...) of((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static void texts(void) {
  em_scope *s = em_scope_begin();
  prints(OF(1, 2, 3), "tensor([1., 2., 3.])");
  prints(OF(1.5, -2.25, 0), "tensor([ 1.5000, -2.2500,  0.0000])");
  prints(OF(1e-5, 1, 1e5), "tensor([1.0000e-05, 1.0000e+00, 1.0000e+05])");
  prints(OF(NAN, INFINITY, -1), "tensor([nan, inf, -1.])");
  prints(em_full((em_ints){NULL, 0}, em_scalar_double(2.5)), "tensor(2.5000)");
  prints(em_arange(em_scalar_int(3)), "tensor([0, 1, 2])");
  prints(em_reshape(em_arange(em_scalar_int(12)), EM_INTS(2, 2, 3)),
         "tensor([[[ 0,  1,  2],\n         [ 3,  4,  5]],\n\n        [[ 6,  7,  8],\n         [ 9, 10, 11]]])");
  prints(em_gt_Scalar(OF(1, -1), em_scalar_int(0)), "tensor([ True, False])");
  prints(em_t(em_reshape(OF(1, 2, 3, 4), EM_INTS(2, 2))), "tensor([[1., 3.],\n        [2., 4.]])");
  prints(em_to_dtype(OF(1.5, 2), EM_F64), "tensor([1.5000, 2.0000], dtype=torch.float64)");
  prints(em_zeros(EM_INTS(0, 3)), "tensor([], size=(0, 3))");
  prints(em_complex(OF(1, -2), OF(-1, 20)), "tensor([ 1.-1.j, -2.+20.j])");
  prints(em_arange(em_scalar_int(2000)), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])");
  prints(em_zeros_with(EM_INTS(2, 3), EM_I32, -1, (em_device){EM_DEVICE_META, -1}, -1),
         "tensor(..., device='meta', size=(2, 3), dtype=torch.int32)");
  em_tensor *leaf = OF(1, 2);
  CHECK_OK(em_tensor_set_requires_grad(leaf, true));
  prints(leaf, "tensor([1., 2.], requires_grad=True)");
  prints(em_mul(leaf, leaf), "tensor([1., 4.], grad_fn=<MulBackward0>)");
  char small[8];
  CHECK(em_tensor_text(leaf, small, sizeof small) == EM_ERR_VALUE && strcmp(small, "tensor(") == 0);
  CHECK(em_tensor_text(NULL, small, sizeof small) == EM_ERR_TYPE && em_tensor_text(leaf, NULL, 4) == EM_ERR_TYPE);
  CHECK_OK(em_scope_end(s));
}

int main(void) {
  em_manual_seed(0);
  gradchecks();
  texts();
  CHECK(em_live_tensors() == 0);
  CHECK_DONE();
}
