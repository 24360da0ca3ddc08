// schedule.c: the learning rates of ember/optim.h, as closed forms of the step.
#include <ember/optim.h>
#include <math.h>

static const double pi = 3.14159265358979323846;

double em_lr_step(double lr, int64_t step, int64_t step_size, double gamma) {
  return step_size <= 0 ? NAN : lr * pow(gamma, (double)(step / step_size));
}
double em_lr_exponential(double lr, int64_t step, double gamma) { return lr * pow(gamma, (double)step); }
double em_lr_linear(double lr, int64_t step, double start_factor, double end_factor, int64_t total) {
  if (total <= 0) return NAN;
  double part = (double)(step < total ? step : total) / (double)total;
  return lr * (start_factor + (end_factor - start_factor) * part);
}
double em_lr_cosine(double lr, int64_t step, int64_t t_max, double lr_min) {
  return t_max <= 0 ? NAN : lr_min + (lr - lr_min) * (1 + cos(pi * (double)step / (double)t_max)) / 2;
}

// Half a cosine from `from` to `to`.
static double anneal(double from, double to, double part) { return to + (from - to) / 2 * (cos(pi * part) + 1); }
// Three tenths of the way from `low` to `high`, and then down to `last`.
static double cycle(double low, double high, double last, int64_t step, int64_t total) {
  if (total <= 0 || step < 0 || step >= total) return NAN;
  double up = 0.3 * (double)total - 1, end = (double)(total - 1), at = (double)step;
  if (up > 0 && at <= up) return anneal(low, high, at / up);
  return end > up ? anneal(high, last, (at - up) / (end - up)) : high;
}
double em_lr_one_cycle(double max_lr, int64_t step, int64_t total) {
  return cycle(max_lr / 25, max_lr, max_lr / 25 / 1e4, step, total);
}
double em_momentum_one_cycle(int64_t step, int64_t total) { return cycle(0.95, 0.85, 0.95, step, total); }
