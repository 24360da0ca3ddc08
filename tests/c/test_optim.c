// test_optim.c: the fused optimizer steps against the textbook's arithmetic in double, on dense, strided and bfloat16
// tensors.
#include <math.h>
#include <string.h>
#include "check.h"
#include "core/iterator.h"
#include "gen_ops.h"

enum { ROWS = 7, COLS = 5, N = ROWS * COLS, STEPS = 3 };

static double start(int which, int i) { return sin(which * 10 + i * 0.37) * (which == 3 ? 0.5 : 1.0); }

// A ROWS x COLS tensor of dtype, its memory transposed if strided, filled with start(which, i) in logical order.
static em_tensor *make(int which, int dtype, bool strided) {
  em_tensor *dense = NULL, *t = NULL;
  em_device cpu = {EM_DEVICE_CPU, -1};
  CHECK(em_tensor_new(2, (const int64_t[]){ROWS, COLS}, EM_F64, cpu, &dense) == EM_OK);
  for (int i = 0; i < N; i++) ((double *)em_tensor_data(dense))[i] = start(which, i);
  if (strided) {
    em_tensor *base = NULL;
    CHECK(em_tensor_new(2, (const int64_t[]){COLS, ROWS}, dtype, cpu, &base) == EM_OK);
    CHECK(em_tensor_new_window(base->storage, 2, (const int64_t[]){ROWS, COLS}, (const int64_t[]){1, ROWS}, 0, dtype,
                               &t) == EM_OK);
    em_tensor_release(base);
  } else {
    CHECK(em_tensor_new(2, (const int64_t[]){ROWS, COLS}, dtype, cpu, &t) == EM_OK);
  }
  CHECK(em_copy_into(t, dense) == EM_OK);
  em_tensor_release(dense);
  return t;
}
static void values(em_tensor *t, double *out) {
  em_tensor *dense = NULL;
  CHECK(em_tensor_new(t->ndim, t->sizes, EM_F64, t->device, &dense) == EM_OK);
  CHECK(em_copy_into(dense, t) == EM_OK);
  memcpy(out, em_tensor_data(dense), sizeof(double) * (size_t)t->numel);
  em_tensor_release(dense);
}
static bool close_to(const double *got, const double *want, double tol) {
  for (int i = 0; i < N; i++)
    if (!(fabs(got[i] - want[i]) <= tol * (1 + fabs(want[i])))) {
      fprintf(stderr, "element %d: %.17g, not %.17g\n", i, got[i], want[i]);
      return false;
    }
  return true;
}

typedef struct layout { int dtype; bool strided; double tol; } layout;
static const layout layouts[] = {
    {EM_F32, false, 1e-6}, {EM_F64, false, 1e-13}, {EM_F32, true, 1e-6}, {EM_F64, true, 1e-13}, {EM_BF16, false, 0.03}};

static void test_sgd(const layout *l, double momentum, double dampening, double decay, bool nesterov, bool maximize) {
  em_tensor *p = make(1, l->dtype, l->strided), *g = make(2, l->dtype, l->strided), *b = make(4, l->dtype, l->strided);
  double want[N], grad[N], buf[N] = {0}, got[N], lr = 0.1;
  values(p, want);
  values(g, grad);
  for (int t = 0; t < STEPS; t++) {
    em_tensors none = {NULL, 0}, buffers = {&b, 1};
    CHECK(em_call__fused_sgd_((em_tensors){&p, 1}, (em_tensors){&g, 1}, momentum == 0 ? none : buffers, decay, momentum,
                              lr, dampening, nesterov, maximize, t == 0, NULL, NULL) == EM_OK);
    for (int i = 0; i < N; i++) {
      double d = (maximize ? -grad[i] : grad[i]) + decay * want[i];
      if (momentum != 0) {
        buf[i] = t == 0 ? d : momentum * buf[i] + (1 - dampening) * d;
        d = nesterov ? d + momentum * buf[i] : buf[i];
      }
      want[i] -= lr * d;
    }
  }
  values(p, got);
  CHECK(close_to(got, want, l->tol));
  em_tensor_release(p);
  em_tensor_release(g);
  em_tensor_release(b);
}

static void adam_reference(double *p, const double *grad, double *m, double *v, double *top, int t, double decay,
                           bool decoupled, bool amsgrad, bool maximize) {
  const double lr = 0.1, b1 = 0.8, b2 = 0.95, eps = 1e-3;
  for (int i = 0; i < N; i++) {
    double d = maximize ? -grad[i] : grad[i];
    if (decoupled) p[i] *= 1 - lr * decay;
    else d += decay * p[i];
    m[i] = b1 * m[i] + (1 - b1) * d;
    v[i] = b2 * v[i] + (1 - b2) * d * d;
    top[i] = fmax(top[i], v[i]);
    double second = amsgrad ? top[i] : v[i];
    p[i] -= lr / (1 - pow(b1, t)) * m[i] / (sqrt(second) / sqrt(1 - pow(b2, t)) + eps);
  }
}
static void test_adam(const layout *l, double decay, bool decoupled, bool amsgrad, bool maximize) {
  em_tensor *all[5], *step = NULL;
  em_device cpu = {EM_DEVICE_CPU, -1};
  for (int k = 0; k < 5; k++) {
    all[k] = make(k + 1, l->dtype, l->strided);
    if (k >= 2) CHECK(em_call_zero_(all[k]) == EM_OK);
  }
  CHECK(em_tensor_new(0, NULL, EM_F32, cpu, &step) == EM_OK);
  double want[N], grad[N], m[N] = {0}, v[N] = {0}, top[N] = {0}, got[N];
  values(all[0], want);
  values(all[1], grad);
  for (int t = 1; t <= STEPS; t++) {
    *(float *)em_tensor_data(step) = (float)t;
    em_status (*call)(em_tensors, em_tensors, em_tensors, em_tensors, em_tensors, em_tensors, double, double, double,
                      double, double, bool, bool, em_tensor *, em_tensor *) =
        decoupled ? em_call__fused_adamw_ : em_call__fused_adam_;
    CHECK(call((em_tensors){&all[0], 1}, (em_tensors){&all[1], 1}, (em_tensors){&all[2], 1}, (em_tensors){&all[3], 1},
               (em_tensors){&all[4], amsgrad ? 1 : 0}, (em_tensors){&step, 1}, 0.1, 0.8, 0.95, decay, 1e-3, amsgrad,
               maximize, NULL, NULL) == EM_OK);
    adam_reference(want, grad, m, v, top, t, decay, decoupled, amsgrad, maximize);
  }
  values(all[0], got);
  CHECK(close_to(got, want, l->tol));
  for (int k = 0; k < 5; k++) em_tensor_release(all[k]);
  em_tensor_release(step);
}

static void test_scaler(void) {
  em_tensor *p = make(1, EM_F32, false), *g = make(2, EM_F32, false), *scale = NULL, *inf = NULL;
  em_device cpu = {EM_DEVICE_CPU, -1};
  double before[N], after[N], grad[N], scaled[N];
  CHECK(em_tensor_new(0, NULL, EM_F32, cpu, &scale) == EM_OK && em_tensor_new(0, NULL, EM_F32, cpu, &inf) == EM_OK);
  *(float *)em_tensor_data(scale) = 4;
  *(float *)em_tensor_data(inf) = 1;
  em_tensors ps = {&p, 1}, gs = {&g, 1}, none = {NULL, 0};
  values(p, before);
  values(g, grad);
  CHECK(em_call__fused_sgd_(ps, gs, none, 0, 0, 0.1, 0, false, false, true, scale, inf) == EM_OK);
  values(p, after);
  CHECK(close_to(after, before, 0));  // an infinite gradient: no step
  *(float *)em_tensor_data(inf) = 0;
  CHECK(em_call__fused_sgd_(ps, gs, none, 0, 0, 0.1, 0, false, false, true, scale, inf) == EM_OK);
  values(p, after);
  values(g, scaled);
  for (int i = 0; i < N; i++) {
    before[i] -= 0.1 * grad[i] / 4;
    grad[i] /= 4;
  }
  CHECK(close_to(after, before, 1e-6) && close_to(scaled, grad, 1e-6));
  em_tensor_release(p);
  em_tensor_release(g);
  em_tensor_release(scale);
  em_tensor_release(inf);
}

static void test_errors(void) {
  em_tensor *p = make(1, EM_F32, false), *g = make(2, EM_F64, false), *whole = NULL;
  em_tensors ps = {&p, 1}, gs = {&g, 1}, none = {NULL, 0};
  CHECK(em_call__fused_sgd_(ps, none, none, 0, 0, 0.1, 0, false, false, true, NULL, NULL) == EM_ERR_RUNTIME);
  CHECK(em_call__fused_sgd_(ps, gs, none, 0, 0, 0.1, 0, false, false, true, NULL, NULL) == EM_ERR_RUNTIME);
  CHECK(em_call__fused_sgd_(ps, ps, none, 0, 0.9, 0.1, 0, false, false, true, NULL, NULL) == EM_ERR_RUNTIME);
  CHECK(em_tensor_new(1, (const int64_t[]){3}, EM_I64, p->device, &whole) == EM_OK);
  em_tensors ws = {&whole, 1};
  CHECK(em_call__fused_sgd_(ws, ws, none, 0, 0, 0.1, 0, false, false, true, NULL, NULL) == EM_ERR_RUNTIME);
  CHECK(em_call__fused_adam_(ps, ps, ps, ps, none, none, 0.1, 0.9, 0.9, 0, 0, false, false, NULL, NULL) ==
        EM_ERR_RUNTIME);
  CHECK(em_call__fused_sgd_(none, none, none, 0, 0, 0.1, 0, false, false, true, NULL, NULL) == EM_OK);
  em_tensor_release(p);
  em_tensor_release(g);
  em_tensor_release(whole);
}

int main(void) {
  for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
    const layout *l = &layouts[k];
    test_sgd(l, 0, 0, 0, false, false);
    test_sgd(l, 0, 0, 0.1, false, true);
    test_sgd(l, 0.9, 0, 0.1, true, false);
    test_sgd(l, 0.9, 0.3, 0, false, true);
    test_adam(l, 0, false, false, false);
    test_adam(l, 0.1, false, true, true);
    test_adam(l, 0.1, true, true, false);
  }
  test_scaler();
  test_errors();
  CHECK_DONE();
}
