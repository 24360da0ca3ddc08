/* ember/random.h: PyTorch's streams of random numbers: a seed gives the numbers that PyTorch gives. */
#ifndef EMBER_RANDOM_H
#define EMBER_RANDOM_H
#include "types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* torch.manual_seed: the process's own generator starts anew. */
EM_API void em_manual_seed(uint64_t seed);
/* The process's own generator; lives for ever. */
EM_API em_generator *em_default_generator(void);
/* A generator of your own, in the state of a fresh one; NULL without memory. Operators take it as their `generator`. */
EM_API em_generator *em_generator_new(void);
EM_API em_generator *em_generator_retain(em_generator *g);
EM_API void em_generator_release(em_generator *g);
EM_API em_generator *em_generator_clone(em_generator *g); /* an independent one in the same state; NULL without memory */
EM_API void em_generator_seed(em_generator *g, uint64_t seed);
/* torch.get_rng_state's bytes. */
EM_API size_t em_generator_state_size(void);
EM_API void em_generator_get_state(em_generator *g, void *out);
/* Errors: EM_ERR_RUNTIME for bytes that are no state; g stays as it was. */
EM_API EM_MUST_CHECK em_status em_generator_set_state(em_generator *g, const void *bytes, size_t size);

#ifdef __cplusplus
}
#endif
#endif
