// products.c: kernels of mm, addmm, bmm, mv, dot and their kin. Each describes its product as an em_gemm; em_priv_gemm cuts that into
// pieces and gives them to whoever does such a piece best: the small loops, OpenBLAS, oneDNN, or the loops again.
//
// The pieces depend on the sizes alone, never on the number of threads, and each is computed by one thread: the same bits always.
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "../../core/iterator.h"
#include "../../core/threads.h"
#include "../../core/note.h"
#include "gemm.h"
#include "gen_ops.h"
#include "isa.h"
#include "lib_blas.h"
#include "lib_onednn.h"

EM_ISA_DECLARE(const em_gemm_loops, em_priv_gemm_loops, [1]);
static const em_gemm_loops *loops;
__attribute__((constructor)) static void choose_loops(void) { loops = EM_ISA_PICK(em_priv_gemm_loops); }

// Products that cost less than a library's call does (multiplications).
#define SMALL_WORK (32.0 * 32 * 32)
#define LIBRARY_HALF_WORK 65536.0   // f16 and bf16: also the check's bound for workspace
#define PIECE_LEAST 1048576.0       // multiplications that are worth another thread
#define PIECE_MOST 33554432.0
#define PIECE_ONEDNN 33554432.0     // the same for oneDNN
#define COLUMN_LEAST 131072.0       // the same for products with one column, which wait for memory
#define PIECES 8                    // wanted of a product in between
#define LONG_WORK 1e6               // worth giving the host's lock up

typedef enum route { ROUTE_LOOPS, ROUTE_COLUMN, ROUTE_BLAS, ROUTE_ONEDNN } route;

typedef struct gemm_run {
  const em_gemm *g;
  route how;
  int64_t rows, cols;    // of a piece
  int64_t down, across;  // pieces of one matrix
  float *wide;           // oneDNN's f32 result, m x n, when it is scaled afterwards; else NULL
} gemm_run;

// --- OpenBLAS

typedef struct blas_matrix { int trans, ld; } blas_matrix;

// Row-major with rows `ld` apart, or the transpose of that. Zero strides (expanded operands) and slices with gaps on both sides are
// neither: the loops take those. A dim of size 1 may have any stride.
static bool blas_layout(const em_matrix *x, int64_t rows, int64_t cols, blas_matrix *out) {
  int64_t ld;
  if ((x->col == 1 || cols == 1) && (rows == 1 || x->row >= cols)) {
    out->trans = EM_BLAS_NO_TRANS;
    ld = rows == 1 ? cols : x->row;
  } else if ((x->row == 1 || rows == 1) && (cols == 1 || x->col >= rows)) {
    out->trans = EM_BLAS_TRANS;
    ld = cols == 1 ? rows : x->col;
  } else {
    return false;
  }
  out->ld = (int)ld;
  return ld <= INT_MAX && rows <= INT_MAX && cols <= INT_MAX;
}
static bool fits_blas(const em_gemm *g) {
  blas_matrix a, b, c;
  if (g->dtype != EM_F32 && g->dtype != EM_F64 && !em_dtype_is_complex(g->dtype)) return false;
  return blas_layout(&g->a, g->m, g->k, &a) && blas_layout(&g->b, g->k, g->n, &b) && blas_layout(&g->c, g->m, g->n, &c) &&
         c.trans == EM_BLAS_NO_TRANS;
}
static void run_blas(const em_gemm *g) {
  const em_blas *lib = em_priv_blas();
  const int64_t item = (int64_t)em_dtype_size(g->dtype);
  blas_matrix a, b, c;
  (void)(blas_layout(&g->a, g->m, g->k, &a) && blas_layout(&g->b, g->k, g->n, &b) && blas_layout(&g->c, g->m, g->n, &c));
  const int m = (int)g->m, n = (int)g->n, k = (int)g->k;
  em_c128 beta = g->beta;
  if (g->s.data == NULL) beta = (em_c128){0, 0};
  else if (g->s.data != g->c.data)
    for (int64_t i = 0; i < g->m; i++)
      em_priv_casts[g->dtype][g->dtype](g->c.data + i * g->c.row * item, g->c.col * item, g->s.data + i * g->s.row * item,
                                        g->s.col * item, g->n);
  const em_c64 alpha32 = {(float)g->alpha.re, (float)g->alpha.im}, beta32 = {(float)beta.re, (float)beta.im};
  const void *pa = g->a.data, *pb = g->b.data;
  void *pc = g->c.data;
  switch (g->dtype) {
    case EM_F32: lib->sgemm(EM_BLAS_ROW_MAJOR, a.trans, b.trans, m, n, k, alpha32.re, pa, a.ld, pb, b.ld, beta32.re, pc, c.ld); break;
    case EM_F64: lib->dgemm(EM_BLAS_ROW_MAJOR, a.trans, b.trans, m, n, k, g->alpha.re, pa, a.ld, pb, b.ld, beta.re, pc, c.ld); break;
    case EM_C64: lib->cgemm(EM_BLAS_ROW_MAJOR, a.trans, b.trans, m, n, k, &alpha32, pa, a.ld, pb, b.ld, &beta32, pc, c.ld); break;
    default: lib->zgemm(EM_BLAS_ROW_MAJOR, a.trans, b.trans, m, n, k, &g->alpha, pa, a.ld, pb, b.ld, &beta, pc, c.ld); break;
  }
}

// --- pieces

static void run_blocks(const em_gemm *g) {
  const int64_t item = (int64_t)em_dtype_size(g->dtype);
  em_gemm part = *g;
  for (int64_t i = 0; i < g->m; i += EM_GEMM_ROWS)
    for (int64_t j = 0; j < g->n; j += EM_GEMM_COLS) {
      part.m = g->m - i < EM_GEMM_ROWS ? g->m - i : EM_GEMM_ROWS;
      part.n = g->n - j < EM_GEMM_COLS ? g->n - j : EM_GEMM_COLS;
      part.a.data = g->a.data + i * g->a.row * item;
      part.b.data = g->b.data + j * g->b.col * item;
      part.c.data = g->c.data + (i * g->c.row + j * g->c.col) * item;
      if (g->s.data != NULL) part.s.data = g->s.data + (i * g->s.row + j * g->s.col) * item;
      loops->block(&part);
    }
}

// A piece that the library refuses is computed by the loops.
static void run_onednn(const em_gemm *g, float *wide) {
  const em_onednn_operand a = {g->dtype, g->a.data, g->a.row, g->a.col}, b = {g->dtype, g->b.data, g->b.row, g->b.col};
  const em_onednn_operand c = {g->dtype, g->c.data, g->c.row, g->c.col}, sums = {EM_F32, wide, g->n, 1};
  if (!em_priv_onednn_matmul(g->m, g->n, g->k, &a, &b, wide == NULL ? &c : &sums)) run_blocks(g);
  else if (wide != NULL) loops->finish(g, wide);
}

static em_status run_pieces(void *context, int64_t begin, int64_t end) {
  const gemm_run *r = context;
  const em_gemm *g = r->g;
  const int64_t item = (int64_t)em_dtype_size(g->dtype), each = r->down * r->across;
  for (int64_t t = begin; t < end; t++) {
    const int64_t matrix = t / each, i = t % each / r->across * r->rows, j = t % each % r->across * r->cols;
    em_gemm p = *g;
    p.m = g->m - i < r->rows ? g->m - i : r->rows;
    p.n = g->n - j < r->cols ? g->n - j : r->cols;
    p.a.data += (matrix * g->a.step + i * g->a.row) * item;
    p.b.data += (matrix * g->b.step + j * g->b.col) * item;
    p.c.data += (matrix * g->c.step + i * g->c.row + j * g->c.col) * item;
    if (p.s.data != NULL) p.s.data += (matrix * g->s.step + i * g->s.row + j * g->s.col) * item;
    switch (r->how) {
      case ROUTE_COLUMN: loops->column(&p); break;
      case ROUTE_BLAS: run_blas(&p); break;
      case ROUTE_ONEDNN: run_onednn(&p, r->wide == NULL ? NULL : r->wide + i * g->n + j * p.m); break;
      case ROUTE_LOOPS: run_blocks(&p); break;
    }
  }
  return EM_OK;
}

static int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

// Halves the longer side until a piece is small enough.
static void cut(gemm_run *r, double work) {
  const em_gemm *g = r->g;
  double most = work / PIECES;
  const double least = r->how == ROUTE_COLUMN ? COLUMN_LEAST : PIECE_LEAST;
  most = most < least ? least : most > PIECE_MOST && r->how != ROUTE_ONEDNN ? PIECE_MOST : most;
  r->rows = g->m;
  r->cols = g->n;
  if (r->how == ROUTE_LOOPS && work > PIECE_LEAST) {
    r->rows = r->rows < EM_GEMM_ROWS ? r->rows : EM_GEMM_ROWS;
    r->cols = r->cols < EM_GEMM_COLS ? r->cols : EM_GEMM_COLS;
  } else {
    const bool columns = r->how == ROUTE_ONEDNN;  // which turns B about for each piece: only B is cut while it can be
    if (columns && most < PIECE_ONEDNN) most = PIECE_ONEDNN;
    while ((double)r->rows * (double)r->cols * (double)g->k > most && (r->rows > 64 || r->cols > 64)) {
      if (columns ? r->cols <= 64 : r->rows >= r->cols) r->rows = round_up((r->rows + 1) / 2, 16);
      else r->cols = round_up((r->cols + 1) / 2, 16);
    }
  }
  r->down = (g->m + r->rows - 1) / r->rows;
  r->across = (g->n + r->cols - 1) / r->cols;
}

static route choose(const em_gemm *g, double work, const em_plan *p) {
  const bool half = g->dtype == EM_F16 || g->dtype == EM_BF16;
  if (g->n == 1 && (half || g->dtype == EM_F32 || g->dtype == EM_F64)) return ROUTE_COLUMN;
  if (half) {
    const bool plain = g->s.data == NULL && g->alpha.re == 1;
    const bool dense = (g->a.row == 1 || g->a.col == 1) && (g->b.row == 1 || g->b.col == 1) && g->c.col == 1;
    return work >= LIBRARY_HALF_WORK && dense && (plain || (p->work != NULL && g->batch == 1)) && em_priv_onednn_likes(g->dtype)
             ? ROUTE_ONEDNN : ROUTE_LOOPS;
  }
  return work > SMALL_WORK && fits_blas(g) && em_priv_blas() != NULL ? ROUTE_BLAS : ROUTE_LOOPS;
}

// C^T = B^T A^T: turns a product whose C lies column by column, or has one row, into the other kind.
static void transpose(em_gemm *g) {
  const em_matrix a = {g->b.data, g->b.col, g->b.row, g->b.step}, b = {g->a.data, g->a.col, g->a.row, g->a.step};
  const int64_t m = g->n;
  g->n = g->m;
  g->m = m;
  g->a = a;
  g->b = b;
  g->c = (em_matrix){g->c.data, g->c.col, g->c.row, g->c.step};
  g->s = (em_matrix){g->s.data, g->s.col, g->s.row, g->s.step};
}

// For the lights: who computes this product, and why not somebody else.
static const char *why_no_onednn(const em_gemm *g, double work, const em_plan *p) {
  if (work < LIBRARY_HALF_WORK) return "too small to be worth a library's call";
  if (!((g->a.row == 1 || g->a.col == 1) && (g->b.row == 1 || g->b.col == 1) && g->c.col == 1)) return "strides that it cannot read";
  if ((g->s.data != NULL || g->alpha.re != 1) && (p->work == NULL || g->batch != 1)) return "a batch that is added to something or scaled";
  if (g->dtype == EM_F16) return "it would convert float16 as Ember does";
  return "not found, or the processor has no bfloat16 instructions";
}
static __attribute__((cold)) void note_route(const em_gemm *g, route how, double work, const em_plan *p) {
  static const char *const names[] = {"Ember's blocks", "Ember's column loop", "OpenBLAS", "oneDNN"};
  const bool half = em_dtype_size(g->dtype) == 2 && em_dtype_is_float(g->dtype);
  const char *other = half ? "oneDNN" : "OpenBLAS", *why = "not found (EMBER_LOG=libs says where it was looked for)";
  if (how == ROUTE_BLAS || how == ROUTE_ONEDNN) other = "Ember's blocks", why = "slower at this size";
  else if (how == ROUTE_COLUMN) why = "one column waits for memory, a library would not be faster";
  else if (half) why = why_no_onednn(g, work, p);
  else if (em_dtype_is_integral(g->dtype)) why = "it has no integer products";
  else if (work <= SMALL_WORK) why = "too small to be worth a library's call";
  else if (!fits_blas(g)) why = "strides that it cannot read";
  char times[32] = "";
  if (g->batch != 1) snprintf(times, sizeof times, "%lld times ", (long long)g->batch);
  em_note_write("%s: %s(%lld x %lld)(%lld x %lld) in %s (%s refused: %s)", names[how], times, (long long)g->m, (long long)g->k,
                (long long)g->k, (long long)g->n, em_dtype_name(g->dtype), other, why);
}

static em_status run_gemm(em_gemm *g, em_plan *p) {
  if (g->m == 0 || g->n == 0 || g->batch == 0) return EM_OK;
  if (!em_dtype_is_integral(g->dtype) && g->alpha.re == 0 && g->alpha.im == 0) g->k = 0;  // what A and B hold is not looked at
  if ((g->m == 1 && g->n != 1) || (g->c.col != 1 && g->c.row == 1 && g->n != 1)) transpose(g);
  const double work = (double)g->m * (double)g->n * (double)g->k;
  gemm_run r = {.g = g, .how = choose(g, work, p)};
  if (EM_UNLIKELY(em_priv_notes_wanted)) note_route(g, r.how, work, p);
  if (work <= SMALL_WORK && g->batch == 1 && r.how == ROUTE_LOOPS) {
    if (EM_UNLIKELY(em_priv_notes_wanted)) em_note_threads(1, 1, 1);
    run_blocks(g);
    return EM_OK;
  }
  cut(&r, work);
  if (r.how == ROUTE_ONEDNN && (g->s.data != NULL || g->alpha.re != 1)) r.wide = p->work;
  const int64_t pieces = g->batch * r.down * r.across;
  const double each = (double)r.rows * (double)r.cols * (double)(g->k + 1);
  const int64_t grain = each >= PIECE_LEAST / 4 ? 1 : (int64_t)(PIECE_LEAST / 4 / each) + 1;
  void *token = em_priv_begin_long(work * (double)g->batch >= LONG_WORK);
  em_status st = em_threads_for(pieces, grain, run_pieces, &r);
  em_priv_end_long(token);
  return st;
}

const em_gemm_loops *em_priv_gemm_table(void) { return EM_ISA_PICK(em_priv_gemm_loops); }
em_status em_priv_gemm(em_gemm *g) {
  em_plan p;
  em_plan_init(&p);
  return run_gemm(g, &p);
}

// --- kernels

static em_matrix matrix_of(const em_tensor *t) {
  const int d = t->ndim - 2;
  return (em_matrix){em_tensor_data(t), t->strides[d], t->strides[d + 1], d > 0 ? t->strides[0] : 0};
}
// S broadcast to the result: dims that it has not, or of size 1, are walked with stride 0.
static em_matrix self_of(const em_tensor *self) {
  const int n = self->ndim;
  int64_t stride[3] = {0, 0, 0};
  for (int d = 0; d < n; d++) stride[3 - n + d] = self->sizes[d] == 1 ? 0 : self->strides[d];
  return (em_matrix){em_tensor_data(self), stride[1], stride[2], stride[0]};
}
static void scale(em_gemm *g, const em_tensor *self, em_scalar beta, em_scalar alpha) {
  g->alpha = em_scalar_to_c128(alpha);
  g->beta = em_scalar_to_c128(beta);
  g->ialpha = em_scalar_to_int(alpha);
  g->ibeta = em_scalar_to_int(beta);
  const bool none = em_dtype_is_integral(g->dtype) ? g->ibeta == 0 : g->beta.re == 0 && g->beta.im == 0;
  g->s = none ? (em_matrix){NULL, 0, 0, 0} : self_of(self);
}
static em_gemm product(em_matrix a, em_matrix b, const em_tensor *out, int64_t m, int64_t n, int64_t k) {
  return (em_gemm){.dtype = out->dtype, .m = m, .n = n, .k = k, .batch = 1, .a = a, .b = b, .alpha = {1, 0}, .ialpha = 1};
}

em_status k_cpu_mm(em_plan *p, em_tensor *self, em_tensor *mat2, em_tensor *out) {
  em_gemm g = product(matrix_of(self), matrix_of(mat2), out, self->sizes[0], mat2->sizes[1], self->sizes[1]);
  g.c = matrix_of(out);
  return run_gemm(&g, p);
}
em_status k_cpu_addmm(em_plan *p, em_tensor *self, em_tensor *mat1, em_tensor *mat2, em_scalar beta, em_scalar alpha, em_tensor *out) {
  em_gemm g = product(matrix_of(mat1), matrix_of(mat2), out, mat1->sizes[0], mat2->sizes[1], mat1->sizes[1]);
  g.c = matrix_of(out);
  scale(&g, self, beta, alpha);
  return run_gemm(&g, p);
}
em_status k_cpu_bmm(em_plan *p, em_tensor *self, em_tensor *mat2, em_tensor *out) {
  em_gemm g = product(matrix_of(self), matrix_of(mat2), out, self->sizes[1], mat2->sizes[2], self->sizes[2]);
  g.c = matrix_of(out);
  g.batch = self->sizes[0];
  return run_gemm(&g, p);
}
em_status k_cpu_baddbmm(em_plan *p, em_tensor *self, em_tensor *batch1, em_tensor *batch2, em_scalar beta, em_scalar alpha,
                        em_tensor *out) {
  em_gemm g = product(matrix_of(batch1), matrix_of(batch2), out, batch1->sizes[1], batch2->sizes[2], batch1->sizes[2]);
  g.c = matrix_of(out);
  g.batch = batch1->sizes[0];
  scale(&g, self, beta, alpha);
  return run_gemm(&g, p);
}

static em_matrix column_of(const em_tensor *t) { return (em_matrix){em_tensor_data(t), t->strides[0], 0, 0}; }
em_status k_cpu_mv(em_plan *p, em_tensor *self, em_tensor *vec, em_tensor *out) {
  em_gemm g = product(matrix_of(self), column_of(vec), out, self->sizes[0], 1, self->sizes[1]);
  g.c = column_of(out);
  return run_gemm(&g, p);
}
em_status k_cpu_addmv(em_plan *p, em_tensor *self, em_tensor *mat, em_tensor *vec, em_scalar beta, em_scalar alpha, em_tensor *out) {
  em_gemm g = product(matrix_of(mat), column_of(vec), out, mat->sizes[0], 1, mat->sizes[1]);
  g.c = column_of(out);
  scale(&g, self, beta, alpha);
  if (g.s.data != NULL) g.s = (em_matrix){g.s.data, g.s.col, 0, 0};  // a vector's only dim runs down
  return run_gemm(&g, p);
}

static em_status run_dot(em_tensor *a, em_tensor *b, bool conj, em_tensor *out) {
  em_c128 value;
  EM_NOTE("Ember's dot loop: %lld %s elements, %s loop; on 1 thread (OpenBLAS refused: it would not be faster than memory)",
          (long long)a->numel, em_dtype_name(a->dtype), em_priv_note_isa);
  void *token = em_priv_begin_long(a->numel >= EM_LONG_NUMEL);
  loops->dot(a->dtype, conj, a->numel, em_tensor_data(a), a->strides[0], em_tensor_data(b), b->strides[0], &value);
  em_priv_end_long(token);
  const int computed = em_dtype_is_integral(a->dtype) ? EM_I64 : a->dtype == EM_F16 || a->dtype == EM_BF16 ? EM_F32 : a->dtype;
  em_cast_store(em_tensor_data(out), out->dtype, (int64_t)em_tensor_itemsize(out), &value, computed, 1);
  return EM_OK;
}
em_status k_cpu_dot(em_plan *p, em_tensor *self, em_tensor *tensor, em_tensor *out) {
  (void)p;
  return run_dot(self, tensor, false, out);
}
em_status k_cpu_vdot(em_plan *p, em_tensor *self, em_tensor *other, em_tensor *out) {
  (void)p;
  return run_dot(self, other, true, out);
}

// n elements of t as `dtype`, in the workspace when t has another.
static const char *vector_as(const em_tensor *t, int dtype, char **work, int64_t *stride) {
  *stride = t->strides[0];
  if (t->dtype == dtype) return em_tensor_data(t);
  char *to = *work;
  em_cast_load(to, dtype, em_tensor_data(t), t->dtype, t->strides[0] * (int64_t)em_tensor_itemsize(t), t->numel);
  *work += t->numel * (int64_t)em_dtype_size(dtype);
  *stride = 1;
  return to;
}
em_status k_cpu_addr(em_plan *p, em_tensor *self, em_tensor *vec1, em_tensor *vec2, em_scalar beta, em_scalar alpha, em_tensor *out) {
  char *work = p->work;
  const int dtype = out->dtype;
  if (out->numel == 0) return EM_OK;
  em_gemm g = product((em_matrix){0}, (em_matrix){0}, out, vec1->numel, vec2->numel, 1);
  g.a.data = (char *)(uintptr_t)vector_as(vec1, dtype, &work, &g.a.row);
  g.b.data = (char *)(uintptr_t)vector_as(vec2, dtype, &work, &g.b.col);
  g.c = matrix_of(out);
  scale(&g, self, beta, alpha);
  if (dtype == EM_BOOL) g.ialpha = g.ialpha != 0, g.ibeta = g.ibeta != 0;
  if (g.s.data != NULL && self->dtype != dtype) {
    const int64_t item = (int64_t)em_tensor_itemsize(self), wide = (int64_t)em_dtype_size(dtype);
    for (int64_t i = 0; i < g.m; i++)
      em_cast_load(work + i * g.n * wide, dtype, g.s.data + i * g.s.row * item, self->dtype, g.s.col * item, g.n);
    g.s = (em_matrix){work, g.n, 1, 0};
  }
  return run_gemm(&g, p);
}
