// environment.h: the variables of the environment that Ember reads.
#ifndef EMBER_CORE_ENVIRONMENT_H
#define EMBER_CORE_ENVIRONMENT_H
#include "status.h"

// Warns of each EMBER_ variable that means nothing, with the name that looks most like it, and of values that are not allowed. A C program
// is told on stderr when the library is loaded. Python is told by the bridge, as Python's warnings are: then loading says nothing.
EM_PRIV em_status em_environment_check(void);
EM_PRIV bool em_environment_host_checks(void);  // whether this process is Python's
#endif
