// test_training.c: what stands around a training loop in C: first values, clipped gradients, schedules, the state of
// optimizers, and what a program is told when its expression failed. The numbers are PyTorch 2.13's (tests/data/make_golden.py
// wrote adamw_resume.pt).
#include <ember/ember.h>
#include <math.h>
#include <string.h>
#include "check.h"

static bool near(double got, double want, double tol) {
  if (fabs(got - want) <= tol * (1 + fabs(want))) return true;
  fprintf(stderr, "%.17g, not %.17g\n", got, want);
  return false;
}

enum filler { UNIFORM, NORMAL, TRUNC, CONSTANT, XAVIER_UNIFORM, XAVIER_NORMAL, KAIMING_UNIFORM, KAIMING_NORMAL, FILLERS };
static em_tensor *fill(enum filler which, em_tensor *t, em_generator *g) {
  switch (which) {
    case UNIFORM: return em_init_uniform_(t, -2, 3, g);
    case NORMAL: return em_init_normal_(t, 1, 0.5, g);
    case TRUNC: return em_init_trunc_normal_(t, 0.5, 1, 0, 1.25, g);
    case CONSTANT: return em_init_constant_(t, 2.5);
    case XAVIER_UNIFORM: return em_init_xavier_uniform_(t, 2, g);
    case XAVIER_NORMAL: return em_init_xavier_normal_(t, 2, g);
    case KAIMING_UNIFORM: return em_init_kaiming_uniform_(t, em_init_gain("leaky_relu", sqrt(5)), EM_FAN_IN, g);
    default: return em_init_kaiming_normal_(t, em_init_gain("relu", 0), EM_FAN_OUT, g);
  }
}

static void first_values(void) {
  static const double want[FILLERS][3] = {  // the first and the last of [4, 3, 2] after manual_seed(3), and the sum
      {-1.9786823987960815, -1.939456582069397, 6.695313274860382}, {0.9616778492927551, 0.9453782439231873, 25.70808917284012},
      {0.42335569858551025, 0.3907564878463745, 16.423026233911514}, {2.5, 2.5, 60},
      {-1.2981427907943726, -1.2775993347167969, -2.7781861647963524},
      {-0.05793764069676399, -0.0825803354382515, 2.582388495095074},
      {-0.40476715564727783, -0.39836159348487854, -0.8662517443299294},
      {-0.038322146981954575, -0.05462175980210304, 1.7080894759856164}};
  em_generator *g = em_generator_new();
  for (int i = 0; i < FILLERS; i++) {
    em_scope *s = em_scope_begin();
    double got[24], sum = 0, other[24];
    em_manual_seed(3);
    em_generator_seed(g, 3);
    em_tensor *t = em_requires_grad_(em_empty(EM_INTS(4, 3, 2))), *own = em_empty(EM_INTS(4, 3, 2));
    CHECK(fill((enum filler)i, t, NULL) == t && fill((enum filler)i, own, g) == own);
    CHECK(em_tensor_is_leaf(t) && em_tensor_requires_grad(t));  // nothing was recorded
    CHECK_OK(em_tensor_read(t, EM_F64, got, sizeof got));
    CHECK_OK(em_tensor_read(own, EM_F64, other, sizeof other));
    for (int k = 0; k < 24; k++) sum += got[k];
    CHECK(near(got[0], want[i][0], 1e-7) && near(got[23], want[i][1], 1e-7) && near(sum, want[i][2], 1e-6));
    CHECK(memcmp(got, other, sizeof got) == 0);
    CHECK_OK(em_scope_end(s));
  }
  em_generator_release(g);

  em_scope *s = em_scope_begin();
  em_tensor *far = em_init_trunc_normal_(em_empty(EM_INTS(50)), 0, 1, 5.5, 6, NULL);  // by quantiles: chance will not get there
  double got[50];
  CHECK_OK(em_tensor_read(far, EM_F64, got, sizeof got));
  for (int i = 0; i < 50; i++) CHECK(got[i] >= 5.5 && got[i] <= 6);
  CHECK(em_init_kaiming_normal_(em_empty(EM_INTS(0, 3)), 1, EM_FAN_IN, NULL) != NULL);
  CHECK_OK(em_scope_end(s));
  for (int i = 0; i < 4; i++) {  // each refusal is the scope's
    s = em_scope_begin();
    em_tensor *line = em_empty(EM_INTS(3)), *square = em_empty(EM_INTS(3, 3));
    CHECK((i == 0   ? em_init_xavier_normal_(line, 1, NULL)
           : i == 1 ? em_init_kaiming_uniform_(line, 1, EM_FAN_IN, NULL)
           : i == 2 ? em_init_kaiming_normal_(square, 1, (em_fan)7, NULL)
                    : em_init_trunc_normal_(square, 0, -1, 0, 1, NULL)) == NULL);
    CHECK(em_scope_end(s) == EM_ERR_VALUE);
  }
  CHECK(em_init_gain("conv2d", 0) == 1 && near(em_init_gain("tanh", 0), 5.0 / 3, 1e-15) && em_init_gain("selu", 0) == 0.75);
  CHECK(isnan(em_init_gain("swish", 0)) && strcmp(em_error_message(), "Unsupported nonlinearity swish") == 0);
  CHECK(isnan(em_init_gain(NULL, 0)));
}

static void schedules(void) {
  static const double step[] = {0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025};
  static const double linear[] = {0.025, 0.04375, 0.0625, 0.08125, 0.1, 0.1, 0.1};
  static const double cosine[] = {0.1, 0.09779754323328192, 0.09140576474687263, 0.08145033635316129, 0.06890576474687264, 0.055,
                                  0.04109423525312737, 0.028549663646838717, 0.01859423525312737, 0.012202456766718092, 0.01};
  static const double one[] = {0.02, 0.26, 0.5, 0.47524231600673683, 0.40587282697488153, 0.30563101096814466,
                               0.19437098903185537, 0.09412917302511849, 0.024759683993263143, 2e-06};
  static const double momentum[] = {0.95, 0.9, 0.85, 0.854951556604879, 0.8688255099070633, 0.8888739533021842,
                                    0.9111260466978157, 0.9311744900929366, 0.945048443395121, 0.95};
  for (int i = 0; i < 8; i++) CHECK(near(em_lr_step(0.1, i, 3, 0.5), step[i], 1e-14));
  for (int i = 0; i < 7; i++) CHECK(near(em_lr_linear(0.1, i, 0.25, 1, 4), linear[i], 1e-14));
  for (int i = 0; i < 11; i++) CHECK(near(em_lr_cosine(0.1, i, 10, 0.01), cosine[i], 1e-14));
  for (int i = 0; i < 10; i++) {
    CHECK(near(em_lr_one_cycle(0.5, i, 10), one[i], 1e-14));
    CHECK(near(em_momentum_one_cycle(i, 10), momentum[i], 1e-14));
  }
  CHECK(near(em_lr_exponential(0.1, 4, 0.9), 0.06561, 1e-14));
  CHECK(isnan(em_lr_step(0.1, 1, 0, 0.5)) && isnan(em_lr_linear(0.1, 1, 0, 1, 0)) && isnan(em_lr_cosine(0.1, 1, 0, 0)));
  CHECK(isnan(em_lr_one_cycle(0.5, 10, 10)) && isnan(em_lr_one_cycle(0.5, -1, 10)) && isnan(em_momentum_one_cycle(0, 0)));
  for (int total = 1; total < 6; total++)
    for (int i = 0; i < total; i++) CHECK(isfinite(em_lr_one_cycle(1, i, total)));
}

static em_tensor *with_grad(const float *grad, int ndim, const int64_t *sizes) {
  em_tensor *zero, *g;
  CHECK_OK(em_call_zeros(EM_LIST(em_ints, sizes, ndim), EM_F32, -1, EM_DEVICE_NONE, -1, &zero));
  CHECK_OK(em_tensor_set_requires_grad(zero, true));
  CHECK_OK(em_tensor_from_data(grad, EM_F32, ndim, sizes, &g));
  CHECK_OK(em_tensor_set_grad(zero, g));
  em_tensor_release(g);
  return zero;
}

static void clipping(void) {
  static const float of_a[] = {3, -4, 0.5}, of_b[] = {1, 2, -12, 0};
  static const struct { double most, type, total, a0, b2; } cases[] = {{1, 2, 13.20037841796875, 0.22726619243621826, -0.909064769744873},
      {100, 2, 13.20037841796875, 3, -12}, {0.5, INFINITY, 12, 0.1249999925494194, -0.4999999701976776},
      {2, 1, 22.5, 0.2666666507720947, -1.066666603088379}};
  double a[3], b[4], total;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    em_tensor *p[3] = {with_grad(of_a, 1, (const int64_t[]){3}), with_grad(of_b, 2, (const int64_t[]){2, 2}), NULL}, *grad;
    CHECK_OK(em_call_zeros(EM_INTS(2), EM_F32, -1, EM_DEVICE_NONE, -1, &p[2]));  // has no gradient
    CHECK_OK(em_clip_grad_norm(p, 3, cases[i].most, cases[i].type, &total));
    CHECK(total == cases[i].total);
    CHECK_OK(em_tensor_grad(p[0], &grad));
    CHECK_OK(em_tensor_read(grad, EM_F64, a, sizeof a));
    CHECK_OK(em_tensor_grad(p[1], &grad));
    CHECK_OK(em_tensor_read(grad, EM_F64, b, sizeof b));
    CHECK(a[0] == cases[i].a0 && b[2] == cases[i].b2);
    CHECK_OK(em_clip_grad_value(p, 3, 0.125));
    CHECK_OK(em_tensor_read(grad, EM_F64, b, sizeof b));
    CHECK(b[2] == -0.125 && b[3] == 0);
    em_tensor *gap[2] = {p[0], NULL};
    CHECK(em_clip_grad_norm(gap, 2, 1, 2, NULL) == EM_ERR_TYPE && em_clip_grad_value(gap, 2, 1) == EM_ERR_TYPE);
    CHECK(em_clip_grad_norm(NULL, 1, 1, 2, NULL) == EM_ERR_TYPE && em_clip_grad_norm(p, 3, NAN, 2, NULL) == EM_ERR_VALUE);
    for (int k = 0; k < 3; k++) em_tensor_release(p[k]);
  }
  CHECK_OK(em_clip_grad_norm(NULL, 0, 1, 2, &total));
  CHECK(total == 0);
}

// sum(w^2) * sum(u): one step.
static void one_step(em_optimizer *o, em_tensor *w, em_tensor *u) {
  em_scope *s = em_scope_begin();
  CHECK_OK(em_optimizer_zero_grad(o));
  CHECK_OK(em_backward(em_mul(em_sum(em_square(w)), em_sum(u)), NULL, 0));
  CHECK_OK(em_optimizer_step(o));
  CHECK_OK(em_scope_end(s));
}
static void start(em_tensor **w) {
  CHECK_OK(em_tensor_from_data((const float[]){1, 2, 3}, EM_F32, 1, (const int64_t[]){3}, &w[0]));
  CHECK_OK(em_tensor_from_data((const float[]){0.5, 0.25}, EM_F32, 2, (const int64_t[]){2, 1}, &w[1]));
  for (int i = 0; i < 2; i++) CHECK_OK(em_tensor_set_requires_grad(w[i], true));
}
static bool resumed(em_tensor *const *w) {  // five steps of AdamW, where PyTorch is
  double v[3], u[2];
  CHECK_OK(em_tensor_read(w[0], EM_F64, v, sizeof v));
  CHECK_OK(em_tensor_read(w[1], EM_F64, u, sizeof u));
  return near(v[0], 0.5621613264083862, 1e-6) && near(v[2], 2.5447590351104736, 1e-6) &&
         near(u[0], 0.003938078880310059, 1e-5) && near(u[1], -0.2448144257068634, 1e-6);
}

static void resuming(void) {
  em_tensor *w[2], *model[2];
  em_optimizer *o;
  em_weights *file;
  // PyTorch trained for three steps and saved; two more here.
  start(w);
  CHECK_OK(em_adam_new(w, 2, em_adamw_defaults(0.1), &o));
  CHECK_OK(em_weights_load(EM_TEST_DATA "/adamw_resume.pt", &file));
  model[0] = em_weights_find(file, "model.w"), model[1] = em_weights_find(file, "model.u");
  CHECK(model[0] != NULL && model[1] != NULL);
  CHECK(em_optimizer_load(o, file, "") == EM_ERR_RUNTIME && em_optimizer_state(o, 0, "exp_avg") == NULL);
  CHECK_OK(em_optimizer_load(o, file, "optimizer.state."));
  bool was = em_grad_set_enabled(false);
  for (int i = 0; i < 2; i++) CHECK_OK(em_call_copy_(w[i], model[i], false));
  em_grad_set_enabled(was);
  double count = 0;
  CHECK_OK(em_tensor_to_double(em_optimizer_state(o, 1, "step"), &count));
  CHECK(count == 3 && em_optimizer_state(o, 0, "nothing") == NULL && em_optimizer_state(o, 2, "step") == NULL);
  one_step(o, w[0], w[1]);
  one_step(o, w[0], w[1]);
  CHECK(resumed(w));
  em_weights_free(file);
  em_optimizer_free(o);
  for (int i = 0; i < 2; i++) em_tensor_release(w[i]);

  // And with a file of our own.
  em_optimizer *later, *sgd;
  start(w);
  CHECK_OK(em_adam_new(w, 2, em_adamw_defaults(0.1), &o));
  for (int i = 0; i < 3; i++) one_step(o, w[0], w[1]);
  CHECK_OK(em_optimizer_save(o, "test_training.safetensors"));
  em_optimizer_free(o);
  CHECK_OK(em_weights_load("test_training.safetensors", &file));
  CHECK(em_weights_count(file) == 6 && em_weights_find(file, "1.exp_avg_sq") != NULL);
  CHECK_OK(em_adam_new(w, 2, em_adamw_defaults(0.1), &later));
  CHECK_OK(em_optimizer_load(later, file, ""));
  CHECK_OK(em_optimizer_load(later, file, ""));  // again, over what is there
  one_step(later, w[0], w[1]);
  one_step(later, w[0], w[1]);
  CHECK(resumed(w));
  em_optimizer_free(later);
  // Refusals: an optimizer that remembers more, parameters of other shapes, another kind.
  em_adam_options more = em_adamw_defaults(0.1);
  more.amsgrad = true;
  CHECK_OK(em_adam_new(w, 2, more, &later));
  CHECK(em_optimizer_load(later, file, "") == EM_ERR_RUNTIME && strstr(em_error_message(), "0.max_exp_avg_sq") != NULL);
  CHECK(em_optimizer_state(later, 0, "exp_avg") == NULL);
  em_optimizer_free(later);
  CHECK_OK(em_adam_new((em_tensor *[]){w[1], w[0]}, 2, em_adamw_defaults(0.1), &later));
  CHECK(em_optimizer_load(later, file, "") == EM_ERR_RUNTIME && strstr(em_error_message(), "size mismatch for 0.exp_avg") != NULL);
  CHECK(em_optimizer_load(later, NULL, "") == EM_ERR_TYPE && em_optimizer_load(later, file, NULL) == EM_ERR_TYPE);
  CHECK(em_optimizer_load(NULL, file, "") == EM_ERR_TYPE && em_optimizer_save(NULL, "x") == EM_ERR_TYPE);
  CHECK(em_optimizer_save(later, NULL) == EM_ERR_TYPE && em_optimizer_state(NULL, 0, "step") == NULL);
  em_optimizer_free(later);
  em_sgd_options options = em_sgd_defaults(0.1);
  options.momentum = 0.9;
  CHECK_OK(em_sgd_new(w, 2, options, &sgd));
  CHECK(em_optimizer_load(sgd, file, "") == EM_ERR_RUNTIME);
  one_step(sgd, w[0], w[1]);
  CHECK(em_optimizer_state(sgd, 0, "momentum_buffer") != NULL && em_optimizer_state(sgd, 0, "exp_avg") == NULL);
  CHECK_OK(em_optimizer_set_momentum(sgd, 0.5));
  CHECK(em_optimizer_set_momentum(sgd, -1) == EM_ERR_VALUE && em_optimizer_set_momentum(NULL, 0.5) == EM_ERR_TYPE);
  em_optimizer_free(sgd);
  em_weights_free(file);
  remove("test_training.safetensors");
  for (int i = 0; i < 2; i++) em_tensor_release(w[i]);
}

// A program that goes on after a failure is told of the failure, not of the NULL that came from it.
static void what_went_wrong(void) {
  em_scope *s = em_scope_begin();
  em_tensor *a = em_ones(EM_INTS(2, 3)), *lost = em_sum(em_mm(a, a)), *out;
  double value;
  char text[100];
  em_value args[] = {em_value_tensor(lost), em_value_tensor(a), em_value_scalar(EM_NUM(1))}, ret = em_value_none();
  CHECK(lost == NULL && em_tensor_ndim(lost) == -1 && em_tensor_numel(lost) == -1 && em_tensor_sizes(lost) == NULL);
  CHECK(em_tensor_strides(lost) == NULL && em_tensor_dtype(lost) == EM_DTYPE_NONE && em_tensor_size(lost, 0) == -1);
  CHECK(em_tensor_device(lost).type == -1 && em_list_at(em_split(lost, 1), 0) == NULL);
  em_scope *inner = em_scope_begin();
#define SAID(call) CHECK((call) == EM_ERR_RUNTIME && strstr(em_error_message(), "mat1 and mat2 shapes cannot be multiplied") != NULL)
  SAID(em_backward(lost, NULL, 0));
  SAID(em_grad(&lost, NULL, 1, &a, 1, 0, &out));
  SAID(em_tensor_to_double(lost, &value));
  SAID(em_tensor_read(lost, EM_F64, &value, sizeof value));
  SAID(em_tensor_text(lost, text, sizeof text));
  SAID(em_print(lost));
  SAID(em_call_relu(lost, &out));
  SAID(em_call_boxed(em_operator_find("aten", "add", "Tensor"), args, &ret));
  SAID(em_save_safetensors("no.safetensors", (const char *[]){"a"}, &lost, 1));
  SAID(em_tensor_set_requires_grad(lost, true));
  CHECK(em_requires_grad_(lost) == NULL && em_init_constant_(lost, 1) == NULL);
  CHECK(em_scope_end(inner) == EM_ERR_RUNTIME);  // em_requires_grad_ noted it there too
  SAID(em_backward(lost, NULL, 0));
  CHECK(em_scope_end(s) == EM_ERR_RUNTIME && strcmp(em_error_operator(), "aten::mm") == 0);
  CHECK(em_backward(NULL, NULL, 0) == EM_ERR_TYPE && strcmp(em_error_message(), "em_backward(): the root is NULL") == 0);
}

static void settings(void) {
  int threads = em_get_num_threads(), dtype = em_get_default_dtype();
  CHECK(threads >= 1 && dtype == EM_F32);
  CHECK_OK(em_set_num_threads(1));
  CHECK(em_get_num_threads() == 1 && em_set_num_threads(0) == EM_ERR_RUNTIME);
  CHECK_OK(em_set_num_threads(threads));
  CHECK_OK(em_set_default_dtype(EM_F64));
  em_scope *s = em_scope_begin();
  CHECK(em_tensor_dtype(em_zeros(EM_INTS(1))) == EM_F64);
  CHECK_OK(em_scope_end(s));
  CHECK_OK(em_set_default_dtype(EM_F32));
  CHECK(em_set_default_dtype(EM_I64) == EM_ERR_TYPE && em_set_default_dtype(-1) == EM_ERR_TYPE && em_get_default_dtype() == EM_F32);
  const char *isa = em_cpu_capability();
  CHECK(strcmp(isa, "baseline") == 0 || strcmp(isa, "avx2") == 0 || strcmp(isa, "avx512") == 0);
  CHECK(em_library("no such thing") == NULL && em_library(NULL) == NULL);
  const char *blas = em_library("OpenBLAS");
  CHECK(blas == NULL || strstr(blas, "blas") != NULL);
}

// ---- DLPack: the layout is DLPack's own ----
typedef struct DLManagedTensor {
  struct {
    void *data;
    struct { int32_t type, id; } device;
    int32_t ndim;
    struct { uint8_t code, bits; uint16_t lanes; } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
  } t;
  void *context;
  void (*deleter)(struct DLManagedTensor *);
} DLManagedTensor;
static void count_deletion(DLManagedTensor *m) { ++*(int *)m->context; }

static void sharing(void) {
  em_scope *s = em_scope_begin();
  em_tensor *x = em_reshape(em_arange(EM_NUM(6)), EM_INTS(2, 3)), *back, *other;
  DLManagedTensor *m;
  CHECK_OK(em_tensor_to_dlpack(em_t(x), &m));
  CHECK(m->t.ndim == 2 && m->t.shape[0] == 3 && m->t.strides[0] == 1 && m->t.strides[1] == 3);
  CHECK(m->t.dtype.code == 0 && m->t.dtype.bits == 64 && m->t.dtype.lanes == 1 && m->t.device.type == 1);
  CHECK_OK(em_tensor_from_dlpack(m, &back));
  CHECK(em_tensor_data(back) == em_tensor_data(x) && em_tensor_size(back, 0) == 3);
  em_tensor_release(back);  // and with it the view
  float bytes[5] = {0, 1, 2, 3, 4};
  int64_t shape[2] = {2, 2}, down[2] = {-2, 1};
  int deletions = 0;
  DLManagedTensor own = {.t = {.data = bytes, .device = {1, 0}, .ndim = 2, .dtype = {2, 32, 1}, .shape = shape, .byte_offset = 4},
                         .context = &deletions, .deleter = count_deletion};
  CHECK_OK(em_tensor_from_dlpack(&own, &other));
  double got[4];
  CHECK_OK(em_tensor_read(other, EM_F64, got, sizeof got));
  CHECK(got[0] == 1 && got[3] == 4 && deletions == 0);
  em_tensor_release(other);
  CHECK(deletions == 1);
  DLManagedTensor bad[] = {own, own, own, own, own, own, own};
  bad[0].t.ndim = -1, bad[1].t.ndim = 1000, bad[2].t.shape = NULL, bad[3].t.strides = down, bad[4].t.dtype.lanes = 4;
  bad[5].t.device.type = 2, bad[6].t.data = NULL;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(em_tensor_from_dlpack(&bad[i], &other) != EM_OK);
  shape[0] = -2;
  CHECK(em_tensor_from_dlpack(&own, &other) == EM_ERR_RUNTIME);
  CHECK(em_tensor_from_dlpack(NULL, &other) == EM_ERR_TYPE && em_tensor_to_dlpack(NULL, &m) == EM_ERR_TYPE);
  CHECK(em_tensor_to_dlpack(em_requires_grad_(em_ones(EM_INTS(1))), &m) == EM_ERR_RUNTIME);
  CHECK(deletions == 1);  // what was refused stays the caller's
  CHECK_OK(em_scope_end(s));
}

int main(void) {
  first_values();
  schedules();
  clipping();
  resuming();
  what_went_wrong();
  settings();
  sharing();
  CHECK(em_live_tensors() == 0);
  CHECK_DONE();
}
