// fft_bodies.inc.h: included by fft_loops.c once a dtype, with T and FN(name) defined. A pass takes radix inputs, ido * lanes
// elements apart, to radix outputs, l1 times as far apart, and multiplies by the factors of what is left.

#define PASS(name)                                                                                              \
  static void FN(name)(const em_fft_stage *st, int64_t L, const T *cr, const T *ci, T *hr, T *hi)
#define STORE(q, vr, vi)                                                                                        \
  do {                                                                                                          \
    const T v_re = (vr), v_im = (vi), w_re = wr[((q) - 1) * L + j], w_im = wi[((q) - 1) * L + j];               \
    hr[(k + l1 * (q)) * L + j] = v_re * w_re - v_im * w_im;                                                     \
    hi[(k + l1 * (q)) * L + j] = v_re * w_im + v_im * w_re;                                                     \
  } while (0)
#define FIRST(vr, vi)                                                                                           \
  do {                                                                                                          \
    hr[k * L + j] = (vr);                                                                                       \
    hi[k * L + j] = (vi);                                                                                       \
  } while (0)
#define R(b) cr[((b) + radix * k) * L + j]
#define M(b) ci[((b) + radix * k) * L + j]

PASS(pass2) {
  const int64_t l1 = st->l1, radix = 2;
  const T *wr = st->wr, *wi = st->wi;
  for (int64_t k = 0; k < l1; k++)
    _Pragma("omp simd") for (int64_t j = 0; j < L; j++) {
      const T ar = R(0), ai = M(0), br = R(1), bi = M(1);
      FIRST(ar + br, ai + bi);
      STORE(1, ar - br, ai - bi);
    }
}
PASS(pass3) {
  const int64_t l1 = st->l1, radix = 3;
  const T *wr = st->wr, *wi = st->wi, s = (T)0.86602540378443864676;
  for (int64_t k = 0; k < l1; k++)
    _Pragma("omp simd") for (int64_t j = 0; j < L; j++) {
      const T ar = R(0), ai = M(0), pr = R(1) + R(2), pi = M(1) + M(2), dr = (R(1) - R(2)) * s, di = (M(1) - M(2)) * s;
      const T tr = ar - pr * (T)0.5, ti = ai - pi * (T)0.5;
      FIRST(ar + pr, ai + pi);
      STORE(1, tr + di, ti - dr);
      STORE(2, tr - di, ti + dr);
    }
}
PASS(pass4) {
  const int64_t l1 = st->l1, radix = 4;
  const T *wr = st->wr, *wi = st->wi;
  for (int64_t k = 0; k < l1; k++)
    _Pragma("omp simd") for (int64_t j = 0; j < L; j++) {
      const T ar = R(0) + R(2), ai = M(0) + M(2), br = R(0) - R(2), bi = M(0) - M(2);
      const T cr2 = R(1) + R(3), ci2 = M(1) + M(3), dr = R(1) - R(3), di = M(1) - M(3);
      FIRST(ar + cr2, ai + ci2);
      STORE(1, br + di, bi - dr);
      STORE(2, ar - cr2, ai - ci2);
      STORE(3, br - di, bi + dr);
    }
}
PASS(pass5) {
  const int64_t l1 = st->l1, radix = 5;
  const T *wr = st->wr, *wi = st->wi;
  const T c1 = (T)0.30901699437494742410, c2 = (T)-0.80901699437494742410, s1 = (T)0.95105651629515357212,
          s2 = (T)0.58778525229247312917;
  for (int64_t k = 0; k < l1; k++)
    _Pragma("omp simd") for (int64_t j = 0; j < L; j++) {
      const T ar = R(0), ai = M(0), pr = R(1) + R(4), pi = M(1) + M(4), dr = R(1) - R(4), di = M(1) - M(4);
      const T qr = R(2) + R(3), qi = M(2) + M(3), er = R(2) - R(3), ei = M(2) - M(3);
      const T xr = ar + c1 * pr + c2 * qr, xi = ai + c1 * pi + c2 * qi;
      const T yr = ar + c2 * pr + c1 * qr, yi = ai + c2 * pi + c1 * qi;
      const T ur = s1 * dr + s2 * er, ui = s1 * di + s2 * ei, vr = s2 * dr - s1 * er, vi = s2 * di - s1 * ei;
      FIRST(ar + pr + qr, ai + pi + qi);
      STORE(1, xr + ui, xi - ur);
      STORE(2, yr + vi, yi - vr);
      STORE(3, yr - vi, yi + vr);
      STORE(4, xr - ui, xi + ur);
    }
}
PASS(pass_any) {
  const int64_t l1 = st->l1, radix = st->radix;
  const T *wr = st->wr, *wi = st->wi, *rr = st->cr, *ri = st->ci;
  for (int64_t k = 0; k < l1; k++)
    for (int64_t q = 0; q < radix; q++) {
      T *yr = hr + (k + l1 * q) * L, *yi = hi + (k + l1 * q) * L;
      for (int64_t j = 0; j < L; j++) {
        yr[j] = R(0);
        yi[j] = M(0);
      }
      for (int64_t b = 1; b < radix; b++) {
        const T fr = rr[b * q % radix], fi = ri[b * q % radix];
        for (int64_t j = 0; j < L; j++) {
          yr[j] += R(b) * fr - M(b) * fi;
          yi[j] += R(b) * fi + M(b) * fr;
        }
      }
      for (int64_t j = 0; q > 0 && j < L; j++) {
        const T xr = yr[j], xi = yi[j], fr = wr[(q - 1) * L + j], fi = wi[(q - 1) * L + j];
        yr[j] = xr * fr - xi * fi;
        yi[j] = xr * fi + xi * fr;
      }
    }
}
#undef R
#undef M
static void FN(run)(const em_fft_plan *p, void *re, void *im, void *s_re, void *s_im) {
  T *cr = re, *ci = im, *hr = s_re, *hi = s_im;
  for (int k = 0; k < p->stages; k++) {
    const em_fft_stage *st = &p->stage[k];
    const int64_t L = st->ido * p->lanes;
    switch (st->radix) {
      case 2: FN(pass2)(st, L, cr, ci, hr, hi); break;
      case 3: FN(pass3)(st, L, cr, ci, hr, hi); break;
      case 4: FN(pass4)(st, L, cr, ci, hr, hi); break;
      case 5: FN(pass5)(st, L, cr, ci, hr, hi); break;
      default: FN(pass_any)(st, L, cr, ci, hr, hi);
    }
    T *tr = cr, *ti = ci;
    cr = hr;
    ci = hi;
    hr = tr;
    hi = ti;
  }
  if (cr == re) return;
  memcpy(re, cr, sizeof(T) * (size_t)(p->n * p->lanes));
  memcpy(im, ci, sizeof(T) * (size_t)(p->n * p->lanes));
}
static void FN(multiply)(void *arv, void *aiv, const void *brv, const void *biv, int64_t n) {
  T *ar = arv, *ai = aiv;
  const T *br = brv, *bi = biv;
  for (int64_t i = 0; i < n; i++) {
    const T r = ar[i] * br[i] - ai[i] * bi[i], m = ar[i] * bi[i] + ai[i] * br[i];
    ar[i] = r;
    ai[i] = m;
  }
}
#undef PASS
#undef STORE
#undef FIRST
