// einsum.c: sums of products by Einstein's convention. Every operand becomes a view with one dim a label, in one order for all: those
// of the result first, then those to be summed; labels that an operand lacks have size 1. Then operands are multiplied by two, as
// batched matrix products where a label is summed, and a label is summed as soon as no other operand has it.
#include <string.h>
#include "gen_ops.h"

#define LABELS 52

typedef struct equation {
  const char *input, *output;  // the two sides; output NULL: implicit
  int64_t input_length;
  int ellipsis;                // dims that the widest ellipsis stands for
  int count[LABELS];           // how often a label occurs in the inputs
  int64_t place[LABELS];       // its dim in the common order, -1: none
  int nout, ndim;              // dims of the result; of the common order
  int ellipsis_at;             // where the ellipsis dims begin; -1 until that is known
} equation;

static int label_of(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1; }
static char letter_of(int label) { return (char)(label < 26 ? 'A' + label : 'a' + label - 26); }

static void split(const char *text, equation *e) {
  const char *arrow = strstr(text, "->");
  e->input = text;
  e->input_length = arrow != NULL ? arrow - text : (int64_t)strlen(text);
  e->output = arrow != NULL ? arrow + 2 : NULL;
}

// One operand's subscripts: labels into `labels` (-1 for the ellipsis); returns where it ended.
static em_status read_operand(const equation *e, int64_t *at, int64_t operand, int *labels, int *n) {
  bool dots = false;
  *n = 0;
  for (; *at < e->input_length && e->input[*at] != ','; (*at)++) {
    const char c = e->input[*at];
    if (c == ' ') continue;
    if (*n >= EM_MAX_DIMS + 1) return em_fail(EM_ERR_RUNTIME, "einsum(): operand %lld has more than 64 subscripts", (long long)operand);
    if (c == '.') {
      if (dots)
        return em_fail(EM_ERR_RUNTIME, "einsum(): found '.' for operand %lld for which an ellipsis was already found", (long long)operand);
      if (*at + 2 >= e->input_length || e->input[*at + 1] != '.' || e->input[*at + 2] != '.')
        return em_fail(EM_ERR_RUNTIME, "einsum(): found '.' for operand %lld that is not part of any ellipsis", (long long)operand);
      *at += 2;
      dots = true;
      labels[(*n)++] = -1;
      continue;
    }
    const int label = label_of(c);
    if (label < 0)
      return em_fail(EM_ERR_RUNTIME,
                     "einsum(): invalid subscript given at index %lld in the equation string, subscripts must be in [a-zA-Z]",
                     (long long)*at);
    labels[(*n)++] = label;
  }
  return EM_OK;
}
// How many dims the operand's ellipsis stands for.
static em_status count_dots(const int *labels, int n, const em_tensor *t, int64_t operand, int *dots) {
  int named = 0;
  bool has = false;
  for (int i = 0; i < n; i++) {
    if (labels[i] < 0) has = true;
    else named++;
  }
  if (has ? named > t->ndim : named != t->ndim)
    return em_fail(EM_ERR_RUNTIME, "einsum(): the number of subscripts in the equation (%d) %s the number of dimensions (%d) for operand "
                   "%lld%s", named, has ? "is more than" : "does not match", t->ndim, (long long)operand,
                   has ? "" : " and no ellipsis was given");
  *dots = has ? t->ndim - named : 0;
  return EM_OK;
}
static em_status read_inputs(equation *e, em_tensors t) {
  int64_t at = 0;
  int labels[EM_MAX_DIMS + 1], n, dots;
  for (int64_t i = 0; i < t.n; i++) {
    EM_PASS(read_operand(e, &at, i, labels, &n));
    EM_PASS(count_dots(labels, n, t.p[i], i, &dots));
    if (dots > e->ellipsis) e->ellipsis = dots;
    for (int k = 0; k < n; k++)
      if (labels[k] >= 0) e->count[labels[k]]++;
    if (at >= e->input_length && i + 1 < t.n)
      return em_fail(EM_ERR_RUNTIME, "einsum(): more operands were provided than specified in the equation");
    at++;
  }
  if (at <= e->input_length) return em_fail(EM_ERR_RUNTIME, "einsum(): fewer operands were provided than specified in the equation");
  return EM_OK;
}
static em_status read_output(equation *e) {
  bool dots = false;
  for (const char *c = e->output; *c != 0; c++) {
    if (*c == ' ') continue;
    if (*c == '.') {
      if (dots) return em_fail(EM_ERR_RUNTIME, "einsum(): found '.' for output but an ellipsis (...) was already found");
      if (c[1] != '.' || c[2] != '.') return em_fail(EM_ERR_RUNTIME,
                                                     "einsum(): found '.' for output that is not part of any ellipsis (...)");
      c += 2;
      dots = true;
      e->ellipsis_at = e->nout;
      e->nout += e->ellipsis;
      continue;
    }
    const int label = label_of(*c);
    if (label < 0)
      return em_fail(EM_ERR_RUNTIME,
                     "einsum(): invalid subscript given at index %lld in the equation string, subscripts must be in [a-zA-Z]",
                     (long long)(c - e->input));
    if (e->place[label] >= 0) return em_fail(EM_ERR_RUNTIME, "einsum(): output subscript %c appears more than once in the output", *c);
    if (e->count[label] == 0)
      return em_fail(EM_ERR_RUNTIME, "einsum(): output subscript %c does not appear in the equation for any input operand", *c);
    e->place[label] = e->nout++;
  }
  return EM_OK;
}
// The common order of labels.
static em_status order_labels(equation *e) {
  for (int l = 0; l < LABELS; l++) e->place[l] = -1;
  if (e->output != NULL) {
    EM_PASS(read_output(e));
  } else {  // the ellipsis, then labels that occur once, in order
    e->ellipsis_at = 0;
    e->nout = e->ellipsis;
    for (int l = 0; l < LABELS; l++)
      if (e->count[l] == 1) e->place[l] = e->nout++;
  }
  e->ndim = e->nout;
  if (e->ellipsis_at < 0) {
    e->ellipsis_at = e->ndim;
    e->ndim += e->ellipsis;
  }
  for (int l = 0; l < LABELS; l++)
    if (e->count[l] > 0 && e->place[l] < 0) e->place[l] = e->ndim++;
  return e->ndim <= EM_MAX_DIMS ? EM_OK : em_fail(EM_ERR_RUNTIME, "einsum(): more than 64 dimensions");
}

// The view of one operand: diagonals of repeated labels, permuted, with size 1 for labels that it lacks.
static em_status arrange(const equation *e, const int *labels, int n, int dots, em_tensor *t, int64_t operand, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *x = em_tensor_retain(t), *next;
  int64_t order[EM_MAX_DIMS], from[EM_MAX_DIMS];
  for (int d = 0; d < e->ndim; d++) from[d] = -1;
  int dim = 0;
  for (int i = 0; i < n; i++) {
    if (labels[i] < 0) {
      for (int k = 0; k < dots; k++) from[e->ellipsis_at + e->ellipsis - dots + k] = dim++;
      continue;
    }
    const int64_t place = e->place[labels[i]];
    if (from[place] < 0) {
      from[place] = dim++;
      continue;
    }
    const int64_t first = from[place];
    if (x->sizes[first] != x->sizes[dim])
      EM_FAIL(EM_ERR_RUNTIME, "einsum(): subscript %c is repeated for operand %lld but the sizes don't match, %lld != %lld",
              letter_of(labels[i]), (long long)operand, (long long)x->sizes[dim], (long long)x->sizes[first]);
    EM_TRY(em_call_diagonal(x, 0, first, dim, &next));
    em_tensor_release(x);
    x = next;
    EM_TRY(em_call_movedim_int(x, -1, first, &next));
    em_tensor_release(x);
    x = next;
  }
  int extra = 0;
  for (int d = 0; d < e->ndim; d++)
    if (from[d] < 0) {
      EM_TRY(em_call_unsqueeze(x, x->ndim, &next));
      em_tensor_release(x);
      x = next;
      order[d] = dim + extra++;
    } else {
      order[d] = from[d];
    }
  EM_TRY(em_call_permute(x, (em_ints){order, e->ndim}, out));
fail:
  em_tensor_release(x);
  return st;
}
static em_status check_sizes(const equation *e, const em_tensor *t, int64_t operand, int64_t *sizes) {
  for (int d = 0; d < e->ndim; d++) {
    if (t->sizes[d] == sizes[d] || t->sizes[d] == 1) continue;
    if (sizes[d] == 1) {
      sizes[d] = t->sizes[d];
      continue;
    }
    for (int l = 0; l < LABELS; l++)
      if (e->place[l] == d)
        return em_fail(EM_ERR_RUNTIME,
                       "einsum(): subscript %c has size %lld for operand %lld which does not broadcast with previously seen "
                       "size %lld", letter_of(l), (long long)t->sizes[d], (long long)operand, (long long)sizes[d]);
    return em_fail(EM_ERR_RUNTIME,
                   "einsum(): operands do not broadcast with remapped shapes [original->remapped]: size %lld of operand %lld "
                   "does not match %lld", (long long)t->sizes[d], (long long)operand, (long long)sizes[d]);
  }
  return EM_OK;
}

// ---- contraction of two --------------------------------------------------------------------------------------------------------

typedef struct split_dims { int64_t both[EM_MAX_DIMS], left[EM_MAX_DIMS], right[EM_MAX_DIMS], sum[EM_MAX_DIMS]; int nb, nl, nr,
                           ns; } split_dims;

static int64_t product_of(const em_tensor *t, const int64_t *dims, int n) {
  int64_t p = 1;
  for (int i = 0; i < n; i++) p *= t->sizes[dims[i]];
  return p;
}
static int append(int64_t *order, int at, const int64_t *dims, int n) {
  for (int i = 0; i < n; i++) order[at++] = dims[i];
  return at;
}
static em_status as_batch(em_tensor *t, const int64_t *order, int64_t a, int64_t b, int64_t c, em_tensor **out) {
  em_tensor *turned;
  EM_PASS(em_call_permute(t, (em_ints){order, t->ndim}, &turned));
  em_status st = em_call_reshape(turned, EM_INTS(a, b, c), out);
  em_tensor_release(turned);
  return st;
}
// bmm over the dims that both have, with the result put back into the common order.
static em_status pair_product(em_tensor *a, em_tensor *b, const split_dims *s, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *left = NULL, *right = NULL, *product = NULL, *shaped = NULL;
  int64_t order[EM_MAX_DIMS], sizes[EM_MAX_DIMS], back[EM_MAX_DIMS];
  const int64_t both = product_of(a, s->both, s->nb), rows = product_of(a, s->left, s->nl), columns = product_of(b, s->right, s->nr),
                inner = product_of(a, s->sum, s->ns);
  int n = append(order, append(order, append(order, append(order, 0, s->both, s->nb), s->left, s->nl), s->sum, s->ns), s->right, s->nr);
  EM_TRY(as_batch(a, order, both, rows, inner, &left));
  n = append(order, append(order, append(order, append(order, 0, s->both, s->nb), s->sum, s->ns), s->right, s->nr), s->left, s->nl);
  EM_TRY(as_batch(b, order, both, inner, columns, &right));
  EM_TRY(em_call_bmm(left, right, &product));
  n = append(order, append(order, append(order, append(order, 0, s->both, s->nb), s->left, s->nl), s->sum, s->ns), s->right, s->nr);
  for (int i = 0; i < n; i++) {
    const bool summed = i >= s->nb + s->nl && i < s->nb + s->nl + s->ns, of_right = i >= s->nb + s->nl + s->ns;
    sizes[i] = summed ? 1 : (of_right ? b : a)->sizes[order[i]];
    back[order[i]] = i;
  }
  EM_TRY(em_call_reshape(product, (em_ints){sizes, n}, &shaped));
  EM_TRY(em_call_permute(shaped, (em_ints){back, n}, out));
fail:
  em_tensor_release(left);
  em_tensor_release(right);
  em_tensor_release(product);
  em_tensor_release(shaped);
  return st;
}
static em_status summed(em_tensor **t, int64_t dim) {
  em_tensor *next;
  EM_PASS(em_call_sum_dim_IntList(*t, EM_INTS(dim), true, EM_DTYPE_NONE, &next));
  em_tensor_release(*t);
  *t = next;
  return EM_OK;
}
// a times b, summed over the dims marked in `sum`, which keep size 1.
static em_status contract(em_tensor *a, em_tensor *b, const bool *sum, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *x = em_tensor_retain(a), *y = em_tensor_retain(b);
  split_dims s = {.nb = 0};
  for (int d = 0; d < a->ndim; d++) {
    const bool in_a = a->sizes[d] != 1, in_b = b->sizes[d] != 1;
    if (sum[d] && in_a && in_b) {
      s.sum[s.ns++] = d;
      continue;
    }
    if (sum[d] && in_a) EM_TRY(summed(&x, d));
    else if (sum[d] && in_b) EM_TRY(summed(&y, d));
    if (sum[d]) s.right[s.nr++] = d;
    else if (in_a && in_b) s.both[s.nb++] = d;
    else if (in_a) s.left[s.nl++] = d;
    else s.right[s.nr++] = d;
  }
  if (s.ns == 0) EM_TRY(em_call_mul_Tensor(x, y, out));
  else EM_TRY(pair_product(x, y, &s, out));
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  return st;
}
// Which dims may be summed when operands i and j meet: those that no other has.
static void closed_dims(const equation *e, const em_tensor_list *l, int64_t i, int64_t j, bool *sum) {
  for (int d = 0; d < e->ndim; d++) sum[d] = d >= e->nout;
  for (int64_t k = 0; k < l->n; k++)
    for (int d = e->nout; d < e->ndim; d++)
      if (k != i && k != j && l->p[k] != NULL && l->p[k]->sizes[d] != 1) sum[d] = false;
}
static em_status finish(const equation *e, em_tensor *t, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *x = em_tensor_retain(t);
  int64_t dims[EM_MAX_DIMS];
  int n = 0;
  for (int d = e->nout; d < e->ndim; d++) dims[n++] = d;
  bool any = false;
  for (int i = 0; i < n; i++) any |= t->sizes[dims[i]] != 1;
  if (n > 0 && any) {
    EM_TRY(em_call_sum_dim_IntList(x, (em_ints){dims, n}, false, EM_DTYPE_NONE, out));
  } else if (n > 0) {
    EM_TRY(em_call_squeeze_dims(x, (em_ints){dims, n}, out));
  } else {
    *out = x;
    x = NULL;
  }
fail:
  em_tensor_release(x);
  return st;
}
// Which two operands are next: those of the path (positions in the list as it shrinks), or the first two.
static em_status next_pair(const em_tensor_list *l, em_ints path, int64_t step, int64_t left, int64_t *i, int64_t *j) {
  int64_t at[2] = {0, 1}, found[2] = {-1, -1};
  if (path.n > 0) {
    at[0] = path.p[2 * step];
    at[1] = path.p[2 * step + 1];
    if (at[0] > at[1]) {
      int64_t t = at[0];
      at[0] = at[1];
      at[1] = t;
    }
  }
  if (at[0] == at[1] || at[0] < 0 || at[1] >= left)
    return em_fail(EM_ERR_RUNTIME,
                   "einsum(): cannot contract an operand that does not exist, or with itself: path names %lld and %lld of %lld",
                   (long long)at[0], (long long)at[1], (long long)left);
  int64_t seen = 0;
  for (int64_t k = 0; k < l->n; k++) {
    if (l->p[k] == NULL) continue;
    if (seen == at[0]) found[0] = k;
    if (seen == at[1]) found[1] = k;
    seen++;
  }
  *i = found[0];
  *j = found[1];
  return EM_OK;
}
static em_status check_path(em_ints path, int64_t n) {
  if (path.n <= 0 || n == 1) return EM_OK;
  if (path.n == (n - 1) * 2) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "einsum(): expected contraction path given in path parameter to have size %lld but got %lld",
                 (long long)(n - 1) * 2, (long long)path.n);
}
em_status c_einsum(const char *text, em_tensors tensors, em_ints path, em_tensor **out) {
  if (tensors.n == 0) return em_fail(EM_ERR_RUNTIME, "einsum(): must provide at least one operand");
  EM_PASS(check_path(path, tensors.n));
  equation e = {.ellipsis_at = -1};
  int64_t sizes[EM_MAX_DIMS], at = 0, i = 0, j = 0;
  int labels[EM_MAX_DIMS + 1], n, dots;
  bool sum[EM_MAX_DIMS];
  split(text, &e);
  EM_PASS(read_inputs(&e, tensors));
  EM_PASS(order_labels(&e));
  for (int d = 0; d < e.ndim; d++) sizes[d] = 1;
  em_status st = EM_OK;
  em_tensor_list list;  // operands, then intermediate results
  EM_PASS(em_tensor_list_new(2 * tensors.n, &list));
  for (i = 0; i < tensors.n; i++, at++) {
    EM_TRY(read_operand(&e, &at, i, labels, &n));
    EM_TRY(count_dots(labels, n, tensors.p[i], i, &dots));
    EM_TRY(arrange(&e, labels, n, dots, tensors.p[i], i, &list.p[i]));
    EM_TRY(check_sizes(&e, list.p[i], i, sizes));
  }
  for (int64_t step = 0; step + 1 < tensors.n; step++) {
    EM_TRY(next_pair(&list, path, step, tensors.n - step, &i, &j));
    closed_dims(&e, &list, i, j, sum);
    // without a path the result takes the first operand's place, so that they meet from left to right
    em_tensor **to = path.n > 0 ? &list.p[tensors.n + step] : &list.p[i], *product;
    EM_TRY(contract(list.p[i], list.p[j], sum, &product));
    EM_CLEAR_TENSOR(&list.p[i]);
    EM_CLEAR_TENSOR(&list.p[j]);
    *to = product;
  }
  for (i = 0; list.p[i] == NULL;) i++;
  EM_TRY(finish(&e, list.p[i], out));
fail:
  em_tensor_list_clear(&list);
  return st;
}
