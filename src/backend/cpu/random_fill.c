// random_fill.c: see random_fill.h.
#include "../../dispatch/random_fill.h"

void em_priv_fill_whole(em_generator *g, em_tensor *t, int what, double a, double b) {
  em_rng_type type = (em_rng_type)em_priv_dtypes[t->dtype].code;
  if (what == EM_FILL_NORMAL) em_rng_fill_normal(g, type, em_tensor_data(t), t->numel, a, b);
  else em_rng_fill_randperm(g, type, em_tensor_data(t), t->numel);
}
