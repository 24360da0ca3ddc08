// dtype.h: element types. The list is ops/dtypes.yaml; the generator writes the enum and the tables.
#ifndef EMBER_CORE_DTYPE_H
#define EMBER_CORE_DTYPE_H
#include "complex_types.h"
#include "gen_dtypes.h"  // enum em_dtype {EM_U8 ... EM_BF16, EM_NUM_DTYPES}, EM_DTYPE_NONE = -1
#include "status.h"

typedef enum em_dtype_class { EM_CLASS_BOOL, EM_CLASS_INT, EM_CLASS_FLOAT, EM_CLASS_COMPLEX } em_dtype_class;

typedef struct em_dtype_info {
  const char *name;      // "float32"
  const char *storage;   // "FloatTensor"
  const char *np;        // numpy's type string, NULL if it has none
  uint8_t size;          // bytes
  uint8_t code;          // PyTorch's ScalarType number
  uint8_t cls;           // em_dtype_class
  uint8_t compute;       // em_dtype that arithmetic is done in
} em_dtype_info;

EM_PRIV extern const em_dtype_info em_priv_dtypes[EM_NUM_DTYPES];
// PyTorch's promotion table (torch.promote_types), symmetric.
EM_PRIV extern const uint8_t em_priv_promote[EM_NUM_DTYPES][EM_NUM_DTYPES];

static inline size_t em_dtype_size(int d) { return em_priv_dtypes[d].size; }
static inline int em_dtype_class_of(int d) { return em_priv_dtypes[d].cls; }
static inline bool em_dtype_is_float(int d) { return em_priv_dtypes[d].cls == EM_CLASS_FLOAT; }
static inline bool em_dtype_is_complex(int d) { return em_priv_dtypes[d].cls == EM_CLASS_COMPLEX; }
static inline bool em_dtype_is_integral(int d) { return em_priv_dtypes[d].cls <= EM_CLASS_INT; }  // bool too
static inline bool em_dtype_is_differentiable(int d) { return em_priv_dtypes[d].cls >= EM_CLASS_FLOAT; }
static inline const char *em_dtype_name(int d) { return em_priv_dtypes[d].name; }
static inline int em_dtype_promote(int a, int b) { return em_priv_promote[a][b]; }
// complex64 -> float32, complex128 -> float64; others themselves. And back (f16, bf16 -> complex64).
EM_PRIV int em_dtype_to_real(int d);
EM_PRIV int em_dtype_to_complex(int d);
// torch.can_cast's rule for results: a lower class may not receive a higher one.
EM_PRIV bool em_dtype_can_cast(int from, int to);
// Names as errors print them: "Float", "Long", "BFloat16" (PyTorch's ScalarType names).
EM_PRIV const char *em_dtype_scalar_name(int d);
EM_PRIV const char *em_dtype_type_name(int d);  // what C++ calls it: some of PyTorch's messages do
// The process's default float dtype (torch.set_default_dtype).
EM_PRIV int em_dtype_default(void);
EM_PRIV em_status em_dtype_set_default(int d);
#endif
