// fft_lines.inc.h: included by fft_loops.c once a pair of dtypes: E of a tensor's elements, S of the transform. Lines go in and out
// of the buffers, whole groups of floats turned in blocks.
// Spacing of the group's lines in elements if it is the same between all, else 0.
static int64_t FN(spacing)(const em_fft_side *s) {
  const int64_t d = s->lines > 1 ? s->base[1] - s->base[0] : 0;
  for (int v = 2; v < s->lines; v++)
    if (s->base[v] - s->base[v - 1] != d) return 0;
  return d;
}
static void FN(load)(const em_fft_side *s, void *re_v, void *im_v, int64_t n, int64_t lanes) {
  S *re = re_v, *im = im_v;
  const E *x = s->data;
  const int64_t d = s->lines == EM_FFT_LANES ? FN(spacing)(s) : 0;
  if (lanes == 1 && s->unit == 2 && s->imag == 1) {
    const E *p = x + s->base[0];
    for (int64_t i = 0; i < n; i++) {
      re[i] = (S)p[2 * i];
      im[i] = (S)p[2 * i + 1];
    }
  } else if ((d == 2 && s->imag == 1) || (d == 1 && s->imag != 1)) {  // side by side
    for (int64_t i = 0; i < n; i++, re += EM_FFT_LANES, im += EM_FFT_LANES) {
      const E *p = x + s->base[0] + i * s->unit;
      if (d == 2)
        for (int v = 0; v < EM_FFT_LANES; v++) {
          re[v] = (S)p[2 * v];
          im[v] = (S)p[2 * v + 1];
        }
      else
        for (int v = 0; v < EM_FFT_LANES; v++) {
          re[v] = (S)p[v];
          im[v] = (S)p[s->imag + v];
        }
    }
  } else if (s->unit == 2 && s->imag == 1 && d > 0 && sizeof(E) + sizeof(S) == 2 * sizeof(float)) {
    const float *p = (const float *)s->data + s->base[0];
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) turn_in(p + 2 * i, d, (float *)re_v + i * EM_FFT_LANES, (float *)im_v + i * EM_FFT_LANES);
    for (; i < n; i++)
      for (int v = 0; v < EM_FFT_LANES; v++) {
        re[i * EM_FFT_LANES + v] = (S)x[s->base[v] + 2 * i];
        im[i * EM_FFT_LANES + v] = (S)x[s->base[v] + 2 * i + 1];
      }
  } else {
    for (int64_t i = 0; i < n; i++)
      for (int v = 0; v < s->lines; v++) {
        const E *p = x + s->base[v] + i * s->unit;
        re[i * lanes + v] = (S)p[0];
        im[i * lanes + v] = (S)p[s->imag];
      }
  }
}
static void FN(store)(const em_fft_side *s, const void *re_v, const void *im_v, int64_t n, int64_t lanes) {
  const S *re = re_v, *im = im_v, scale = (S)s->scale;
  E *y = s->data;
  const int64_t d = s->lines == EM_FFT_LANES ? FN(spacing)(s) : 0;
  if (lanes == 1 && s->unit == 2 && s->imag == 1) {
    E *p = y + s->base[0];
    for (int64_t i = 0; i < n; i++) {
      p[2 * i] = (E)(re[i] * scale);
      p[2 * i + 1] = (E)(im[i] * scale);
    }
  } else if ((d == 2 && s->imag == 1) || (d == 1 && s->imag != 1)) {
    for (int64_t i = 0; i < n; i++, re += EM_FFT_LANES, im += EM_FFT_LANES) {
      E *p = y + s->base[0] + i * s->unit;
      if (d == 2)
        for (int v = 0; v < EM_FFT_LANES; v++) {
          p[2 * v] = (E)(re[v] * scale);
          p[2 * v + 1] = (E)(im[v] * scale);
        }
      else
        for (int v = 0; v < EM_FFT_LANES; v++) {
          p[v] = (E)(re[v] * scale);
          p[s->imag + v] = (E)(im[v] * scale);
        }
    }
  } else if (s->unit == 2 && s->imag == 1 && d > 0 && sizeof(E) + sizeof(S) == 2 * sizeof(float)) {
    float *p = (float *)s->data + s->base[0];
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
      turn_out(p + 2 * i, d, (const float *)re_v + i * EM_FFT_LANES, (const float *)im_v + i * EM_FFT_LANES, (float)scale);
    for (; i < n; i++)
      for (int v = 0; v < EM_FFT_LANES; v++) {
        y[s->base[v] + 2 * i] = (E)(re[i * EM_FFT_LANES + v] * scale);
        y[s->base[v] + 2 * i + 1] = (E)(im[i * EM_FFT_LANES + v] * scale);
      }
  } else {
    for (int64_t i = 0; i < n; i++)
      for (int v = 0; v < s->lines; v++) {
        E *p = y + s->base[v] + i * s->unit;
        p[0] = (E)(re[i * lanes + v] * scale);
        p[s->imag] = (E)(im[i * lanes + v] * scale);
      }
  }
}
