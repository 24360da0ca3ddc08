/* ember/types.h: what every other header speaks of: statuses, dtypes, devices, numbers, lists, and the opaque handles.
 *
 * Handles are reference counted. A function borrows its arguments; what it hands out through an out-parameter is a new
 * reference, which the caller gives back with the handle's release function. The short forms of ember/short.h own their
 * results for you.
 *
 * NULL or nonsense where a handle, a string or a number is wanted is an error (EM_ERR_TYPE, EM_ERR_VALUE), or nothing
 * where a function returns no status. Out-parameters must never be NULL, and what a pointer names must be there: a handle
 * that was released by its last owner is gone, and giving it back twice is an error that nobody can see, as with free().
 *
 * In C++ (11 or later) everything is as in C; lists made by EM_INTS and EM_TENSORS live to the end of the expression. */
#ifndef EMBER_TYPES_H
#define EMBER_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "gen_dtypes.h" /* enum em_dtype: EM_F32, EM_I64, EM_BOOL, ... and EM_DTYPE_NONE */
#ifdef __cplusplus
#include <initializer_list>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define EM_API __attribute__((visibility("default")))
#define EM_MUST_CHECK __attribute__((warn_unused_result))

/* What every fallible function returns. The message waits in the calling thread's error record (ember/error.h). Each
 * code is one of Python's exception classes; em_status_exception() names it. */
typedef enum em_status {
  EM_OK = 0,
  EM_ERR_RUNTIME,         /* RuntimeError */
  EM_ERR_TYPE,            /* TypeError */
  EM_ERR_VALUE,           /* ValueError */
  EM_ERR_INDEX,           /* IndexError */
  EM_ERR_NOT_IMPLEMENTED, /* NotImplementedError */
  EM_ERR_OOM,             /* OutOfMemoryError */
  EM_ERR_OVERFLOW,        /* OverflowError */
  EM_ERR_ZERO_DIVISION,   /* ZeroDivisionError */
  EM_ERR_ATTRIBUTE,       /* AttributeError */
  EM_ERR_LINALG,          /* LinAlgError */
  EM_ERR_FOREIGN,         /* an exception of the host language is pending */
  EM_ERR_INTERNAL,        /* a bug in Ember, please report */
  EM_STATUS_COUNT
} em_status;

/* Opaque handles. */
typedef struct em_tensor em_tensor;       /* a window over bytes; may take part in autograd */
typedef struct em_node em_node;           /* one record of the autograd graph */
typedef struct em_generator em_generator; /* a stream of random numbers */
typedef struct em_operator em_operator;   /* an entry of the operator table; never freed */

/* ---- devices ---- */
typedef enum em_device_type {
  EM_DEVICE_CPU,
  EM_DEVICE_CUDA,
  EM_DEVICE_OPENCL,
  EM_DEVICE_META, /* sizes without bytes */
  EM_DEVICE_TYPES
} em_device_type;
typedef struct em_device {
  int8_t type;  /* em_device_type, or -1: not given */
  int8_t index; /* -1: the current one */
} em_device;

/* ---- numbers: a Scalar of schemas keeps the caller's full precision until a kernel converts it ---- */
typedef struct em_c64 { float re, im; } em_c64;
typedef struct em_c128 { double re, im; } em_c128;
typedef enum em_scalar_kind {
  EM_SCALAR_NONE, /* an optional Scalar that was not given */
  EM_SCALAR_BOOL,
  EM_SCALAR_INT,
  EM_SCALAR_DOUBLE,
  EM_SCALAR_COMPLEX
} em_scalar_kind;
typedef struct em_scalar {
  union { int64_t i; double d; em_c128 c; }; /* i for BOOL and INT */
  uint8_t kind;                              /* em_scalar_kind */
} em_scalar;

static inline em_scalar em_scalar_none(void) {
  em_scalar s;
  s.i = 0;
  s.kind = EM_SCALAR_NONE;
  return s;
}
static inline em_scalar em_scalar_bool(bool v) {
  em_scalar s;
  s.i = v;
  s.kind = EM_SCALAR_BOOL;
  return s;
}
static inline em_scalar em_scalar_int(int64_t v) {
  em_scalar s;
  s.i = v;
  s.kind = EM_SCALAR_INT;
  return s;
}
static inline em_scalar em_scalar_double(double v) {
  em_scalar s;
  s.d = v;
  s.kind = EM_SCALAR_DOUBLE;
  return s;
}
static inline em_scalar em_scalar_complex(double re, double im) {
  em_scalar s;
  s.c.re = re;
  s.c.im = im;
  s.kind = EM_SCALAR_COMPLEX;
  return s;
}

/* ---- lists and optionals, passed by value; what they point at is borrowed ---- */
typedef struct em_ints { const int64_t *p; int64_t n; } em_ints; /* n = -1: int[]? not given */
typedef struct em_doubles { const double *p; int64_t n; } em_doubles;
typedef struct em_bools { const uint8_t *p; int64_t n; } em_bools;
typedef struct em_scalars { const em_scalar *p; int64_t n; } em_scalars;
typedef struct em_tensors { em_tensor *const *p; int64_t n; } em_tensors;
typedef struct em_opt_int { int64_t v; bool has; } em_opt_int;
typedef struct em_opt_double { double v; bool has; } em_opt_double;
typedef int8_t em_opt_bool; /* -1: not given */
typedef struct em_tensor_list { em_tensor **p; int64_t n; } em_tensor_list; /* a result: em_tensor_list_clear frees it */

static inline em_opt_int em_some_int(int64_t v) {
  em_opt_int o;
  o.v = v;
  o.has = true;
  return o;
}
static inline em_opt_int em_no_int(void) {
  em_opt_int o;
  o.v = 0;
  o.has = false;
  return o;
}
static inline em_opt_double em_some_double(double v) {
  em_opt_double o;
  o.v = v;
  o.has = true;
  return o;
}
static inline em_opt_double em_no_double(void) {
  em_opt_double o;
  o.v = 0;
  o.has = false;
  return o;
}

typedef enum em_memory_format {
  EM_FORMAT_NONE = -1,
  EM_FORMAT_CONTIGUOUS,
  EM_FORMAT_PRESERVE,
  EM_FORMAT_CHANNELS_LAST,
  EM_FORMAT_CHANNELS_LAST_3D
} em_memory_format;

#ifdef __cplusplus
}
#endif

/* What is written in place. EM_NUM(0.5): a Scalar of any number. EM_INTS(2, 3), EM_TENSORS(a, b): lists that live to the end
 * of the enclosing block (in C++ of the expression); EM_LIST(type, p, n): a list of what lies at p. */
#ifndef __cplusplus
#define EM_LIST(type, p, n) ((type){p, n})
#define EM_INTS(...) ((em_ints){(const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)})
#define EM_TENSORS(...) \
  ((em_tensors){(em_tensor *const[]){__VA_ARGS__}, sizeof((em_tensor *const[]){__VA_ARGS__}) / sizeof(em_tensor *)})
#define EM_NUM(x)                                                                                                         \
  _Generic((x), bool: em_scalar_bool, float: em_scalar_double, double: em_scalar_double, long double: em_scalar_double,  \
      char: em_scalar_int, signed char: em_scalar_int, unsigned char: em_scalar_int, short: em_scalar_int,               \
      unsigned short: em_scalar_int, int: em_scalar_int, unsigned: em_scalar_int, long: em_scalar_int,                   \
      unsigned long: em_scalar_int, long long: em_scalar_int, unsigned long long: em_scalar_int)(x)
#define EM_DEVICE_NONE ((em_device){-1, -1})
#else
#define EM_LIST(type, p, n) (type{p, n})
#define EM_INTS(...) em_list_of(std::initializer_list<int64_t>{__VA_ARGS__})
#define EM_TENSORS(...) em_list_of(std::initializer_list<em_tensor *>{__VA_ARGS__})
#define EM_NUM(x) em_scalar_of(x)
#define EM_DEVICE_NONE (em_device{-1, -1})
static inline em_ints em_list_of(const std::initializer_list<int64_t> &l) { return em_ints{l.begin(), (int64_t)l.size()}; }
static inline em_tensors em_list_of(const std::initializer_list<em_tensor *> &l) {
  return em_tensors{l.begin(), (int64_t)l.size()};
}
static inline em_scalar em_scalar_of(bool v) { return em_scalar_bool(v); }
static inline em_scalar em_scalar_of(double v) { return em_scalar_double(v); }
static inline em_scalar em_scalar_of(float v) { return em_scalar_double(v); }
static inline em_scalar em_scalar_of(int v) { return em_scalar_int(v); }
static inline em_scalar em_scalar_of(long v) { return em_scalar_int(v); }
static inline em_scalar em_scalar_of(long long v) { return em_scalar_int(v); }
#endif
#define EM_INTS_NONE EM_LIST(em_ints, NULL, -1)

#endif
