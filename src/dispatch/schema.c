// schema.c: reads the schema language at run time, as gen/schema.py reads it at build time. A test feeds every row to
// both.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "boxing.h"

#define MAX_ARGS 64
#define MAX_RETS 16

typedef struct parser {
  const char *start, *at;
  em_arg args[MAX_ARGS];
  uint8_t rets[MAX_RETS];
  int nargs, nrets;
  bool fresh;  // some result is not one of the arguments
  bool written;  // some argument is (a!)
} parser;

static em_status bad(parser *p, const char *want) {
  return em_fail(EM_ERR_RUNTIME, "schema '%s': expected %s at position %d, got '%.16s'", p->start, want,
                 (int)(p->at - p->start), p->at);
}
static void blanks(parser *p) { while (*p->at == ' ') p->at++; }
static bool take(parser *p, const char *text) {
  blanks(p);
  size_t n = strlen(text);
  if (strncmp(p->at, text, n) != 0) return false;
  p->at += n;
  return true;
}
// An identifier as a copy of its own (malloc: schemas live as long as their operator).
static em_status word(parser *p, const char *what, char **out) {
  blanks(p);
  const char *b = p->at;
  while (isalnum((unsigned char)*p->at) || *p->at == '_') p->at++;
  if (p->at == b) return bad(p, what);
  *out = strndup(b, (size_t)(p->at - b));
  return *out == NULL ? EM_NOMEM(p->at - b) : EM_OK;
}

static const struct { const char *name; uint8_t one, list;
} bases[] = {{"Tensor", EM_TYPE_TENSOR, EM_TYPE_TENSOR_LIST},
             {"Scalar", EM_TYPE_SCALAR, EM_TYPE_SCALAR_LIST},
             {"number", EM_TYPE_SCALAR, 255},
             {"int", EM_TYPE_INT, EM_TYPE_INT_LIST},
             {"SymInt", EM_TYPE_SYMINT, EM_TYPE_INT_LIST},
             {"float", EM_TYPE_DOUBLE, EM_TYPE_DOUBLE_LIST},
             {"bool", EM_TYPE_BOOL, EM_TYPE_BOOL_LIST},
             {"str", EM_TYPE_STRING, 255},
             {"ScalarType", EM_TYPE_DTYPE, 255},
             {"Layout", EM_TYPE_LAYOUT, 255},
             {"Device", EM_TYPE_DEVICE, 255},
             {"MemoryFormat", EM_TYPE_MEMORY_FORMAT, 255},
             {"Generator", EM_TYPE_GENERATOR, 255}};

static em_status type(parser *p, em_arg *a) {
  char *base = NULL;
  EM_PASS(word(p, "a type", &base));
  int b = -1;
  for (size_t i = 0; i < sizeof bases / sizeof *bases; i++)
    if (strcmp(bases[i].name, base) == 0) b = (int)i;
  free(base);
  if (b < 0) return bad(p, "a known type before this");
  a->type = bases[b].one;
  bool item_optional = *p->at == '?' && (p->at[1] == '[' || p->at[1] == '(');
  if (item_optional) p->at++;
  if (*p->at == '(') {  // (a), (a!), (a -> *)
    const char *end = strchr(p->at, ')');
    if (end == NULL) return bad(p, "')' of an alias annotation");
    bool writes = memchr(p->at, '!', (size_t)(end - p->at)) != NULL;
    a->flags |= writes ? EM_ARG_MUTATED : EM_ARG_ALIASED;
    p->written |= writes;
    p->at = end + 1;
  }
  if (*p->at == '?' && p->at[1] == '[') {
    item_optional = true;
    p->at++;
  }
  if (*p->at == '[') {
    p->at++;
    if (isdigit((unsigned char)*p->at)) {
      long size = strtol(p->at, (char **)&p->at, 10);
      if (size > INT16_MAX) return bad(p, "a smaller size before this");
      a->list_size = (int16_t)size;
    }
    if (*p->at++ != ']') return bad(p, "']'");
    if (bases[b].list == 255) return bad(p, "a type that has lists before this");
    a->type = item_optional && a->type == EM_TYPE_TENSOR ? EM_TYPE_OPT_TENSOR_LIST : bases[b].list;
  }
  if (*p->at == '?') {
    p->at++;
    a->flags |= EM_ARG_OPTIONAL;
  }
  return EM_OK;
}

static em_status list_default(parser *p, em_arg *a) {
  int64_t ints[32], n = 0;
  double doubles[32];
  while (!take(p, "]")) {
    if (n == 32) return bad(p, "at most 32 default values");
    char *end;
    blanks(p);
    if (strncmp(p->at, "True", 4) == 0 || strncmp(p->at, "False", 5) == 0) {
      ints[n] = *p->at == 'T';
      end = (char *)(uintptr_t)p->at + (*p->at == 'T' ? 4 : 5);
    } else {
      doubles[n] = strtod(p->at, &end);
      ints[n] = (int64_t)doubles[n];
    }
    if (end == p->at) return bad(p, "a number");
    p->at = end;
    n++;
    if (!take(p, ",") && *p->at != ']') return bad(p, "',' or ']'");
  }
  em_value v = em_value_none(), copy;
  uint8_t bools[32];
  for (int64_t i = 0; i < n; i++) bools[i] = ints[i] != 0;
  if (a->type == EM_TYPE_DOUBLE_LIST) v = em_value_doubles((em_doubles){doubles, n});
  else if (a->type == EM_TYPE_BOOL_LIST) v = em_value_bools((em_bools){bools, n});
  else if (a->type == EM_TYPE_TENSOR_LIST || a->type == EM_TYPE_OPT_TENSOR_LIST)
    v = em_value_tensors((em_tensors){NULL, 0});
  else v = em_value_ints((em_ints){ints, n});
  EM_PASS(em_value_copy(&v, &copy));
  a->dflt = copy;
  return EM_OK;
}

static em_status default_value(parser *p, em_arg *a) {
  a->flags |= EM_ARG_HAS_DEFAULT;
  a->dflt = em_value_none();
  if (take(p, "None") || take(p, "none")) return EM_OK;
  if (take(p, "[")) return list_default(p, a);
  if (*p->at == '\'' || *p->at == '"') {
    const char *b = p->at + 1, *end = strchr(b, *p->at);
    if (end == NULL) return bad(p, "a closing quote");
    char *s = strndup(b, (size_t)(end - b));
    if (s == NULL) return EM_NOMEM(end - b);
    em_value v = em_value_string(s), copy;
    em_status st = em_value_copy(&v, &copy);
    free(s);
    a->dflt = copy;
    p->at = end + 1;
    return st;
  }
  if (isalpha((unsigned char)*p->at)) {
    static const struct { const char *name; uint8_t tag; int64_t i;
    } named[] = {{"True", EM_TAG_BOOL, 1},
                 {"False", EM_TAG_BOOL, 0},
                 {"Mean", EM_TAG_INT, 1},
                 {"Sum", EM_TAG_INT, 2},
                 {"contiguous_format", EM_TAG_MEMORY_FORMAT, EM_FORMAT_CONTIGUOUS},
                 {"preserve_format", EM_TAG_MEMORY_FORMAT, EM_FORMAT_PRESERVE},
                 {"long", EM_TAG_DTYPE, EM_I64},
                 {"float", EM_TAG_DTYPE, EM_F32},
                 {"bool", EM_TAG_DTYPE, EM_BOOL}};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
      if (take(p, named[i].name)) {
        a->dflt = (em_value){.i = named[i].i, .tag = named[i].tag};
        if (a->type == EM_TYPE_SCALAR) a->dflt = em_value_scalar(em_scalar_bool(named[i].i != 0));
        return EM_OK;
      }
    return bad(p, "a default value");
  }
  char *end;
  double d = strtod(p->at, &end);
  if (end == p->at) return bad(p, "a default value");
  bool whole = memchr(p->at, '.', (size_t)(end - p->at)) == NULL && memchr(p->at, 'e', (size_t)(end - p->at)) == NULL;
  long long i = strtoll(p->at, NULL, 10);
  p->at = end;
  if (a->type == EM_TYPE_INT_LIST) {  // int[2] dim=0: the value for each place
    int64_t repeated[32];
    for (int k = 0; k < 32; k++) repeated[k] = i;
    em_value v = em_value_ints((em_ints){repeated, a->list_size > 0 && a->list_size <= 32 ? a->list_size : 1});
    return em_value_copy(&v, &a->dflt);
  }
  if (a->type == EM_TYPE_SCALAR) a->dflt = em_value_scalar(whole ? em_scalar_int(i) : em_scalar_double(d));
  else if (a->type == EM_TYPE_DOUBLE) a->dflt = em_value_double(d);
  else a->dflt = em_value_int(i);
  return EM_OK;
}

static em_status arguments(parser *p) {
  bool kwarg_only = false;
  if (take(p, ")")) return EM_OK;
  for (;;) {
    if (take(p, "*")) {
      kwarg_only = true;
    } else {
      if (p->nargs == MAX_ARGS) return bad(p, "at most 64 arguments");
      em_arg *a = &p->args[p->nargs++];
      memset(a, 0, sizeof *a);
      EM_PASS(type(p, a));
      char *name;
      EM_PASS(word(p, "an argument name", &name));
      a->name = name;
      for (int i = 0; i + 1 < p->nargs; i++)
        if (strcmp(p->args[i].name, name) == 0) return bad(p, "argument names that differ before this");
      if (kwarg_only) a->flags |= EM_ARG_KWARG_ONLY;
      if (kwarg_only && (a->flags & EM_ARG_MUTATED)) a->flags |= EM_ARG_OUT;
      if (take(p, "=")) EM_PASS(default_value(p, a));
    }
    if (take(p, ")")) return EM_OK;
    if (!take(p, ",")) return bad(p, "',' or ')'");
  }
}
static em_status returns(parser *p) {
  if (!take(p, "->")) return bad(p, "'->'");
  bool group = take(p, "(");
  if (group && take(p, ")")) return EM_OK;
  for (;;) {
    em_arg a = {0};
    if (p->nrets == MAX_RETS) return bad(p, "at most 16 results");
    EM_PASS(type(p, &a));
    p->rets[p->nrets++] = a.type;
    if (!(a.flags & (EM_ARG_MUTATED | EM_ARG_ALIASED))) p->fresh = true;
    blanks(p);
    if (isalpha((unsigned char)*p->at)) {
      char *name;
      EM_PASS(word(p, "a result name", &name));
      free(name);
    }
    if (!group || take(p, ")")) break;
    if (!take(p, ",")) return bad(p, "',' or ')'");
  }
  blanks(p);
  return *p->at == 0 ? EM_OK : bad(p, "the end");
}

static em_status assemble(parser *p, char *ns, char *name, char *overload, em_operator **out) {
  em_operator *op = calloc(1, sizeof *op);
  em_arg *args = calloc((size_t)p->nargs + 1, sizeof *args);
  uint8_t *rets = calloc((size_t)p->nrets + 1, 1);
  char *schema = strdup(p->start), *full = malloc(strlen(ns) + strlen(name) + strlen(overload) + 4);
  if (op == NULL || args == NULL || rets == NULL || schema == NULL || full == NULL) {
    free(op); free(args); free(rets); free(schema); free(full);
    return EM_NOMEM(sizeof *op);
  }
  sprintf(full, "%s::%s%s%s", ns, name, overload[0] ? "." : "", overload);
  memcpy(args, p->args, sizeof *args * (size_t)p->nargs);
  memcpy(rets, p->rets, (size_t)p->nrets);
  op->ns = ns;
  op->name = name;
  op->overload = overload;
  op->full = full;
  op->schema = schema;
  op->args = args;
  op->nargs = (uint8_t)p->nargs;
  op->nrets = (uint8_t)p->nrets;
  op->ret_types = rets;
  for (int i = 0; i < p->nargs; i++) {
    if (args[i].flags & EM_ARG_OUT) op->variant = EM_OUT;
    else if ((args[i].flags & EM_ARG_MUTATED) && op->variant != EM_OUT && !p->fresh) op->variant = EM_INPLACE;
  }
  if (op->variant == EM_OUT) op->flags |= EM_OP_OUT;
  if (op->variant == EM_INPLACE) op->flags |= EM_OP_INPLACE;
  op->where = "defined at run time";
  *out = op;
  return EM_OK;
}

em_status em_schema_parse(const char *schema, em_operator **out) {
  parser *p = calloc(1, sizeof *p);
  if (p == NULL) return EM_NOMEM(sizeof *p);
  p->start = p->at = schema;
  char *ns = NULL, *name = NULL, *overload = NULL;
  em_status st = EM_OK;
  EM_TRY(word(p, "an operator name", &name));
  if (take(p, "::")) {
    ns = name;
    name = NULL;
    EM_TRY(word(p, "an operator name", &name));
  } else if ((ns = strdup("aten")) == NULL) {
    st = EM_NOMEM(5);
    goto fail;
  }
  if (take(p, ".")) EM_TRY(word(p, "an overload name", &overload));
  else if ((overload = strdup("")) == NULL) {
    st = EM_NOMEM(1);
    goto fail;
  }
  if (!take(p, "(")) {
    st = bad(p, "'('");
    goto fail;
  }
  EM_TRY(arguments(p));
  EM_TRY(returns(p));
  EM_TRY(assemble(p, ns, name, overload, out));
  free(p);
  return EM_OK;
fail:
  for (int i = 0; i < p->nargs; i++) {
    free((void *)(uintptr_t)p->args[i].name);
    em_value_clear(&p->args[i].dflt);
  }
  free(ns); free(name); free(overload); free(p);
  return st;
}

void em_schema_free(em_operator *op) {
  if (op == NULL) return;
  for (int i = 0; i < op->nargs; i++) {
    free((void *)(uintptr_t)op->args[i].name);
    em_value_clear((em_value *)(uintptr_t)&op->args[i].dflt);
  }
  const void *parts[] = {op->ns, op->name, op->overload, op->full, op->schema, op->args, op->ret_types, op->extra};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free((void *)(uintptr_t)parts[i]);
  free(op);
}
