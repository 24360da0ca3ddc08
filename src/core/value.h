// value.h: the boxed value: one argument or result of an operator, as the boxed calling convention passes it.
// Ownership: an argument stack is borrowed; results are new references that the receiver clears with em_value_clear.
#ifndef EMBER_CORE_VALUE_H
#define EMBER_CORE_VALUE_H
#include <ember/value.h>  // em_tag, em_value
#include "tensor.h"

// A result list (em_tensor_list): array of new references, made by em_tensor_list_new, freed with em_tensor_list_clear.
EM_PRIV em_status em_tensor_list_new(int64_t n, em_tensor_list *out);  // entries NULL
EM_PRIV void em_tensor_list_clear(em_tensor_list *l);

#endif
