// softmax.c: splits a tensor into rows or bands for the loops of softmax_loops.c. f16 and bf16 pass through f32.
#include "softmax_loops.h"
#include "../../core/half.h"
#include "../../core/note.h"
#include "../../core/threads.h"
#include "gen_ops.h"

EM_ISA_DECLARE(const em_softmax_table, em_priv_softmax, );
static const em_softmax_table *table;
__attribute__((constructor)) static void pick(void) {
  int isa = em_priv_isa_choose();
  (void)isa;
#if defined(EM_HAVE_AVX2) && defined(EM_HAVE_AVX512)
  table = isa == EM_ISA_V512 ? &em_priv_softmax_avx512
          : isa == EM_ISA_V2 ? &em_priv_softmax_avx2
                             : &em_priv_softmax_baseline;
#else
  table = &em_priv_softmax_baseline;
#endif
}

typedef struct job {
  int kind, wide;  // wide: 1 for f64
  char *out;
  const char *a, *b;
  int64_t n, inner, bands;  // reduced size, elements after it, bands of EM_SM_BAND columns
  size_t size;
  em_softmax_round round;
} job;
static float round_f16(float x) { return em_f16_to_f32(em_f32_to_f16(x)); }
static float round_bf16(float x) { return em_bf16_to_f32(em_f32_to_bf16(x)); }
static em_status rows(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const size_t at = (size_t)(begin * j->n) * j->size;
  table->rows[j->kind][j->wide](j->out + at, j->a + at, j->b == NULL ? NULL : j->b + at, j->n, end - begin, j->round);
  return EM_OK;
}
static em_status bands(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  em_softmax_band fn = table->band[j->kind][j->wide];
  for (int64_t i = begin; i < end; i++) {
    int64_t outer = i / j->bands, first = i % j->bands * EM_SM_BAND,
            w = j->inner - first < EM_SM_BAND ? j->inner - first : EM_SM_BAND;
    size_t at = (size_t)(outer * j->n * j->inner + first) * j->size;
    fn(j->out + at, j->a + at, j->b == NULL ? NULL : j->b + at, j->n, j->inner, w);
  }
  return EM_OK;
}
static em_status run(int kind, int64_t dim, em_tensor *a, em_tensor *b, em_tensor *out) {
  if (out->numel == 0) return EM_OK;
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL, *z = NULL;
  int compute = em_priv_dtypes[out->dtype].compute;
  // Loops read and write dense rows of the compute dtype.
  bool direct = out->dtype == compute && em_tensor_is_contiguous(out);
  if (!direct) EM_TRY(em_tensor_new(a->ndim, a->sizes, compute, a->device, &z));
  if (a->dtype == compute && em_tensor_is_contiguous(a)) x = em_tensor_retain(a);
  else {
    EM_TRY(em_tensor_new(a->ndim, a->sizes, compute, a->device, &x));
    EM_TRY(em_copy_into(x, a));
  }
  if (b != NULL && b->dtype == compute && em_tensor_is_contiguous(b)) y = em_tensor_retain(b);
  else if (b != NULL) {
    EM_TRY(em_tensor_new(b->ndim, b->sizes, compute, b->device, &y));
    EM_TRY(em_copy_into(y, b));
  }
  job j = {.kind = kind,
           .wide = compute == EM_F64,
           .out = em_tensor_data(direct ? out : z),
           .a = em_tensor_data(x),
           .b = y == NULL ? NULL : em_tensor_data(y),
           .n = out->ndim == 0 ? 1 : out->sizes[dim],
           .inner = 1,
           .size = em_dtype_size(compute),
           .round = dim < out->ndim - 1     ? NULL
                    : out->dtype == EM_F16 ? round_f16 : out->dtype == EM_BF16 ? round_bf16 : NULL};
  for (int d = (int)dim + 1; d < out->ndim; d++) j.inner *= out->sizes[d];
  int64_t outer = out->numel / (j.n * j.inner);
  j.bands = (j.inner + EM_SM_BAND - 1) / EM_SM_BAND;
  if (j.inner == 1)
    EM_NOTE("rows: %lld of %lld elements, %s loop in %s (bands refused: rows lie dense)", (long long)outer,
            (long long)j.n, em_priv_note_isa, em_dtype_name(compute));
  else
    EM_NOTE("bands: up to %d neighbouring columns of %lld elements together, %s loop in %s (rows refused: a row's elements lie %lld apart)",
            EM_SM_BAND, (long long)j.n, em_priv_note_isa, em_dtype_name(compute), (long long)j.inner);
  void *token = em_priv_begin_long(out->numel > EM_LONG_NUMEL);
  if (j.inner == 1) st = em_threads_for(outer, EM_LONG_NUMEL / 2 / j.n + 1, rows, &j);
  else st = em_threads_for(outer * j.bands, EM_LONG_NUMEL / 2 / (j.n * EM_SM_BAND) + 1, bands, &j);
  em_priv_end_long(token);
  if (st == EM_OK && !direct) st = em_copy_into(out, z);
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  em_tensor_release(z);
  return st;
}

em_status k_cpu_softmax(em_plan *p, em_tensor *self, int64_t dim, bool half_to_float, em_tensor *out) {
  (void)dim;
  (void)half_to_float;
  return run(EM_SM_SOFTMAX, p->attr[0], self, NULL, out);
}
em_status k_cpu_log_softmax(em_plan *p, em_tensor *self, int64_t dim, bool half_to_float, em_tensor *out) {
  (void)dim;
  (void)half_to_float;
  return run(EM_SM_LOG_SOFTMAX, p->attr[0], self, NULL, out);
}
em_status k_cpu_softmax_backward(em_plan *p, em_tensor *grad_output, em_tensor *output, int64_t dim, int input_dtype,
                                 em_tensor *out) {
  (void)dim;
  (void)input_dtype;
  return run(EM_SM_SOFTMAX_BACKWARD, p->attr[0], grad_output, output, out);
}
em_status k_cpu_log_softmax_backward(em_plan *p, em_tensor *grad_output, em_tensor *output, int64_t dim,
                                     int input_dtype, em_tensor *out) {
  (void)dim;
  (void)input_dtype;
  return run(EM_SM_LOG_SOFTMAX_BACKWARD, p->attr[0], grad_output, output, out);
}
