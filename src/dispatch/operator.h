// operator.h: the operator table and the dispatcher's hot path.
//
// An operator has one slot a key. A call computes the effective key set
//     (keys of tensor arguments | thread's include) & ~thread's exclude & operator's mask
// and runs the slot of its highest bit. `mask` holds the keys with something to run, so a layer that does not care
// about an operator costs nothing. The typed function of a slot is never NULL for a key in `mask`: where only a boxed
// function is registered, it is the generated adapter that boxes and calls it.
#ifndef EMBER_DISPATCH_OPERATOR_H
#define EMBER_DISPATCH_OPERATOR_H
#include <ember/operator.h>  // em_boxed_fn, look-up, em_operator_define, em_call_boxed
#include "../core/value.h"

// --- schema: what the generator knows about each argument, in tables; the parser of the bridge works from it.
typedef enum em_type {
  EM_TYPE_TENSOR,
  EM_TYPE_TENSOR_LIST,
  EM_TYPE_OPT_TENSOR_LIST /* Tensor?[] */,
  EM_TYPE_SCALAR,
  EM_TYPE_SCALAR_LIST,
  EM_TYPE_INT,
  EM_TYPE_SYMINT,
  EM_TYPE_INT_LIST,
  EM_TYPE_DOUBLE,
  EM_TYPE_DOUBLE_LIST,
  EM_TYPE_BOOL,
  EM_TYPE_BOOL_LIST,
  EM_TYPE_DTYPE,
  EM_TYPE_LAYOUT,
  EM_TYPE_DEVICE,
  EM_TYPE_MEMORY_FORMAT,
  EM_TYPE_GENERATOR,
  EM_TYPE_STRING,
  EM_TYPE_DIMNAME /* never matches */
} em_type;
enum {
  EM_ARG_OPTIONAL = 1 /* T? */,
  EM_ARG_KWARG_ONLY = 2,
  EM_ARG_MUTATED = 4 /* (a!) */,
  EM_ARG_OUT = 8,
  EM_ARG_HAS_DEFAULT = 16,
  EM_ARG_ALIASED = 32 /* (a) */
};
typedef struct em_arg {
  const char *name;
  uint8_t type;          // em_type
  uint8_t flags;         // EM_ARG_*
  int16_t list_size;     // int[2]: 2, else 0
  em_value dflt;         // default when EM_ARG_HAS_DEFAULT
} em_arg;
typedef enum em_variant { EM_FUNCTIONAL, EM_INPLACE, EM_OUT } em_variant;

typedef void (*em_any_fn)(void);

// What an operator runs for a key. Kept small: the table has thousands of operators with a slot a key.
typedef struct em_slot {
  em_any_fn fn;        // typed function; cast to the operator's type by generated code
  const char *name;    // kernel's name for logs
} em_slot;
// A boxed kernel or fallback, registered at run time.
typedef struct em_host_kernel {
  em_boxed_fn boxed;
  void *context;       // handed to `boxed`
  const char *name;
  void (*release)(void *context);
} em_host_kernel;

enum {
  EM_OP_COMPOSITE = 1 /* parts record, no derivative */,
  EM_OP_VIEW = 2,
  EM_OP_INPLACE = 4,
  EM_OP_OUT = 8,
  EM_OP_USER = 16,
  EM_OP_NONDETERMINISTIC = 32,
  EM_OP_DATA_SHAPE = 64,
  EM_OP_FACTORY = 128,
  EM_OP_STRUCTURED = 256,
  EM_OP_NO_META = 512  /* the generated kernel at Meta refuses: what it would give depends on values */
};

struct em_operator {
  uint64_t mask;                  // keys with a slot or a fallback that applies here
  const char *name;               // "add" or "add_", without overload
  const char *overload;           // "Tensor", "" for the default one
  const char *ns;                 // "aten" or the user's
  const char *full;               // "aten::add.Tensor"
  const char *schema;             // the whole schema string
  const em_arg *args;
  uint8_t nargs, nrets, variant;  // variant: em_variant
  uint16_t flags;                 // EM_OP_*
  const uint8_t *ret_types;       // em_type, nrets values
  // Boxed entry to a typed function: unboxes args, calls fn(ks, ...), boxes results. One a signature.
  em_status (*unbox)(em_any_fn fn, uint64_t ks, const em_value *args, em_value *rets);
  // typed function that boxes its arguments and calls the boxed kernel of the top key; one an operator
  em_any_fn box;
  em_slot slots[EM_NUM_KEYS];     // effective: the host's kernel, else the generated one, else the key's fallback
  struct em_op_extra *extra;      // registrations beside the generated ones; NULL until there is one (registry.c)
  struct em_operator *next_overload;  // same name and namespace, in declaration order
  const char *where;              // "native_functions.yaml:123"
};

static inline int em_priv_top_key(uint64_t ks) { return 63 - __builtin_clzll(ks); }
static inline uint64_t em_priv_keys(const em_operator *op, uint64_t arg_keys) {
  return (arg_keys | em_priv_tls.include | em_priv_global_include) & ~em_priv_tls.exclude & op->mask;
}
// Keys strictly below key k.
#define EM_KEYS_BELOW(k) (EM_KEYBIT(k) - 1)
// No kernel: NotImplementedError "Could not run 'aten::mm' with arguments from the 'Meta' backend..."
EM_PRIV em_status em_priv_no_kernel(const em_operator *op, uint64_t arg_keys) __attribute__((cold));
EM_PRIV em_status em_priv_missing_argument(const em_operator *op) __attribute__((cold));  // a C program gave NULL

// --- registration (src/dispatch/registry.c). Not thread-safe against calls of the same operator; the host's lock
// guards it.
EM_PRIV em_operator *em_operator_find_first(const char *ns, const char *name);                  // first overload
EM_PRIV void em_priv_register_table(em_operator **ops, size_t n);  // generated operators, at load
EM_PRIV void em_priv_set_kernel(em_operator *op, int key, em_any_fn fn, const char *name);
// Kernel from the host or a C program for any key of any operator; NULL `fn` removes it and restores what was there
// before.
EM_PRIV em_status em_operator_set_boxed(em_operator *op, int key, em_boxed_fn fn, void *context,
                                        void (*release)(void *), const char *name);
// Fallback for a key: runs for every non-composite operator without a kernel of its own there. NULL removes.
EM_PRIV em_status em_dispatch_set_fallback(int key, em_boxed_fn fn, void *context, void (*release)(void *),
                                           const char *name);
// Parses a schema into an operator without registering it (test: every row read as the generator read it).
EM_PRIV em_status em_schema_parse(const char *schema, em_operator **out);
EM_PRIV void em_schema_free(em_operator *op);

// The boxed kernel that a slot's function leads to; NULL where the slot has a typed one.
EM_PRIV const em_host_kernel *em_priv_host_kernel(const em_operator *op, int key);

// --- calls
// Continues below: ks was masked by the caller.
// em_call_boxed for callers whose values fit the schema: tags are not looked at.
EM_PRIV em_status em_priv_call_boxed(const em_operator *op, const em_value *args, em_value *rets);
EM_PRIV em_status em_redispatch_boxed(const em_operator *op, uint64_t ks, const em_value *args, em_value *rets);
EM_PRIV uint64_t em_priv_boxed_keys(const em_operator *op, const em_value *args);

// Guard for code that must not be seen by some layers.
typedef struct em_guard { uint64_t include, exclude; } em_guard;
static inline em_guard em_guard_exclude(uint64_t keys) {
  em_guard g = {em_priv_tls.include, em_priv_tls.exclude};
  em_priv_tls.exclude |= keys;
  return g;
}
static inline void em_guard_restore(em_guard g) { em_priv_tls.include = g.include; em_priv_tls.exclude = g.exclude; }
#endif
