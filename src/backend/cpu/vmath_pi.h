// vmath_pi.h: 2/pi for the reduction of huge arguments of sin, cos and tan.
// Written by `python tools/fit_vmath.py PI`.
#ifndef EMBER_BACKEND_CPU_VMATH_PI_H
#define EMBER_BACKEND_CPU_VMATH_PI_H

#include <stdint.h>

// Row s: 2^(26 s) * 2/pi mod 4 in 29-bit parts, so that each product with a float is exact.
static const double vm_priv_pi_f32[4][4] __attribute__((unused)) = {
  { 0x1.45f306e000000p-1, -0x1.b1bbead000000p-32, -0x1.80f62a1000000p-62, 0x1.1f534de000000p-92 },
  { 0x1.b939105000000p+0, 0x1.29fc275000000p-30, 0x1.f47d4d3000000p-60, 0x1.dc0db63000000p-90 },
  { 0x1.529fc27000000p+0, 0x1.5f47d4d000000p-30, 0x1.bb81b6c000000p-61, 0x1.4acc9e2000000p-91 },
  { 0x1.d5f47d5000000p+0, -0x1.6447e49000000p-31, -0x1.d6a66c4000000p-62, 0x1.0e41080000000p-92 },
};

// 64 zero bits, then the bits of 2/pi.
static const uint64_t vm_priv_pi_bits[21] __attribute__((unused)) = {
  0x0000000000000000u, 0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u,
  0xfe5163abdebbc561u, 0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu,
  0xe88235f52ebb4484u, 0xe99c7026b45f7e41u, 0x3991d639835339f4u, 0x9c845f8bbdf9283bu,
  0x1ff897ffde05980fu, 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du,
  0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu,
  0xf0cfbc209af4361du,
};

#endif
