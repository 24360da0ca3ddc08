// random.c: ember/random.h.
#include <ember/random.h>
#include "../core/rng.h"
#include "../core/status.h"

void em_manual_seed(uint64_t seed) { em_rng_seed(em_default_generator(), seed); }
void em_generator_seed(em_generator *g, uint64_t seed) {
  if (g != NULL) em_rng_seed(g, seed);
}
size_t em_generator_state_size(void) { return EM_RNG_STATE_SIZE; }
void em_generator_get_state(em_generator *g, void *out) {
  if (g != NULL && out != NULL) em_rng_get_state(g, out);
}
em_status em_generator_set_state(em_generator *g, const void *bytes, size_t size) {
  if (g == NULL || bytes == NULL)
    return em_fail(EM_ERR_TYPE, "em_generator_set_state(): the %s is NULL", g == NULL ? "generator" : "state");
  return em_rng_set_state(g, bytes, size);
}
