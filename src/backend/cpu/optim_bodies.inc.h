// optim_bodies.inc.h: the loops for one element type. T: the type, SQRT: its root, NAME(x): x with the type's suffix.
// Included by optim_loops.c once a type. Every product rounds where PyTorch's plain operators round.

static void NAME(scale)(const em_optim_args *a, int64_t n, T *grad) {
  const T by = (T)a->grad_scale;
  for (int64_t i = 0; i < n; i++) grad[i] /= by;
}

// The gradient as the rule sees it. Without decay the parameter stays out: it may be infinite.
#define STEP_GRAD(g, p) (decay != 0 ? sign * (g) + decay * (p) : sign * (g))

static void NAME(sgd)(const em_optim_args *a, int64_t n, void *param, void *grad, void *const state[3]) {
  T *restrict p = param, *restrict g = grad, *restrict buf = state[0];
  if (a->grad_scale != 1) NAME(scale)(a, n, g);
  const T decay = (T)a->weight_decay, rate = (T)-a->lr, momentum = (T)a->momentum, take = (T)(1 - a->dampening),
          sign = a->maximize ? -1 : 1;
  if (buf == NULL) {
    for (int64_t i = 0; i < n; i++) p[i] += rate * STEP_GRAD(g[i], p[i]);
    return;
  }
  const T keep = a->first ? 0 : momentum, add = a->first ? 1 : take;
  if (a->first)
    for (int64_t i = 0; i < n; i++) buf[i] = 0;  // It holds nothing yet, perhaps not even numbers.
  if (a->nesterov)
    for (int64_t i = 0; i < n; i++) {
      T d = STEP_GRAD(g[i], p[i]);
      buf[i] = keep * buf[i] + add * d;
      p[i] += rate * (d + momentum * buf[i]);
    }
  else
    for (int64_t i = 0; i < n; i++) {
      buf[i] = keep * buf[i] + add * STEP_GRAD(g[i], p[i]);
      p[i] += rate * buf[i];
    }
}

static void NAME(adam)(const em_optim_args *a, int64_t n, void *param, void *grad, void *const state[3]) {
  T *restrict p = param, *restrict g = grad, *restrict m = state[0], *restrict v = state[1], *restrict top = state[2];
  if (a->grad_scale != 1) NAME(scale)(a, n, g);
  const T sign = a->maximize ? -1 : 1, shrink = a->decoupled ? (T)(1 - a->lr * a->weight_decay) : 1,
          decay = a->decoupled ? 0 : (T)a->weight_decay, beta1 = (T)a->beta1, beta2 = (T)a->beta2,
          take1 = (T)(1 - a->beta1), take2 = (T)(1 - a->beta2), size = (T)-a->step_size, eps = (T)a->eps,
          root = (T)a->correction2_sqrt;
  const bool near = take1 < (T)0.5;  // lerp measures from its nearer end
// Both loops do the same; the one without maxima has no pointer that may be absent, and so vectorises.
#define ADAM_MOMENTS                                                   \
  T x = p[i] * shrink, d = STEP_GRAD(g[i], x), away = d - m[i];        \
  m[i] = near ? m[i] + take1 * away : d - away * beta1;                \
  T second = v[i] = v[i] * beta2 + take2 * d * d;
#define ADAM_MOVE p[i] = x + size * m[i] / (SQRT(second) / root + eps);
  if (top == NULL) {
    for (int64_t i = 0; i < n; i++) {
      ADAM_MOMENTS
      ADAM_MOVE
    }
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    ADAM_MOMENTS
    second = top[i] = top[i] > second || top[i] != top[i] ? top[i] : second;  // maximum() passes nan on
    ADAM_MOVE
  }
#undef ADAM_MOMENTS
#undef ADAM_MOVE
}
#undef STEP_GRAD
#undef T
#undef SQRT
#undef NAME
