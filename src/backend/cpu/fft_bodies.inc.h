// fft_bodies.inc.h: included by fft_loops.c once a dtype, with T and FN(name) defined. A pass takes radix inputs, ido * lanes
// elements apart, to radix outputs, l1 times as far apart, and multiplies by the factors of what is left. Nothing is left in
// the last pass (ido is 1). Inner loops run over the lanes, or where there is one lane over ido, or over l1 in the last pass.

#define PASS_ARGS const em_fft_stage *st, const int64_t lanes, const bool last, T *cr, T *ci, T *hr, T *hi
#define PASS(name) static inline __attribute__((always_inline)) void FN(name)(PASS_ARGS)
// Runs the body for every j of every (k, i): element (a, k, i, j) of what is read and of what is written.
#define LOOPS                                                                                                      \
  const int64_t l1 = st->l1, ido = st->ido, side = lanes == 1 && last;                                             \
  const int64_t ks = side ? 1 : l1, is = lanes == 1 ? 1 : ido, js = lanes > 1 ? lanes : last ? l1 : ido;           \
  const T *wr = st->wr, *wi = st->wi;                                                                              \
  (void)wr, (void)wi;                                                                                              \
  for (int64_t k = 0; k < ks; k++)                                                                                 \
    for (int64_t i = 0; i < is; i++)                                                                               \
      _Pragma("omp simd") for (int64_t j = 0; j < js; j++)
#define IN(b) (side ? (b) + radix * j : (((b) + radix * k) * ido + i) * lanes + j)
#define OUT(q) (side ? j + l1 * (q) : ((k + l1 * (q)) * ido + i) * lanes + j)
#define W(q) (((q) - 1) * ido + (lanes == 1 ? j : i))
#define STORE(q, vr, vi)                                                                                           \
  do {                                                                                                             \
    const T v_re = (vr), v_im = (vi);                                                                              \
    if (last) {                                                                                                    \
      hr[OUT(q)] = v_re;                                                                                           \
      hi[OUT(q)] = v_im;                                                                                           \
    } else {                                                                                                       \
      const T w_re = wr[W(q)], w_im = wi[W(q)];                                                                    \
      hr[OUT(q)] = v_re * w_re - v_im * w_im;                                                                      \
      hi[OUT(q)] = v_re * w_im + v_im * w_re;                                                                      \
    }                                                                                                              \
  } while (0)
#define FIRST(vr, vi)                                                                                              \
  do {                                                                                                             \
    hr[OUT(0)] = (vr);                                                                                             \
    hi[OUT(0)] = (vi);                                                                                             \
  } while (0)
#define R(b) cr[IN(b)]
#define M(b) ci[IN(b)]

PASS(pass2) {
  enum { radix = 2 };
  LOOPS {
    const T ar = R(0), ai = M(0), br = R(1), bi = M(1);
    FIRST(ar + br, ai + bi);
    STORE(1, ar - br, ai - bi);
  }
}
PASS(pass3) {
  enum { radix = 3 };
  const T s = (T)0.86602540378443864676;
  LOOPS {
    const T ar = R(0), ai = M(0), pr = R(1) + R(2), pi = M(1) + M(2), dr = (R(1) - R(2)) * s, di = (M(1) - M(2)) * s;
    const T tr = ar - pr * (T)0.5, ti = ai - pi * (T)0.5;
    FIRST(ar + pr, ai + pi);
    STORE(1, tr + di, ti - dr);
    STORE(2, tr - di, ti + dr);
  }
}
PASS(pass4) {
  enum { radix = 4 };
  LOOPS {
    const T ar = R(0) + R(2), ai = M(0) + M(2), br = R(0) - R(2), bi = M(0) - M(2);
    const T cr2 = R(1) + R(3), ci2 = M(1) + M(3), dr = R(1) - R(3), di = M(1) - M(3);
    FIRST(ar + cr2, ai + ci2);
    STORE(1, br + di, bi - dr);
    STORE(2, ar - cr2, ai - ci2);
    STORE(3, br - di, bi + dr);
  }
}
PASS(pass5) {
  enum { radix = 5 };
  const T c1 = (T)0.30901699437494742410, c2 = (T)-0.80901699437494742410, s1 = (T)0.95105651629515357212,
          s2 = (T)0.58778525229247312917;
  LOOPS {
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
PASS(pass8) {
  enum { radix = 8 };
  const T h = (T)0.70710678118654752440;
  LOOPS {
    const T ar = R(0) + R(4), ai = M(0) + M(4), br = R(0) - R(4), bi = M(0) - M(4);
    const T cr2 = R(2) + R(6), ci2 = M(2) + M(6), dr = R(2) - R(6), di = M(2) - M(6);
    const T er = R(1) + R(5), ei = M(1) + M(5), fr = R(1) - R(5), fi = M(1) - M(5);
    const T gr = R(3) + R(7), gi = M(3) + M(7), kr = R(3) - R(7), ki = M(3) - M(7);
    const T pr = ar + cr2, pi = ai + ci2, qr = ar - cr2, qi = ai - ci2, sr = er + gr, si = ei + gi, tr = er - gr, ti = ei - gi;
    FIRST(pr + sr, pi + si);
    STORE(4, pr - sr, pi - si);
    STORE(2, qr + ti, qi - tr);
    STORE(6, qr - ti, qi + tr);
    const T ur = br + di, ui = bi - dr, vr = br - di, vi = bi + dr;  // (b -+ i d)
    const T xr = fr + ki, xi = fi - kr, yr = fr - ki, yi = fi + kr;  // (f -+ i k)
    const T xa = (xr + xi) * h, xb = (xi - xr) * h, ya = (yi - yr) * h, yb = (yr + yi) * h;
    STORE(1, ur + xa, ui + xb);
    STORE(5, ur - xa, ui - xb);
    STORE(3, vr + ya, vi - yb);
    STORE(7, vr - ya, vi + yb);
  }
}
#undef R
#undef M
// Sums over b of what outputs q and radix - q share, w columns: cosines times sums, sines times differences.
static inline __attribute__((always_inline)) void FN(dot)(const T *xr, const T *xi, int64_t L, const T *rr, const T *ri,
                                                          int64_t radix, int64_t q, const int64_t w, T *er, T *ei, T *dr, T *di) {
  for (int64_t j = 0; j < w; j++) {
    er[j] = xr[j];
    ei[j] = xi[j];
  }
  for (int64_t b = 1, at = q; b <= radix / 2; b++, at = at + q >= radix ? at + q - radix : at + q) {
    const T c = rr[at], s = ri[at], *ar = xr + b * L, *ai = xi + b * L, *br = xr + (radix - b) * L, *bi = xi + (radix - b) * L;
    _Pragma("omp simd") for (int64_t j = 0; j < w; j++) {
      er[j] += ar[j] * c;
      ei[j] += ai[j] * c;
      dr[j] += bi[j] * s;
      di[j] += br[j] * s;
    }
  }
}
// Any odd radix: inputs b and radix - b become their sum and difference, of which outputs q and radix - q are made together.
PASS(pass_any) {
  const int64_t radix = st->radix, half = radix / 2, l1 = st->l1, ido = st->ido, L = ido * lanes;
  const T *wr = st->wr, *wi = st->wi, *rr = st->cr, *ri = st->ci;
  for (int64_t k = 0; k < l1; k++)
    for (int64_t i = 0; i < L; i += EM_FFT_LANES) {
      const int64_t w = lanes == EM_FFT_LANES || L - i >= EM_FFT_LANES ? EM_FFT_LANES : L - i;
      T *xr = cr + radix * k * L + i, *xi = ci + radix * k * L + i, *yr = hr + k * L + i, *yi = hi + k * L + i;
      T sum_r[EM_FFT_LANES], sum_i[EM_FFT_LANES];
      for (int64_t j = 0; j < w; j++) {
        sum_r[j] = xr[j];
        sum_i[j] = xi[j];
      }
      for (int64_t b = 1; b <= half; b++) {
        T *ar = xr + b * L, *ai = xi + b * L, *br = xr + (radix - b) * L, *bi = xi + (radix - b) * L;
        _Pragma("omp simd") for (int64_t j = 0; j < w; j++) {
          const T sr = ar[j] + br[j], si = ai[j] + bi[j], dr = ar[j] - br[j], di = ai[j] - bi[j];
          ar[j] = sr;
          ai[j] = si;
          br[j] = dr;
          bi[j] = di;
          sum_r[j] += sr;
          sum_i[j] += si;
        }
      }
      for (int64_t j = 0; j < w; j++) {
        yr[j] = sum_r[j];
        yi[j] = sum_i[j];
      }
      for (int64_t q = 1; q <= half; q++) {
        T er[EM_FFT_LANES], ei[EM_FFT_LANES], dr[EM_FFT_LANES] = {0}, di[EM_FFT_LANES] = {0};
        if (w == EM_FFT_LANES) FN(dot)(xr, xi, L, rr, ri, radix, q, EM_FFT_LANES, er, ei, dr, di);
        else FN(dot)(xr, xi, L, rr, ri, radix, q, w, er, ei, dr, di);
        T *ur = yr + l1 * q * L, *ui = yi + l1 * q * L, *vr = yr + l1 * (radix - q) * L, *vi = yi + l1 * (radix - q) * L;
        for (int64_t j = 0; j < w; j++) {
          const T pr = er[j] - dr[j], pi = ei[j] + di[j], qr = er[j] + dr[j], qi = ei[j] - di[j];
          const int64_t at = lanes == 1 ? i + j : i / lanes, up = (q - 1) * ido + at, down = (radix - q - 1) * ido + at;
          ur[j] = last ? pr : pr * wr[up] - pi * wi[up];
          ui[j] = last ? pi : pr * wi[up] + pi * wr[up];
          vr[j] = last ? qr : qr * wr[down] - qi * wi[down];
          vi[j] = last ? qi : qr * wi[down] + qi * wr[down];
        }
      }
    }
}
static inline __attribute__((always_inline)) void FN(pass)(PASS_ARGS) {
  switch (st->radix) {
    case 2: FN(pass2)(st, lanes, last, cr, ci, hr, hi); break;
    case 3: FN(pass3)(st, lanes, last, cr, ci, hr, hi); break;
    case 4: FN(pass4)(st, lanes, last, cr, ci, hr, hi); break;
    case 5: FN(pass5)(st, lanes, last, cr, ci, hr, hi); break;
    case 8: FN(pass8)(st, lanes, last, cr, ci, hr, hi); break;
    default: FN(pass_any)(st, lanes, last, cr, ci, hr, hi);
  }
}
static void FN(run)(const em_fft_plan *p, void *re, void *im, void *s_re, void *s_im) {
  T *cr = re, *ci = im, *hr = s_re, *hi = s_im;
  for (int k = 0; k < p->stages; k++) {
    const em_fft_stage *st = &p->stage[k];
    if (p->lanes == EM_FFT_LANES) {
      if (st->ido > 1) FN(pass)(st, EM_FFT_LANES, false, cr, ci, hr, hi);
      else FN(pass)(st, EM_FFT_LANES, true, cr, ci, hr, hi);
    } else {
      if (st->ido > 1) FN(pass)(st, 1, false, cr, ci, hr, hi);
      else FN(pass)(st, 1, true, cr, ci, hr, hi);
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
static void FN(multiply)(void *arv, void *aiv, const void *brv, const void *biv, int64_t n, int64_t lanes) {
  T *ar = arv, *ai = aiv;
  const T *br = brv, *bi = biv;
  for (int64_t k = 0; k < n; k++)
    for (int64_t j = 0; j < lanes; j++) {
      const int64_t i = k * lanes + j;
      const T r = ar[i] * br[k] - ai[i] * bi[k], m = ar[i] * bi[k] + ai[i] * br[k];
      ar[i] = r;
      ai[i] = m;
    }
}
// A real line of 2n numbers was transformed as n complex ones, z[k] = x[2k] + i x[2k+1]. With e and o the transforms of its even
// and odd elements, z's is e + i o: x's is e[k] + w^k o[k], and at n - k the conjugate of e[k] - w^k o[k]. w = wr + i wi.
static inline __attribute__((always_inline)) void FN(split_of)(const int64_t lanes, T *re, T *im, const T *wr, const T *wi,
                                                               int64_t n) {
  for (int64_t j = 0; j < lanes; j++) {
    const T a = re[j], b = im[j];
    re[j] = a + b;
    im[j] = 0;
    re[n * lanes + j] = a - b;
    im[n * lanes + j] = 0;
  }
  for (int64_t k = 1; k <= n / 2; k++) {
    T *ar = re + k * lanes, *ai = im + k * lanes, *br = re + (n - k) * lanes, *bi = im + (n - k) * lanes;
    const T fr = wr[k], fi = wi[k];
    _Pragma("omp simd") for (int64_t j = 0; j < lanes; j++) {
      const T er = (ar[j] + br[j]) * (T)0.5, ei = (ai[j] - bi[j]) * (T)0.5;
      const T hr = (ai[j] + bi[j]) * (T)0.5, hi = (br[j] - ar[j]) * (T)0.5;
      const T tr = hr * fr - hi * fi, ti = hr * fi + hi * fr;
      ar[j] = er + tr;
      ai[j] = ei + ti;
      br[j] = er - tr;
      bi[j] = ti - ei;
    }
  }
}
// The way back, for a transform that runs backwards and does not divide: 2 (e + i o) of x's first n + 1 points.
static inline __attribute__((always_inline)) void FN(join_of)(const int64_t lanes, T *re, T *im, const T *wr, const T *wi,
                                                              int64_t n) {
  for (int64_t j = 0; j < lanes; j++) {  // imaginary parts at both ends do not count
    const T a = re[j], b = re[n * lanes + j];
    re[j] = a + b;
    im[j] = a - b;
  }
  for (int64_t k = 1; k <= n / 2; k++) {
    T *ar = re + k * lanes, *ai = im + k * lanes, *br = re + (n - k) * lanes, *bi = im + (n - k) * lanes;
    const T fr = wr[k], fi = wi[k];
    _Pragma("omp simd") for (int64_t j = 0; j < lanes; j++) {
      const T er = ar[j] + br[j], ei = ai[j] - bi[j], tr = ar[j] - br[j], ti = ai[j] + bi[j];
      const T hr = tr * fr + ti * fi, hi = ti * fr - tr * fi;  // by the conjugate of w^k
      ar[j] = er - hi;
      ai[j] = ei + hr;
      br[j] = er + hi;
      bi[j] = hr - ei;
    }
  }
}
static void FN(split)(void *re, void *im, const void *wr, const void *wi, int64_t n, int64_t lanes) {
  if (lanes == EM_FFT_LANES) FN(split_of)(EM_FFT_LANES, re, im, wr, wi, n);
  else FN(split_of)(1, re, im, wr, wi, n);
}
static void FN(join)(void *re, void *im, const void *wr, const void *wi, int64_t n, int64_t lanes) {
  if (lanes == EM_FFT_LANES) FN(join_of)(EM_FFT_LANES, re, im, wr, wi, n);
  else FN(join_of)(1, re, im, wr, wi, n);
}
#undef PASS
#undef PASS_ARGS
#undef LOOPS
#undef IN
#undef OUT
#undef W
#undef STORE
#undef FIRST
