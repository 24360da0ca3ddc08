/* ember/ember.h: Ember's C face. A network, its gradients and its training, without Python:
 *
 *     cc program.c $(pkg-config --cflags --libs ember)
 *
 * docs/c_api.md walks through it; examples/c/ has whole programs. */
#ifndef EMBER_EMBER_H
#define EMBER_EMBER_H
#include "autograd.h"
#include "error.h"
#include "init.h"
#include "memory.h"
#include "operator.h"
#include "ops.h"
#include "optim.h"
#include "random.h"
#include "scope.h"
#include "serialize.h"
#include "settings.h"
#include "short.h"
#include "tensor.h"
#include "types.h"
#include "value.h"
#include "version.h"
#endif
