// complex_types.h: complex numbers as plain pairs, laid out as C, C++ and numpy lay them out.
#ifndef EMBER_CORE_COMPLEX_TYPES_H
#define EMBER_CORE_COMPLEX_TYPES_H
typedef struct em_c64 { float re, im; } em_c64;
typedef struct em_c128 { double re, im; } em_c128;
#endif
