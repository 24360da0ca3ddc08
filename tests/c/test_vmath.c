/* test_vmath.c - measures the vm_* functions against libm of twice the precision: one line a function,
 *     name kind max-ulp worst-argument [worst second argument]
 * and "BAD name ..." for each wrong NaN, infinity or sign of zero.  test_vmath.py compiles it once for each
 * instruction set, asserts the bounds, and checks the references themselves against mpmath.
 * The functions run in noinline loops over blocks, so what is measured is the vectorised code. */
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmath_array.h"
#include "vmath_circ.h"
#include "vmath_complex.h"

enum { BLOCK = 4096 };

static double ulp32(double ref)
{
    int e;
    frexp(ref, &e);
    return ldexp(1.0, (e < -125 ? -125 : e) - 24);
}

static long double ulp64(long double ref)
{
    int e;
    frexpl(ref, &e);
    return ldexpl(1.0L, (e < -1021 ? -1021 : e) - 53);
}

/* Error of got in ulps of ref; -1 when NaN, infinity or the sign of zero differ. Infinity stands for 2^128. */
static double err32(float got, double ref)
{
    if (isnan(ref) || isnan(got))
        return isnan(ref) && isnan(got) ? 0.0 : -1.0;
    if (isinf(ref))
        return (double)got == ref ? 0.0 : -1.0;
    if (ref == 0.0)
        return got == 0.0f && !signbit(got) == !signbit(ref) ? 0.0 : -1.0;
    double g = isinf(got) ? copysign(0x1p128, got) : (double)got;
    if (fabs(ref) > 0x1p128)
        ref = copysign(0x1p128, ref);
    return fabs(g - ref) / ulp32(ref);
}

static double err64(double got, long double ref)
{
    if (isnan(ref) || isnan(got))
        return isnan(ref) && isnan(got) ? 0.0 : -1.0;
    if (isinf(ref))
        return (long double)got == ref ? 0.0 : -1.0;
    if (ref == 0.0L)
        return got == 0.0 && !signbit(got) == !signbit(ref) ? 0.0 : -1.0;
    long double g = isinf(got) ? copysignl(0x1p1024L, got) : (long double)got;
    if (fabsl(ref) > 0x1p1024L)
        ref = copysignl(0x1p1024L, ref);
    return (double)(fabsl(g - ref) / ulp64(ref));
}

/* ---- references ---- */

static double r_rsqrt(double x) { return 1.0 / sqrt(x); }
static double r_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
static double r_maximum(double a, double b) { return isnan(a) || isnan(b) ? (double)NAN : a > b ? a : b; }
static double r_minimum(double a, double b) { return isnan(a) || isnan(b) ? (double)NAN : a < b ? a : b; }
static long double r_rsqrtl(long double x) { return 1.0L / sqrtl(x); }
static long double r_sigmoidl(long double x) { return 1.0L / (1.0L + expl(-x)); }
static long double r_maximuml(long double a, long double b) { return r_maximum((double)a, (double)b); }
static long double r_minimuml(long double a, long double b) { return r_minimum((double)a, (double)b); }

#define UNARY(X) \
    X(abs, fabs) X(sqrt, sqrt) X(rsqrt, r_rsqrt) X(floor, floor) X(ceil, ceil) X(trunc, trunc) X(round, rint) \
    X(exp, exp) X(exp2, exp2) X(expm1, expm1) X(log, log) X(log2, log2) X(log10, log10) X(log1p, log1p) \
    X(sin, sin) X(cos, cos) X(tan, tan) X(asin, asin) X(acos, acos) X(atan, atan) X(sinh, sinh) X(cosh, cosh) \
    X(tanh, tanh) X(asinh, asinh) X(acosh, acosh) X(atanh, atanh) X(erf, erf) X(erfc, erfc) X(sigmoid, r_sigmoid)
#define BINARY(X) \
    X(pow, pow) X(atan2, atan2) X(fmod, fmod) X(copysign, copysign) X(maximum, r_maximum) X(minimum, r_minimum)

#define LOOP1(f, r) \
    static __attribute__((noinline)) void f32_##f(float *o, const float *a, int n) \
    { for (int i = 0; i < n; i++) o[i] = vm_##f##_f32(a[i]); } \
    static __attribute__((noinline)) void f64_##f(double *o, const double *a, int n) \
    { for (int i = 0; i < n; i++) o[i] = vm_##f##_f64(a[i]); }
#define LOOP2(f, r) \
    static __attribute__((noinline)) void f32_##f(float *o, const float *a, const float *b, int n) \
    { for (int i = 0; i < n; i++) o[i] = vm_##f##_f32(a[i], b[i]); } \
    static __attribute__((noinline)) void f64_##f(double *o, const double *a, const double *b, int n) \
    { for (int i = 0; i < n; i++) o[i] = vm_##f##_f64(a[i], b[i]); }
UNARY(LOOP1)
BINARY(LOOP2)

typedef struct {
    const char *name;
    void (*f32)(float *, const float *, int);
    void (*f64)(double *, const double *, int);
    double (*ref)(double);
    long double (*refl)(long double);
} unary;

typedef struct {
    const char *name;
    void (*f32)(float *, const float *, const float *, int);
    void (*f64)(double *, const double *, const double *, int);
    double (*ref)(double, double);
    long double (*refl)(long double, long double);
} binary;

#define ROW(f, r) { #f, f32_##f, f64_##f, r, r##l },
static const unary unaries[] = { UNARY(ROW) };

/* Array routines, under the name of the function with _array; the f64 ones are loops over the functions above. */
#define ARRAYS(X) \
    X(exp, exp) X(log, log) X(tanh, tanh) X(erf, erf) X(sigmoid, r_sigmoid) X(sin, sin) X(cos, cos) X(tan, tan)
#define ALOOP(f, r) \
    static void f32_##f##_array(float *o, const float *a, int n) { vm_##f##_array_f32(o, a, n); }
#define AROW(f, r) { #f "_array", f32_##f##_array, NULL, r, NULL },
ARRAYS(ALOOP)
static const unary arrays[] = { ARRAYS(AROW) };
static const binary binaries[] = { BINARY(ROW) };

/* ---- arguments ---- */

static const double borders[] = {
    0.0, 0x1p-149, 0x1p-126, 0x1p-1074, 0x1p-1022, 1e-10, 0x1p-30, 0x1p-12, 0.25, 0.5, 0.65, 0.70710678, 0.75, 1.0, 1.5,
    2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 9.0, 10.0, 10.05, 16.0, 17.5, 26.5, 27.2, 31.0, 33.0, 88.37, 88.72, 88.73, 89.4, 89.5,
    103.9, 104.1, 127.5, 128.0, 129.0, 148.9, 149.0, 150.0, 151.0, 708.3, 709.78, 709.79, 710.4, 710.5, 744.4, 745.1,
    745.2, 1023.5, 1024.0, 1074.5, 1075.5, 16777215.0, 16777216.0, 16777217.0, 0x1p31, 0x1p49, 0x1p52, 0x1p53, 0x1p75,
    0x1p101, 3.4028235e38, 0x1p1000, 1.7976931348623157e308, INFINITY, NAN,
    /* hard to reduce: near multiples of pi/2 (K. Ng 1992; the float one by search) */
    6381956970095103.0 * 0x1p797, 1.5707963267948966, 3.141592653589793, 16367173.0 * 0x1p72,
};
enum { NBORDERS = sizeof borders / sizeof *borders };

static uint64_t rng = 88172645463325252u;

static uint64_t next(void) { rng ^= rng << 13; rng ^= rng >> 7; rng ^= rng << 17; return rng * 0x2545f4914f6cdd1du; }

/* Border i with its two neighbours and its negatives, six in all. */
static double border64(int i)
{
    double x = borders[i / 6];
    x = i % 3 == 1 ? nextafter(x, INFINITY) : i % 3 == 2 ? nextafter(x, -INFINITY) : x;
    return i % 6 >= 3 ? -x : x;
}

static float border32(int i)
{
    float x = (float)borders[i / 6];
    x = i % 3 == 1 ? nextafterf(x, INFINITY) : i % 3 == 2 ? nextafterf(x, -INFINITY) : x;
    return i % 6 >= 3 ? -x : x;
}

/* Any bit pattern, or one of moderate size: most functions do their work there. */
static double random64(void)
{
    uint64_t u = next();
    double x;
    if (u % 3)
        return ldexp((double)(int64_t)next() * 0x1p-63, (int)(u >> 32) % 14 - 4);
    u = next();
    memcpy(&x, &u, 8);
    return x;
}

typedef struct { double ulp, a, b; int bad; } worst;

static void note(worst *w, const char *name, double err, double a, double b, double got, long double ref)
{
    if (err < 0.0 && w->bad++ < 5)
        printf("BAD %s(%a, %a) = %a, not %La\n", name, a, b, got, ref);
    if (err > w->ulp)
        *w = (worst){ err, a, b, w->bad };
}

static void report(const worst *w, const char *name, const char *kind)
{
    printf("%s %s %.3f %a %a\n", name, kind, w->ulp, w->a, w->b);
}

static void unary32(const unary *f, uint32_t stride)
{
    static float a[BLOCK], o[BLOCK];
    worst w = { 0 };
    int border = 0;
    for (uint64_t u = next() % stride; u >> 32 == 0 || border < 6 * NBORDERS;) {
        for (int i = 0; i < BLOCK; i++, u += stride) {
            uint32_t bits = (uint32_t)u;
            memcpy(&a[i], &bits, 4);
            if (u >> 32)
                a[i] = border32(border++ % (6 * NBORDERS));
        }
        f->f32(o, a, BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            double ref = f->ref((double)a[i]);
            note(&w, f->name, err32(o[i], ref), a[i], 0.0, o[i], ref);
        }
    }
    report(&w, f->name, "f32");
}

static void unary64(const unary *f, int blocks)
{
    static double a[BLOCK], o[BLOCK];
    worst w = { 0 };
    for (int k = 0; k < blocks; k++) {
        for (int i = 0; i < BLOCK; i++)
            a[i] = k == 0 && i < 6 * NBORDERS ? border64(i) : random64();
        f->f64(o, a, BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            long double ref = f->refl((long double)a[i]);
            note(&w, f->name, err64(o[i], ref), a[i], 0.0, o[i], ref);
        }
    }
    report(&w, f->name, "f64");
}

/* GELU's error in ulps of the result, or of x/2 where that is larger: for x < 0 the formula takes 1 from 1. */
static void gelu32(const char *name, void (*f)(float *, const float *, int64_t), double (*ref)(double), uint32_t stride)
{
    static float a[BLOCK], o[BLOCK];
    worst w = { 0 };
    for (uint64_t u = next() % stride; u >> 32 == 0;) {
        for (int i = 0; i < BLOCK; i++, u += stride) {
            uint32_t bits = (uint32_t)u;
            memcpy(&a[i], &bits, 4);
            if (!(fabsf(a[i]) < 0x1p40f))
                a[i] = 0.0f;
        }
        f(o, a, BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            double want = ref((double)a[i]);
            note(&w, name, fabs(o[i] - want) / ulp32(fmax(fabs(want), fabs(a[i]) / 2)), a[i], 0.0, o[i], want);
        }
    }
    report(&w, name, "f32");
}

static double r_gelu_erf(double x) { return 0.5 * x * erfc(-x * M_SQRT1_2); }
static double r_gelu_tanh(double x)
{
    return 0.5 * x * (1.0 + tanh(M_SQRT1_2 * M_2_SQRTPI * (x + 0.044715 * x * x * x)));
}

static void binary32(const binary *f, int blocks)
{
    static float a[BLOCK], b[BLOCK], o[BLOCK];
    worst w = { 0 };
    int pair = 0, all = 36 * NBORDERS * NBORDERS;
    for (int k = 0; k < blocks; k++) {
        for (int i = 0; i < BLOCK; i++, pair++) {
            a[i] = pair < all ? border32(pair % (6 * NBORDERS)) : (float)random64();
            b[i] = pair < all ? border32(pair / (6 * NBORDERS)) : (float)random64();
        }
        f->f32(o, a, b, BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            double ref = f->ref((double)a[i], (double)b[i]);
            note(&w, f->name, err32(o[i], ref), a[i], b[i], o[i], ref);
        }
    }
    report(&w, f->name, "f32");
}

static void binary64(const binary *f, int blocks)
{
    static double a[BLOCK], b[BLOCK], o[BLOCK];
    worst w = { 0 };
    int pair = 0, all = 36 * NBORDERS * NBORDERS, power = !strcmp(f->name, "pow");
    for (int k = 0; k < blocks; k++) {
        for (int i = 0; i < BLOCK; i++, pair++) {
            a[i] = pair < all ? border64(pair % (6 * NBORDERS)) : random64();
            b[i] = pair < all ? border64(pair / (6 * NBORDERS)) : random64();
            if (power && pair >= all && i % 2)                   /* aim at results of every size */
                b[i] = (double)((int64_t)next() >> 12) * 0x1p-51 * 750.0 / log(fabs(a[i]));
        }
        f->f64(o, a, b, BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            long double ref = f->refl((long double)a[i], (long double)b[i]);
            note(&w, f->name, err64(o[i], ref), a[i], b[i], o[i], ref);
        }
    }
    report(&w, f->name, "f64");
}

/* ---- complex: the distance from the exact result in epsilons of its length ---- */

typedef long double complex cl;

static cl c_div(cl a, cl b) { return a / b; }
static cl c_mul(cl a, cl b) { return a * b; }
static cl c_reciprocal(cl a) { return 1.0L / a; }
static cl c_sigmoid(cl a) { return 1.0L / (1.0L + cexpl(-a)); }
static cl c_abs(cl a) { return cabsl(a); }
static cl c_angle(cl a) { return cargl(a); }
static cl c_pow(cl a, cl b) { return a == 0 && b == 0 ? 1 : cexpl(b * clogl(a)); }

#define COMPLEX1(X) \
    X(exp, cexpl) X(log, clogl) X(sqrt, csqrtl) X(sin, csinl) X(cos, ccosl) X(tanh, ctanhl) X(sigmoid, c_sigmoid) \
    X(reciprocal, c_reciprocal)
#define COMPLEX2(X) X(mul, c_mul) X(div, c_div) X(pow, c_pow)
#define CLOOPS(f, r) \
    static __attribute__((noinline)) void c64_##f(em_c64 *o, const em_c64 *a, const em_c64 *b, int n) \
    { (void)b; for (int i = 0; i < n; i++) o[i] = CALL(f, c64); } \
    static __attribute__((noinline)) void c128_##f(em_c128 *o, const em_c128 *a, const em_c128 *b, int n) \
    { (void)b; for (int i = 0; i < n; i++) o[i] = CALL(f, c128); }
#define CALL(f, k) vm_##f##_##k(a[i])
COMPLEX1(CLOOPS)
static __attribute__((noinline)) void c64_abs(em_c64 *o, const em_c64 *a, const em_c64 *b, int n)
{ (void)b; for (int i = 0; i < n; i++) o[i] = (em_c64){ vm_abs_c64(a[i]), 0.0f }; }
static __attribute__((noinline)) void c128_abs(em_c128 *o, const em_c128 *a, const em_c128 *b, int n)
{ (void)b; for (int i = 0; i < n; i++) o[i] = (em_c128){ vm_abs_c128(a[i]), 0.0 }; }
static __attribute__((noinline)) void c64_angle(em_c64 *o, const em_c64 *a, const em_c64 *b, int n)
{ (void)b; for (int i = 0; i < n; i++) o[i] = (em_c64){ vm_angle_c64(a[i]), 0.0f }; }
static __attribute__((noinline)) void c128_angle(em_c128 *o, const em_c128 *a, const em_c128 *b, int n)
{ (void)b; for (int i = 0; i < n; i++) o[i] = (em_c128){ vm_angle_c128(a[i]), 0.0 }; }
#undef CALL
#define CALL(f, k) vm_##f##_##k(a[i], b[i])
COMPLEX2(CLOOPS)

static const struct {
    const char *name;
    void (*c64)(em_c64 *, const em_c64 *, const em_c64 *, int);
    void (*c128)(em_c128 *, const em_c128 *, const em_c128 *, int);
    cl (*one)(cl);
    cl (*two)(cl, cl);
} complexes[] = {
#define CROW1(f, r) { #f, c64_##f, c128_##f, r, NULL },
#define CROW2(f, r) { #f, c64_##f, c128_##f, NULL, r },
    COMPLEX1(CROW1) CROW1(abs, c_abs) CROW1(angle, c_angle) COMPLEX2(CROW2)
};

/* Moderate sizes mostly, so that products and exponentials stay finite, some of them tiny or near the unit circle. */
static double component(int k)
{
    double x = (double)(int64_t)next() * 0x1p-63;
    return k % 8 == 0 ? x * 0x1p-20 : k % 8 == 1 ? x * 30.0 : x * 4.0;
}

static void complex_test(size_t f, int blocks)
{
    static em_c64 a32[BLOCK], b32[BLOCK], o32[BLOCK];
    static em_c128 a[BLOCK], b[BLOCK], o[BLOCK];
    double w32 = 0.0, w64 = 0.0;
    for (int k = 0; k < blocks; k++) {
        for (int i = 0; i < BLOCK; i++) {
            double t = component(2) * 2.0, s = i % 16 == 5 ? 1.0 + component(0) : 0.0;
            a[i] = (em_c128){ s != 0.0 ? s * cos(t) : component(i), s != 0.0 ? s * sin(t) : component(i / 8) };
            b[i] = (em_c128){ component(2), component(2) };
            a32[i] = (em_c64){ (float)a[i].re, (float)a[i].im };
            b32[i] = (em_c64){ (float)b[i].re, (float)b[i].im };
        }
        complexes[f].c64(o32, a32, b32, BLOCK);
        complexes[f].c128(o, a, b, BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            cl x = __builtin_complex((long double)a[i].re, (long double)a[i].im);
            cl y = __builtin_complex((long double)b[i].re, (long double)b[i].im);
            if (complexes[f].one == c_sigmoid && cabsl(1.0L + cexpl(-x)) < 0.5L)
                continue;                                        /* near a pole: ill-conditioned */
            cl ref = complexes[f].one ? complexes[f].one(x) : complexes[f].two(x, y);
            double e = (double)(cabsl(__builtin_complex((long double)o[i].re, (long double)o[i].im) - ref) / cabsl(ref) * 0x1p52L);
            w64 = !(e <= w64) ? e : w64;
            x = __builtin_complex((long double)a32[i].re, (long double)a32[i].im);
            y = __builtin_complex((long double)b32[i].re, (long double)b32[i].im);
            ref = complexes[f].one ? complexes[f].one(x) : complexes[f].two(x, y);
            if (cabsl(ref) > 0x1p126L || cabsl(ref) < 0x1p-126L)
                continue;
            e = (double)(cabsl(__builtin_complex((long double)o32[i].re, (long double)o32[i].im) - ref) / cabsl(ref) * 0x1p23L);
            w32 = !(e <= w32) ? e : w32;
        }
    }
    printf("%s c64 %.3f\n%s c128 %.3f\n", complexes[f].name, w32, complexes[f].name, w64);
}

static void complex_case(const char *name, em_c128 got, em_c64 got32, double re, double im)
{
    const double want[2] = { re, im }, have[2] = { got.re, got.im }, have32[2] = { got32.re, got32.im };
    for (int i = 0; i < 2; i++) {
        if (!isnan(want[i]) && (have[i] != want[i] || signbit(have[i]) != signbit(want[i])))
            printf("BAD %s: c128 part %d is %a, not %a\n", name, i, have[i], want[i]);
        if (!isnan(want[i]) && (have32[i] != want[i] || signbit(have32[i]) != signbit(want[i])))
            printf("BAD %s: c64 part %d is %a, not %a\n", name, i, have32[i], want[i]);
    }
}

/* Borders; NAN in the expected value means that the part is not looked at. */
static void complex_cases(void)
{
#define CASE(f, x, y, re, im) \
    complex_case(#f "(" #x ", " #y ")", vm_##f##_c128((em_c128){ x, y }), vm_##f##_c64((em_c64){ x, y }), re, im)
    CASE(exp, -INFINITY, NAN, 0.0, 0.0);
    CASE(exp, 0.0, -0.0, 1.0, -0.0);
    CASE(exp, INFINITY, 0.0, INFINITY, 0.0);
    CASE(log, 0.0, 0.0, -INFINITY, 0.0);
    CASE(log, 1.0, 0.0, 0.0, 0.0);
    CASE(log, INFINITY, NAN, INFINITY, NAN);
    CASE(sqrt, -4.0, 0.0, 0.0, 2.0);
    CASE(sqrt, -4.0, -0.0, 0.0, -2.0);
    CASE(sqrt, 0.0, -0.0, 0.0, -0.0);
    CASE(sqrt, NAN, INFINITY, INFINITY, INFINITY);
    CASE(sqrt, -INFINITY, 1.0, 0.0, INFINITY);
    CASE(sqrt, INFINITY, -1.0, INFINITY, -0.0);
    CASE(tanh, INFINITY, 1.0, 1.0, 0.0);
    CASE(tanh, -400.0, 2.0, -1.0, -0.0);
    CASE(tanh, 0.0, -0.0, 0.0, -0.0);
    CASE(sin, -0.0, 1000.0, -0.0, NAN);
    CASE(reciprocal, INFINITY, 1.0, 0.0, NAN);
    CASE(reciprocal, 0.0, 0.0, INFINITY, NAN);
    em_c128 big = vm_div_c128((em_c128){ 1e300, 1e300 }, (em_c128){ 1e300, 1e300 });
    em_c64 big32 = vm_div_c64((em_c64){ 1e38f, 1e38f }, (em_c64){ 1e38f, 1e38f });
    complex_case("div huge", big, big32, 1.0, 0.0);
    complex_case("abs huge", (em_c128){ vm_abs_c128((em_c128){ 3e300, 4e300 }) / 5e300, 0.0 },
                 (em_c64){ vm_abs_c64((em_c64){ 3e37f, 4e37f }) / 5e37f, 0.0f }, 1.0, 0.0);
    complex_case("abs inf", (em_c128){ vm_abs_c128((em_c128){ NAN, -INFINITY }), 0.0 },
                 (em_c64){ vm_abs_c64((em_c64){ NAN, -INFINITY }), 0.0f }, INFINITY, 0.0);
    complex_case("pow 0 0", vm_pow_c128((em_c128){ 0.0, 0.0 }, (em_c128){ 0.0, 0.0 }),
                 vm_pow_c64((em_c64){ 0.0f, 0.0f }, (em_c64){ 0.0f, 0.0f }), 1.0, 0.0);
}

/* test_vmath [stride of bit patterns] [blocks of f64] [only this function] */
int main(int argc, char **argv)
{
    uint32_t stride = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 4099u;
    int blocks = argc > 2 ? atoi(argv[2]) : 50;
    const char *only = argc > 3 ? argv[3] : NULL;
    for (size_t i = 0; i < sizeof unaries / sizeof *unaries; i++) {
        if (only && strcmp(only, unaries[i].name))
            continue;
        unary32(&unaries[i], stride);
        unary64(&unaries[i], blocks);
    }
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (!only || !strcmp(only, arrays[i].name))
            unary32(&arrays[i], stride);
    if (!only || !strcmp(only, "gelu_erf"))
        gelu32("gelu_erf", vm_gelu_erf_array_f32, r_gelu_erf, stride);
    if (!only || !strcmp(only, "gelu_tanh"))
        gelu32("gelu_tanh", vm_gelu_tanh_array_f32, r_gelu_tanh, stride);
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++) {
        if (only && strcmp(only, binaries[i].name))
            continue;
        binary32(&binaries[i], blocks + 48);
        binary64(&binaries[i], blocks + 48);
    }
    for (size_t i = 0; i < sizeof complexes / sizeof *complexes; i++)
        if (!only || !strcmp(only, complexes[i].name))
            complex_test(i, blocks / 8 + 1);
    complex_cases();
    return 0;
}
