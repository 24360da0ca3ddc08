// complex_types.h: complex numbers as plain pairs, laid out as C, C++ and numpy lay them out.
#ifndef EMBER_CORE_COMPLEX_TYPES_H
#define EMBER_CORE_COMPLEX_TYPES_H
#include <ember/types.h>  // em_c64, em_c128
#endif
