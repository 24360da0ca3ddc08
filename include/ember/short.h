/* ember/short.h: every operator as an expression; results belong to the current scope (ember/scope.h). Generated from the
 * rows. em_<name> takes what PyTorch requires, em_<name>_with every argument; later overloads carry their name. */
#ifndef EMBER_SHORT_H
#define EMBER_SHORT_H
#include "ops.h"
#include "scope.h"
#include "gen_short.h"
#endif
