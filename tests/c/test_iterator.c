// The iterator against literals from PyTorch 2.13: strides of new outputs, promotion, casts, and its errors.
#include "core/iterator.h"
#include "check.h"
#include <math.h>
#include <string.h>

#define CPU ((em_device){EM_DEVICE_CPU, -1})
#define DIMS 4

typedef struct layout { int ndim; int64_t sizes[DIMS], strides[DIMS]; } layout;
typedef struct stride_case { layout in[2]; int nin; layout out; } stride_case;

// (a + b).stride(), or a.neg().stride(), of torch.empty_strided(sizes, strides)
static const stride_case stride_cases[] = {
  {{{3, {2, 3, 4}, {12, 4, 1}}, {3, {2, 3, 4}, {12, 4, 1}}}, 2, {3, {2, 3, 4}, {12, 4, 1}}},
  {{{3, {2, 3, 4}, {1, 2, 6}}, {3, {2, 3, 4}, {1, 2, 6}}}, 2, {3, {2, 3, 4}, {1, 2, 6}}},
  {{{3, {2, 3, 4}, {4, 8, 1}}}, 1, {3, {2, 3, 4}, {4, 8, 1}}},
  {{{3, {2, 3, 4}, {4, 8, 1}}, {3, {2, 3, 4}, {12, 4, 1}}}, 2, {3, {2, 3, 4}, {4, 8, 1}}},
  {{{3, {2, 3, 4}, {12, 4, 1}}, {3, {2, 3, 4}, {4, 8, 1}}}, 2, {3, {2, 3, 4}, {12, 4, 1}}},
  {{{3, {2, 3, 4}, {24, 8, 2}}}, 1, {3, {2, 3, 4}, {12, 4, 1}}},
  {{{2, {3, 1}, {1, 1}}, {2, {1, 4}, {4, 1}}}, 2, {2, {3, 4}, {4, 1}}},
  {{{1, {4}, {1}}, {2, {3, 4}, {1, 3}}}, 2, {2, {3, 4}, {1, 3}}},
  {{{4, {2, 3, 4, 5}, {60, 1, 15, 3}}}, 1, {4, {2, 3, 4, 5}, {60, 1, 15, 3}}},
  {{{4, {2, 3, 4, 5}, {60, 1, 15, 3}}, {4, {2, 3, 4, 5}, {60, 20, 5, 1}}}, 2, {4, {2, 3, 4, 5}, {60, 1, 15, 3}}},
  {{{4, {2, 3, 4, 5}, {60, 1, 15, 3}}, {4, {1, 3, 1, 1}, {3, 1, 1, 1}}}, 2, {4, {2, 3, 4, 5}, {60, 1, 15, 3}}},
  {{{3, {2, 3, 4}, {0, 4, 1}}}, 1, {3, {2, 3, 4}, {12, 4, 1}}},
  {{{3, {2, 3, 4}, {0, 4, 1}}, {3, {2, 3, 4}, {1, 2, 6}}}, 2, {3, {2, 3, 4}, {1, 8, 2}}},
  {{{3, {5, 1, 3}, {1, 7, 5}}}, 1, {3, {5, 1, 3}, {1, 7, 5}}},
  {{{3, {5, 1, 3}, {3, 3, 1}}, {3, {5, 2, 1}, {1, 5, 1}}}, 2, {3, {5, 2, 3}, {3, 15, 1}}},
  {{{2, {0, 3}, {3, 1}}, {2, {0, 3}, {1, 1}}}, 2, {2, {0, 3}, {3, 1}}},
  {{{2, {4, 4}, {8, 2}}, {2, {4, 4}, {2, 8}}}, 2, {2, {4, 4}, {4, 1}}},
};

static void test_strides(void) {
  for (size_t k = 0; k < sizeof stride_cases / sizeof *stride_cases; k++) {
    const stride_case *c = &stride_cases[k];
    em_tensor *in[2] = {NULL, NULL}, *out = NULL;
    em_iter it;
    em_iter_init(&it, 0);
    em_iter_add_output(&it, NULL, EM_DTYPE_NONE);
    for (int i = 0; i < c->nin; i++) {
      CHECK(em_tensor_new_strided(c->in[i].ndim, c->in[i].sizes, c->in[i].strides, EM_F32, CPU, &in[i]) == EM_OK);
      em_iter_add_input(&it, in[i]);
    }
    CHECK(em_iter_build(&it, EM_PROMO_DEFAULT) == EM_OK);
    CHECK(em_iter_finish(&it, &out) == EM_OK);
    CHECK(em_shape_equal(out->ndim, out->sizes, c->out.ndim, c->out.sizes));
    for (int d = 0; d < out->ndim; d++) {
      if (out->strides[d] == c->out.strides[d]) continue;
      fprintf(stderr, "stride case %zu: dim %d has stride %lld, PyTorch %lld\n", k, d, (long long)out->strides[d],
              (long long)c->out.strides[d]);
      CHECK(out->strides[d] == c->out.strides[d]);
    }
    em_tensor_release(out);
    for (int i = 0; i < 2; i++) em_tensor_release(in[i]);
  }
}

static em_tensor *full(int ndim, const int64_t *sizes, int dtype, double value) {
  em_tensor *t = NULL;
  CHECK(em_tensor_new(ndim, sizes, dtype, CPU, &t) == EM_OK);
  CHECK(em_fill(t, em_dtype_is_float(dtype) ? em_scalar_double(value) : em_scalar_int((int64_t)value)) == EM_OK);
  return t;
}

static void test_promotion(void) {
  // dtype with dims, 0-dim dtype, Python number (0: none, 1: int, 2: float) -> torch.result_type
  static const struct { int dim, zero, number, want;
  } cases[] = {
      {EM_I8, EM_I64, 0, EM_I8},   {EM_I8, EM_F64, 0, EM_F64},   {EM_F16, EM_F64, 0, EM_F16},
      {EM_I32, -1, 2, EM_F32},     {EM_BOOL, -1, 1, EM_I64},     {EM_U8, -1, 1, EM_U8},
      {-1, EM_I32, 2, EM_F32},     {-1, EM_I32, 1, EM_I32},      {EM_BF16, EM_F32, 2, EM_BF16},
      {EM_I64, EM_F16, 0, EM_F16}, {EM_F32, EM_C128, 0, EM_C64}, {EM_F16, EM_C64, 0, EM_C64},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    em_promote_state s;
    em_promote_init(&s);
    int64_t two = 2;
    em_tensor *dim = NULL, *zero = NULL;
    if (cases[k].dim >= 0) CHECK(em_tensor_new(1, &two, cases[k].dim, CPU, &dim) == EM_OK);
    if (cases[k].zero >= 0) CHECK(em_tensor_new(0, NULL, cases[k].zero, CPU, &zero) == EM_OK);
    if (dim != NULL) em_promote_add(&s, dim);
    if (zero != NULL) em_promote_add(&s, zero);
    if (cases[k].number == 1) em_promote_add_scalar(&s, em_scalar_int(3));
    if (cases[k].number == 2) em_promote_add_scalar(&s, em_scalar_double(0.5));
    CHECK(em_promote_result(&s) == cases[k].want);
    em_tensor_release(dim);
    em_tensor_release(zero);
  }
}

static void test_casts(void) {
  static const float from[] = {NAN, 1e30f, -1e30f, 70000.7f, -1.5f, 300.7f};
  static const int64_t i64[] = {INT64_MIN, INT64_MIN, INT64_MIN, 70000, -1, 300};
  static const int32_t i32[] = {INT32_MIN, INT32_MIN, INT32_MIN, 70000, -1, 300};
  static const int16_t i16[] = {0, 0, 0, 4464, -1, 300};
  static const uint8_t u8[] = {0, 0, 0, 112, 255, 44}, flag[] = {1, 1, 1, 1, 1, 1};
  int64_t got[6];
  em_cast_load(got, EM_I64, from, EM_F32, 4, 6);
  CHECK(memcmp(got, i64, sizeof i64) == 0);
  em_cast_load(got, EM_I32, from, EM_F32, 4, 6);
  CHECK(memcmp(got, i32, sizeof i32) == 0);
  em_cast_load(got, EM_I16, from, EM_F32, 4, 6);
  CHECK(memcmp(got, i16, sizeof i16) == 0);
  em_cast_load(got, EM_U8, from, EM_F32, 4, 6);
  CHECK(memcmp(got, u8, sizeof u8) == 0);
  em_cast_load(got, EM_BOOL, from, EM_F32, 4, 6);
  CHECK(memcmp(got, flag, sizeof flag) == 0);
  double wide[3];
  em_cast_load(wide, EM_F64, from + 3, EM_F32, 8, 2);  // every second element
  CHECK(wide[0] == (double)70000.7f && wide[1] == (double)300.7f);
  em_c64 pair[2] = {{2, 5}, {0, 1}};
  em_cast_load(got, EM_BOOL, pair, EM_C64, 8, 2);
  CHECK(((uint8_t *)got)[0] == 1 && ((uint8_t *)got)[1] == 1);
  float real[2];
  em_cast_load(real, EM_F32, pair, EM_C64, 8, 2);
  CHECK(real[0] == 2 && real[1] == 0);
}

// Builds out op a (op b), expects failure, compares the message's beginning.
static void expect(em_tensor *out, em_tensor *a, em_tensor *b, uint32_t flags, em_promotion p, const char *message) {
  em_iter it;
  em_iter_init(&it, flags);
  em_iter_add_output(&it, out, EM_DTYPE_NONE);
  em_iter_add_input(&it, a);
  if (b != NULL) em_iter_add_input(&it, b);
  CHECK(em_iter_build(&it, p) != EM_OK);
  if (strncmp(em_error_message(), message, strlen(message)) != 0) {
    fprintf(stderr, "want: %s\ngot:  %s\n", message, em_error_message());
    CHECK(false);
  }
  em_error_clear();
}

static void test_errors(void) {
  int64_t three = 3, two = 2, both[] = {3, 2}, zero_stride = 0, four = 4;
  em_tensor *a3 = full(1, &three, EM_F32, 1), *a2 = full(1, &two, EM_F32, 1), *a32 = full(2, both, EM_F32, 1);
  em_tensor *i3 = full(1, &three, EM_I64, 1), *meta = NULL, *wide = NULL, *x = full(1, &four, EM_F32, 1), *lo = NULL,
            *hi = NULL;
  CHECK(em_tensor_new(1, &three, EM_F32, (em_device){EM_DEVICE_META, -1}, &meta) == EM_OK);
  expect(NULL, a3, a2, 0, EM_PROMO_DEFAULT,
         "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 0");
  expect(a2, a2, a32, EM_ITER_INPLACE, EM_PROMO_DEFAULT,
         "output with shape [2] doesn't match the broadcast shape [3, 2]");
  expect(i3, i3, a3, EM_ITER_INPLACE, EM_PROMO_DEFAULT,
         "result type Float can't be cast to the desired output type Long");
  expect(NULL, a3, meta, 0, EM_PROMO_DEFAULT, "Tensor on device meta is not on the expected device cpu!");
  CHECK(em_tensor_new_window(a3->storage, 1, &three, &zero_stride, 0, EM_F32, &wide) == EM_OK);
  expect(wide, a3, NULL, EM_ITER_OUT, EM_PROMO_DEFAULT,
         "unsupported operation: more than one element of the written-to tensor refers to a single memory location.");
  int64_t one = 1;
  CHECK(em_tensor_new_window(x->storage, 1, &three, &one, 0, EM_F32, &lo) == EM_OK);
  CHECK(em_tensor_new_window(x->storage, 1, &three, &one, 1, EM_F32, &hi) == EM_OK);
  expect(hi, lo, NULL, EM_ITER_OUT, EM_PROMO_DEFAULT,
         "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
         "location.");
  em_tensor *all[] = {a3, a2, a32, i3, meta, wide, x, lo, hi};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) em_tensor_release(all[i]);
}

// Windows with gaps that overlap: too hard to decide, so the result must be as if the source had been read first.
static void test_hard_overlap(void) {
  int64_t ten = 10, four = 4, two = 2;
  em_tensor *x = NULL, *a = NULL, *b = NULL;
  CHECK(em_tensor_new(1, &ten, EM_F32, CPU, &x) == EM_OK);
  float *p = em_tensor_data(x);
  for (int i = 0; i < 10; i++) p[i] = (float)i;
  CHECK(em_tensor_new_window(x->storage, 1, &four, &two, 0, EM_F32, &a) == EM_OK);
  CHECK(em_tensor_new_window(x->storage, 1, &four, &two, 2, EM_F32, &b) == EM_OK);
  CHECK(em_copy_into(b, a) == EM_OK);
  static const float want[] = {0, 1, 0, 3, 2, 5, 4, 7, 6, 9};
  CHECK(memcmp(p, want, sizeof want) == 0);
  em_tensor_release(a);
  em_tensor_release(b);
  em_tensor_release(x);
}

int main(void) {
  int64_t before = em_alloc_live(EM_KIND_TENSOR);
  test_strides();
  test_promotion();
  test_casts();
  test_errors();
  test_hard_overlap();
  CHECK(em_alloc_live(EM_KIND_TENSOR) == before);
  CHECK_DONE();
}
