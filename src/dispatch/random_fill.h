// random_fill.h: fills whose stream depends on the whole tensor, and so are not walked piece by piece.
#ifndef EMBER_DISPATCH_RANDOM_FILL_H
#define EMBER_DISPATCH_RANDOM_FILL_H
#include "../core/rng.h"
#include "../core/tensor.h"

enum { EM_FILL_NORMAL /* mean, std */, EM_FILL_RANDPERM };
// t: contiguous, on the CPU, not empty. src/backend/cpu/random_fill.c
void em_priv_fill_whole(em_generator *g, em_tensor *t, int what, double a, double b);
#endif
