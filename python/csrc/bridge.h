// bridge.h: what the files of the bridge share. The bridge turns Python objects into core values and back; it holds no
// arithmetic. Everything here runs under the GIL, which is also the metadata lock of the core in a Python process.
#ifndef EMBER_CSRC_BRIDGE_H
#define EMBER_CSRC_BRIDGE_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "compat.h"

#include "autograd/engine.h"
#include "autograd/hooks.h"
#include "autograd/node.h"
#include "autograd/saved.h"
#include "autograd/view.h"
#include "core/alloc.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "core/threads.h"
#include "dispatch/operator.h"
#include "gen_python.h"

// ---------------------------------------------------------------- types (types.c, size.c, device.c)
// One Python object an element type, layout or memory format: identity is equality.
typedef struct em_py_enum {
  PyObject_HEAD int value;
  const char *name;  // "float32", without "torch."
} em_py_enum;
typedef struct em_py_device {
  PyObject_HEAD em_device device;
} em_py_device;
extern PyTypeObject em_py_dtype_type, em_py_layout_type, em_py_memory_format_type, em_py_device_type, em_py_size_type;
PyObject *em_py_dtype_new_ref(int dtype);  // new reference; None for EM_DTYPE_NONE
PyObject *em_py_layout_new_ref(void);
PyObject *em_py_memory_format_new_ref(int format);
PyObject *em_py_device_new(em_device d);
PyObject *em_py_size_new(int ndim, const int64_t *sizes);
PyObject *em_py_ints_tuple(int ndim, const int64_t *v);
int em_py_types_init(PyObject *module);
int em_py_device_init(PyObject *module);
int em_py_size_init(PyObject *module);
bool em_py_is_dtype(PyObject *o);                  // a dtype, or float, int, bool, complex the classes
int em_py_to_dtype(PyObject *o);                   // checked before
int em_py_to_device(PyObject *o, em_device *out);  // device, string or index; -1 with an exception
// 0 if tensors can be there. made_by: the operator that would make one, or NULL for a conversion. -1 with PyTorch's exception
int em_py_device_wake(em_device d, const char *made_by);
em_device em_py_default_device(void);              // this thread's default for factories; type -1: none

// ---------------------------------------------------------------- tensors (tensor_type.c)
typedef struct em_py_tensor {
  PyObject_HEAD em_tensor *t;  // owned unless EM_T_PY_OWNED; NULL only while dying
  PyObject *dict;              // NULL until the first attribute
  PyObject *weakrefs;
} em_py_tensor;
extern PyTypeObject em_py_meta_type, em_py_base_type;  // _TensorMeta, TensorBase
extern PyTypeObject *em_py_tensor_class;               // ember.Tensor
// Facts about a tensor type, kept in bits of tp_flags that CPython leaves free (kept by the metaclass, see
// tensor_type.c).
#define EM_TP_TENSOR (1UL << 40)    // an ember.Tensor or a subclass
#define EM_TP_FUNCTION (1UL << 41)  // overrides __torch_function__
#define EM_TP_DISPATCH (1UL << 42)  // overrides __torch_dispatch__
static inline bool em_py_is_tensor(PyObject *o) { return (Py_TYPE(o)->tp_flags & EM_TP_TENSOR) != 0; }
static inline bool em_py_is_exact(PyObject *o) { return Py_TYPE(o) == em_py_tensor_class; }
static inline em_tensor *em_py_t(PyObject *o) { return ((em_py_tensor *)o)->t; }
static inline em_tensor *em_py_t_or_null(PyObject *o) { return o == Py_None ? NULL : em_py_t(o); }
PyObject *em_py_wrap(em_tensor *t);      // steals t; NULL gives None. The one Python object of t
PyObject *em_py_wrap_new(em_tensor *t);  // steals t, which has no Python object yet
PyObject *em_py_wrap_borrowed(em_tensor *t);
PyObject *em_py_wrap_as(em_tensor *t, PyTypeObject *cls);  // steals t (no Python object yet)
PyObject *em_py_subclass_new(PyTypeObject *cls, em_tensor *t);
void em_py_track(PyObject *tensor);  // from now on the cycle collector sees it
int em_py_tensor_init(PyObject *module);
int em_py_type_bits(PyTypeObject *type);  // recomputes EM_TP_FUNCTION and EM_TP_DISPATCH
extern PyMethodDef em_py_tensor_methods[], em_py_autograd_methods[], em_py_convert_methods[];
extern PyGetSetDef em_py_tensor_getset[];
extern PyNumberMethods em_py_tensor_number;
extern PyMappingMethods em_py_tensor_mapping;
extern PySequenceMethods em_py_tensor_sequence;
PyObject *em_py_tensor_compare(PyObject *a, PyObject *b, int op);
PyObject *em_py_getitem(PyObject *self, PyObject *index);
int em_py_setitem(PyObject *self, PyObject *index, PyObject *value);
extern PyMethodDef em_py_convert_functions[];
Py_hash_t em_py_tensor_hash(PyObject *o);
PyObject *em_py_tensor_iter(PyObject *o);
PyObject *em_py_legacy_new(PyTypeObject *cls, PyObject *args, PyObject *kw);  // factory.c: Tensor(...)
int em_py_number_init(void);

// ---------------------------------------------------------------- errors (errors.c)
PyObject *em_py_raise(em_status st);  // sets the exception for st from the core's record; returns NULL
static inline int em_py_raise_int(em_status st) {
  (void)em_py_raise(st);
  return -1;
}
em_status em_py_foreign(void);  // a Python exception is pending: EM_ERR_FOREIGN
int em_py_errors_init(PyObject *module);
void em_py_decref_anywhere(void *object);  // Py_DECREF from any thread; fine after the interpreter has gone

// ---------------------------------------------------------------- values (convert.c)
#define EM_PY_MAX_ARGS 40
#define EM_PY_MAX_RETS 16
// Memory for the arguments of one call: lists and numbers wrapped as tensors live here until the call is over.
typedef struct em_py_frame {
  em_tensor *temps[EM_PY_MAX_ARGS];
  int ntemps;
  size_t used;
  void *heap;  // linked blocks for what does not fit `room`
  struct em_py_held *held;  // tensors of lists: the list may change while the call runs, they must not go
  _Alignas(16) char room[768];
} em_py_frame;
void em_py_frame_init(em_py_frame *f);
void em_py_frame_clear(em_py_frame *f);
void *em_py_frame_alloc(em_py_frame *f, size_t n);   // NULL with MemoryError
int em_py_frame_keep(em_py_frame *f, em_tensor *t);  // steals t: released by em_py_frame_clear
// Item i (new reference) of a list or tuple of n items. Reading the others may have run Python, which may have changed
// the list: then NULL with RuntimeError.
PyObject *em_py_list_item(PyObject *seq, Py_ssize_t i, Py_ssize_t n);
bool em_py_is_int(PyObject *o);                      // an int that is not a bool, or a numpy integer
bool em_py_is_number(PyObject *o);                   // int, float, complex, bool or a numpy scalar
bool em_py_is_numpy_scalar(PyObject *o);
int em_py_to_scalar(PyObject *o, em_scalar *out);
int em_py_to_int64(PyObject *o, int64_t *out);
PyObject *em_py_from_scalar(em_scalar s);
PyObject *em_py_from_value(em_value *v);  // takes what v owns
PyObject *em_py_from_value_borrowed(const em_value *v);
// Accepts an argument of the schema without a parser's complaint: 1 fits (stored), 0 does not, -1 exception.
int em_py_to_value(PyObject *o, const em_arg *arg, bool numbers_as_tensors, em_py_frame *f, em_value *out);
// Ints of a tuple, list or Size into *out.
int em_py_int_list(PyObject *o, em_py_frame *f, em_ints *out);

// ---------------------------------------------------------------- calls (signature.c, parser.c, function.c)
// Where a name is seen (em_py_function.where, from the generator).
enum { EM_PY_FUNCTION = 1, EM_PY_METHOD = 2, EM_PY_NN = 4, EM_PY_LINALG = 8, EM_PY_SPECIAL = 16, EM_PY_FFT = 32 };

// A parameter as Python sees it.
enum { EM_PARAM_ARG, EM_PARAM_OUT, EM_PARAM_REQUIRES_GRAD };
typedef struct em_py_param {
  PyObject *name;        // interned: "input" for self of functions
  const char *alias[3];  // numpy's names for it
  const em_arg *arg;     // NULL for out and requires_grad
  uint8_t kind, kwonly, optional, slot;
} em_py_param;
// A signature as Python sees it: the functional (or in-place) operator and its out= form together.
typedef struct em_py_signature {
  const em_operator *op, *out_op;
  int nparams, min_args, max_pos;
  int self_slot;                   // of methods; -1
  int device_slot;                 // of factories without a tensor; -1
  int device_arg, pin_arg;         // any device and pin_memory; -1
  int out_slot;                    // parameter index of out=; -1
  int8_t out_map[EM_PY_MAX_ARGS];  // slot of out_op -> slot of op, or -1 - (index of the out tensor)
  int nouts;
  bool out_list;             // out= is one list of tensors of any length
  PyTypeObject *tuple_type;  // named tuple of several results, or NULL
  em_py_param params[EM_PY_MAX_ARGS];
} em_py_signature;

// One callable: a name in one place. Its signatures are made from the schemas at the first call that needs the parser.
typedef struct em_py_callable {
  const em_py_function *fn;
  em_py_signature **sigs;
  int nsigs;
  uint8_t deprecated;                 // PyTorch has a hidden older signature: the words of misfits differ
  uint8_t numbers;                    // Python numbers may stand for tensors
  uint8_t unary_kind, binary_kind;    // EM_FAST_*
  const em_operator *unary, *binary;  // overloads for calls with one and two plain tensors
} em_py_callable;
// What the parser did last, for ember.fall (fall_py.c): filled only while `wanted`.
typedef struct em_py_parse_trace {
  bool wanted, fresh;
  const char *name;  // as Python called it
  int tried, count;  // the signature that fitted, of how many
  char refused[1024];  // what the earlier ones said, a line each
} em_py_parse_trace;
extern em_py_parse_trace em_priv_py_parse_trace;
int em_py_fall_init(PyObject *module);     // fall_py.c
int em_py_lights_init(PyObject *module);   // lights_py.c
PyObject *em_py_operator_object(const em_operator *op);  // dispatch_py.c: the one object of an overload
int em_py_signatures(em_py_callable *c);  // fills sigs
PyObject *em_py_call(em_py_callable *c, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *em_py_call_operator(const em_operator *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *em_py_box_results(const em_operator *op, em_value *rets, PyTypeObject *tuple_type);
PyObject *em_py_return_types(void);  // dict of the types made so far, borrowed
PyTypeObject *
em_py_return_type(const em_operator *op);  // named tuple for results with names, or NULL (no exception: plain tuple)
int em_py_functions_init(PyObject *module);
const char *em_py_help_text(size_t i);    // help_py.c: of the i-th of em_py_functions; NULL without the file
void em_py_describe(PyObject *o, const char *words);
int em_py_help_init(PyObject *module);    // the last: words of what was written by hand
em_py_callable *em_py_callable_find(const char *name, int where);  // NULL if there is none
PyObject *em_py_function_object(em_py_callable *c);  // what __torch_function__ is told was called; new reference
// For hand-written methods and slots. NotImplementedError when no such operator was built.
PyObject *em_py_call_method(const char *name, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames);
PyObject *em_py_call_function(const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
const char *em_py_type_name(const em_arg *arg);  // as messages write it: "tuple of ints"
const char *em_py_class_name(PyObject *o);       // of an object, as PyTorch writes it: "torch.device"
PyObject *em_py_no_match(em_py_callable *c, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
// Tries one signature. 1: `values` filled (and *out_object, *requires_grad); 0: does not fit; -1: exception. With
// `explain` a misfit raises.
int em_py_try(em_py_callable *c, em_py_signature *s, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
              PyObject *kwnames, bool explain, em_py_frame *f, em_value *values, PyObject **out_object,
              bool *requires_grad);

// ---------------------------------------------------------------- __torch_function__ (override.c)
typedef struct em_py_tls {
  uint32_t function_modes;    // depth of the stack of function modes
  uint8_t function_disabled;  // 1: subclasses, 2: modes too
  em_device default_device;
  PyObject *modes;           // list of function modes, owned, or NULL
  PyObject *dispatch_modes;  // list of dispatch modes, owned, or NULL
  uint32_t no_dispatch;      // inside a __torch_dispatch__ of a mode
} em_py_tls;
extern _Thread_local em_py_tls em_priv_py_tls __attribute__((tls_model("initial-exec")));
bool em_py_has_override(PyObject *o);  // the slow question, for anything
static inline bool em_py_maybe_override(PyObject *o) { return (Py_TYPE(o)->tp_flags & EM_TP_FUNCTION) != 0; }
// Calls __torch_function__ of modes and arguments. `args` are all positional arguments, self included.
PyObject *em_py_handle_override(PyObject *func, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
// Whether any argument (or list entry) asks for it, or a mode is on.
bool em_py_any_override(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
int em_py_override_init(PyObject *module);
// For attributes and hand-written methods of Tensor: true when self's type overrides and *out is the answer.
bool em_py_override_method(PyObject *self, const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                           PyObject **out);
bool em_py_override_attr(PyObject *self, const char *name, const char *which, PyObject *value, PyObject **out);

// ---------------------------------------------------------------- others
int em_py_factory_init(PyObject *module);    // factory.c: tensor, as_tensor, from_numpy...
int em_py_storage_init(PyObject *module);    // storage_py.c
int em_py_shared_init(PyObject *module);     // storage_shared_py.c
int em_py_profile_init(PyObject *module);    // profile_py.c
PyObject *em_py_storage_of(em_storage *s);   // the one Python object of a storage (retains)
em_storage *em_py_to_storage(PyObject *o);   // borrowed; NULL with TypeError
int em_py_generator_init(PyObject *module);  // generator.c
int em_py_files_init(PyObject *module);      // files_py.c
int em_py_unpickle_init(PyObject *module);   // unpickle_py.c
bool em_py_is_generator(PyObject *o);
struct em_generator *em_py_to_generator(PyObject *o);
PyObject *em_py_generator_new_ref(struct em_generator *g);
void em_py_anomaly_init(void);              // autograd_anomaly.c
int em_py_autograd_init(PyObject *module);  // autograd_engine.c
int em_py_node_init(PyObject *module);      // autograd_node.c
PyObject *em_py_node_wrap(em_node *n);      // borrowed n; None for NULL. The one Python object of a node
bool em_py_is_node(PyObject *o);
em_node *em_py_to_node(PyObject *o);
int em_py_ctx_init(PyObject *module);  // autograd_function.c
bool em_py_is_ctx(PyObject *o);
em_node *em_py_ctx_node(PyObject *o);  // borrowed; NULL when the node is gone
extern PyMethodDef em_py_node_methods[];
extern PyGetSetDef em_py_node_getset[];
PyObject *em_py_register_tensor_hook(PyObject *self, PyObject *fn);
PyObject *em_py_register_accumulate_hook(PyObject *self, PyObject *fn);
PyObject *em_py_register_node_hook(PyObject *self, PyObject *fn);
PyObject *em_py_register_node_prehook(PyObject *self, PyObject *fn);
PyObject *em_py_ctx_of(em_node *n);         // borrowed: the ctx of a custom function's node, or NULL
int em_py_hooks_init(PyObject *autograd);   // autograd_hooks.c
int em_py_dispatch_init(PyObject *module);  // dispatch_py.c
int em_py_buffer_init(PyObject *module);    // buffer.c: numpy, DLPack, Python's buffer protocol
em_status em_py_sequence_tensor(PyObject *data, int dtype, em_device device, em_tensor **out);  // nested lists
// numpy arrays and other objects with an array interface: 1 made, 0 has none, -1 exception. copy: own the bytes.
int em_py_array_tensor(PyObject *o, bool copy, em_tensor **out);
// An object with the buffer protocol; count -1: all of it. copy false: shares.
em_status em_py_buffer_tensor(PyObject *o, int dtype, int64_t count, int64_t offset, bool copy, em_tensor **out);
bool em_py_is_array(PyObject *o);
em_status em_py_to_dtype_device(em_tensor *t, int dtype, em_device device, bool copy, em_tensor **out);
PyObject *em_py_tolist(em_tensor *t);
PyObject *em_py_item(em_tensor *t);
#endif
