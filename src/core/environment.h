// environment.h: the variables of the environment that Ember reads.
#ifndef EMBER_CORE_ENVIRONMENT_H
#define EMBER_CORE_ENVIRONMENT_H
#include "status.h"

// Warns of each EMBER_ variable that means nothing, with the name that looks most like it, and of values that are not allowed. Called
// once, when the library is loaded: a C program and a Python program are told alike, on stderr, before anything runs.
EM_PRIV void em_environment_check(void);
#endif
