// api.h: what the files of the C face share.
#ifndef EMBER_API_API_H
#define EMBER_API_API_H
#include "../core/tensor.h"

// Defines an exported function whose name is an inline one in this library's own headers: EXPORT(void, em_tensor_release,
// (em_tensor *t)) { em_tensor_release(t); }. The C function gets another name, the symbol the public one.
// The inline one must leave no symbol of its own, not even at -O0: INLINE(void, em_tensor_release, (em_tensor *)); says so.
// (clang takes no attribute after a definition: its -O0 builds cannot have this face.)
#ifdef __clang__
#define INLINE(ret, name, params) _Static_assert(sizeof(ret (*) params) > 0, "")
#else
#define INLINE(ret, name, params) static inline ret name params __attribute__((always_inline))
#endif
#define EXPORT(ret, name, params)                     \
  EM_API ret em_api_##name params __asm__(#name);     \
  EM_API ret em_api_##name params
#endif
