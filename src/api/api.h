// api.h: what the files of the C face share. Comes before every other header: it gives the library's inline functions other
// names here, so that no copy of one can take the symbol that the public function of its name has.
#ifndef EMBER_API_API_H
#define EMBER_API_API_H
#define em_tensor_retain em_inl_tensor_retain
#define em_tensor_release em_inl_tensor_release
#define em_tensor_is_contiguous em_inl_tensor_is_contiguous
#define em_tensor_data em_inl_tensor_data
#define em_tensor_requires_grad em_inl_tensor_requires_grad
#define em_grad_enabled em_inl_grad_enabled
#include "../core/tensor.h"

// Defines an exported function whose name is an inline one in this library's own headers: EXPORT(void, em_tensor_release,
// (em_tensor *t)) { em_tensor_release(t); }. The C function gets another name, the symbol the public one.
#define EXPORT(ret, name, params)                     \
  EM_API ret em_api_##name params __asm__(#name);     \
  EM_API ret em_api_##name params
#endif
