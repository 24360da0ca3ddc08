// special.c: see special.h. Methods: series of positive terms, asymptotic expansions far out, recurrences, and Newton's or Halley's
// steps for inverse functions. No loop depends on how large an argument is: each ends after a bounded number of terms.
#include "special.h"
#include <math.h>

#define PI 3.14159265358979323846
#define SQRT_PI 1.77245385090551602730
#define SQRT1_2 0.70710678118654752440
#define TINY 1e-17

// ---- gamma and zeta -------------------------------------------------------------------------------------------------

double vm_lgamma_f64(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

// Upwards to x >= 10, then log x - 1/(2x) - sum B(2k) / (2k x^2k); below 0 by reflection.
double vm_digamma_f64(double x) {
  static const double c[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
  double sum = 0;
  if (x == 0) return copysign(INFINITY, -x);
  if (isinf(x)) return x > 0 ? x : NAN;
  if (x < 0) {
    double whole, part = modf(x, &whole);
    if (part == 0) return NAN;
    sum = -PI / tan(PI * part);
    x = 1 - x;
  }
  for (; x < 10; x += 1) sum -= 1 / x;
  double z = 1 / (x * x), tail = 0;
  for (int k = 6; k >= 0; k--) tail = (tail + c[k]) * z;
  return sum + log(x) - 0.5 / x - tail;
}

// sum over k >= 0 of (q + k)^-s for q > 0, s > 1: nine terms and Euler and Maclaurin's formula for the rest.
static double zeta_right(double s, double q) {
  // (2k)! / B(2k)
  static const double inverse[] = {12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10,
                                   -2.950130727918164224e12, 1.1646782814350067249e14, -4.5979787224074726105e15,
                                   1.8152105401943546773e17, -7.1661652561756670113e18};
  double sum = pow(q, -s), a = q;
  for (int k = 0; k < 9 || a <= 9; k++) {
    a += 1;
    double term = pow(a, -s);
    sum += term;
    if (term < TINY * sum) return sum;
  }
  double b = pow(a, -s), factor = 1;
  sum += b * a / (s - 1) - 0.5 * b;
  for (int k = 0; k < 12; k++) {
    factor *= s + 2 * k;
    b /= a;
    double term = factor * b / inverse[k];
    sum += term;
    if (fabs(term) < TINY * fabs(sum)) break;
    factor *= s + 2 * k + 1;
    b /= a;
  }
  return sum;
}
double vm_zeta_f64(double s, double q) {
  if (s == 1) return INFINITY;
  if (s < 1 || s != s || q != q) return NAN;
  if (isinf(q)) return q > 0 ? 0 : NAN;
  if (q > 0) return zeta_right(s, q);
  if (q == floor(q)) return INFINITY;
  if (s != floor(s)) return NAN;
  // the terms left of 0 are those of another zeta, mirrored, up to -q
  double first = -q - floor(-q);
  double left = zeta_right(s, first) - zeta_right(s, 1 - q);
  return (fmod(s, 2) == 0 ? left : -left) + zeta_right(s, 1 - first);
}
double vm_polygamma_f64(double n, double x) {
  if (n == 0) return vm_digamma_f64(x);
  double size = exp(vm_lgamma_f64(n + 1)) * vm_zeta_f64(n + 1, x);
  return fmod(n, 2) == 1 ? size : -size;
}

// ---- incomplete gamma -----------------------------------------------------------------------------------------------

// x^a e^-x / Gamma(a + 1), for large a by Stirling's series so that nothing cancels.
static double gamma_density(double a, double x) {
  if (a < 10) return exp(a * log(x) - x - vm_lgamma_f64(a + 1));
  double mu = (x - a) / a, phi = fabs(mu) < 0.5 ? mu - log1p(mu) : x / a - 1 - log(x / a), z = 1 / (a * a);
  double stirling = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z / 1680))) / a;
  return exp(-a * phi - stirling) / sqrt(2 * PI * a);
}
// Temme's uniform expansion, its first two terms: the upper (sign 1) or lower (-1) function for a > 1e5.
static double gamma_uniform(double a, double x, double sign) {
  double mu = (x - a) / a, half = fmax(mu - log1p(mu), 0), eta = copysign(sqrt(2 * half), mu);
  double first = fabs(mu) < 1e-4 ? -1.0 / 3 + mu / 12 : 1 / mu - 1 / eta;
  return 0.5 * erfc(sign * eta * sqrt(a / 2)) + sign * exp(-a * half) / sqrt(2 * PI * a) * first;
}
static double gamma_series(double a, double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 20000 && term > TINY * sum; k++) {
    term *= x / (a + k);
    sum += term;
  }
  return sum * gamma_density(a, x);
}
// Legendre's continued fraction for the upper function, by Lentz's method.
static double gamma_fraction(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int k = 1; k < 20000; k++) {
    double an = -k * (k - a);
    b += 2;
    d = an * d + b;
    d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
    c = b + an / c;
    c = fabs(c) < 1e-300 ? 1e-300 : c;
    h *= c * d;
    if (fabs(c * d - 1) < 1e-16) break;
  }
  return h * a * gamma_density(a, x);
}
static double incomplete(double a, double x, int upper) {
  if (!(a >= 0) || !(x >= 0)) return NAN;
  if (a == 0) return x > 0 ? !upper : NAN;
  if (x == 0) return upper;
  if (isinf(a)) return isinf(x) ? (double)NAN : upper;
  if (isinf(x)) return !upper;
  if (a > 1e5 && fabs(x - a) < 0.5 * a) return gamma_uniform(a, x, upper ? 1 : -1);
  int series = x <= 1 || x <= a;
  double one = series ? gamma_series(a, x) : gamma_fraction(a, x);
  return series != upper ? one : 1 - one;
}
double vm_igamma_f64(double a, double x) { return incomplete(a, x, 0); }
double vm_igammac_f64(double a, double x) { return incomplete(a, x, 1); }

// ---- error functions ------------------------------------------------------------------------------------------------

// e^(x^2), with what the square lost.
static double exp_square(double x) {
  double s = x * x;
  return isinf(s) ? s : exp(s) * (1 + fma(x, x, -s));
}
double vm_erfcx_f64(double x) {
  if (x < 0) return x < -26.7 ? INFINITY : 2 * exp_square(x) - vm_erfcx_f64(-x);
  if (x <= 10 || x != x) return exp_square(x) * erfc(x);
  double z = 1 / (2 * x * x), sum = 0;
  for (int k = 14; k > 0; k--) sum = -(2 * k - 1) * z * (1 + sum);
  return (1 + sum) / (x * SQRT_PI);
}
// The inverse of erfc on (0, 1/2]: Winitzki's approximation and Halley's steps, relative to e^-x^2.
static double erfc_inverse(double q) {
  double l = log(q * (2 - q)), t = 2 / (PI * 0.147) + l / 2, x = sqrt(sqrt(t * t - l / 0.147) - t);
  for (int k = 0; k < 4; k++) {
    double u = (q * exp_square(x) - vm_erfcx_f64(x)) * (SQRT_PI / 2);
    x -= u / (1 + x * u);
  }
  return x;
}
double vm_erfinv_f64(double y) {
  double a = fabs(y);
  if (!(a < 1)) return a == 1 ? copysign(INFINITY, y) : NAN;
  if (a > 0.5) return copysign(erfc_inverse(1 - a), y);
  double x = y * (SQRT_PI / 2);
  for (int k = 0; k < 4; k++) {
    double u = (erf(x) - y) * (SQRT_PI / 2) * exp(x * x);
    x -= u / (1 + x * u);
  }
  return x;
}
double vm_ndtri_f64(double p) {
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0 || p == 1) return p == 0 ? -INFINITY : INFINITY;
  if (p >= 0.25 && p <= 0.75) return 2 * SQRT1_2 * vm_erfinv_f64(2 * p - 1);
  return p < 0.5 ? -2 * SQRT1_2 * erfc_inverse(2 * p) : 2 * SQRT1_2 * erfc_inverse(2 * (1 - p));
}
double vm_log_ndtr_f64(double x) {
  double t = x * SQRT1_2;
  return x < -1 ? log(vm_erfcx_f64(-t) / 2) - t * t : log1p(-erfc(t) / 2);
}

// ---- Bessel and Airy functions --------------------------------------------------------------------------------------

// sum (x^2/4)^k / (k! (k + nu)!)
static double bessel_i_series(double x, int nu) {
  double z = x * x / 4, term = 1, sum = 1;
  for (int k = 1; k < 200 && term > TINY * sum; k++) {
    term *= z / (k * (double)(k + nu));
    sum += term;
  }
  return nu == 0 ? sum : sum * x / 2;
}
// e^-x I_nu(x) far out.
static double bessel_i_far(double x, int nu) {
  if (isinf(x)) return 0;
  double term = 1, sum = 1;
  for (int k = 1; k < 60; k++) {
    double odd = 2 * k - 1, next = -term * (4 * nu - odd * odd) / (8 * k * x);
    if (fabs(next) >= fabs(term)) break;
    term = next;
    sum += term;
    if (fabs(term) < TINY) break;
  }
  return sum / sqrt(2 * PI * x);
}
static double bessel_i(double x, int nu, int scaled) {
  double a = fabs(x), y;
  if (a <= 30) {
    y = bessel_i_series(a, nu) * (scaled ? exp(-a) : 1);
  } else {
    double half = scaled ? 1 : exp(a / 2);
    y = bessel_i_far(a, nu) * half * half;
    if (!scaled && isinf(half)) y = INFINITY;
  }
  return nu == 1 && x < 0 ? -y : x != x ? x : y;
}
double vm_i0_f64(double x) { return bessel_i(x, 0, 0); }
double vm_i0e_f64(double x) { return bessel_i(x, 0, 1); }
double vm_i1_f64(double x) { return bessel_i(x, 1, 0); }
double vm_i1e_f64(double x) { return bessel_i(x, 1, 1); }

// e^x K_nu(x) and e^x K_nu+1(x) for x >= 2, |nu| <= 1/2: Temme's continued fraction, by Steed's method.
static double bessel_k_fraction(double nu, double x, double *next) {
  double b = 2 * (1 + x), d = 1 / b, h = d, delta = d, q1 = 0, q2 = 1, a1 = 0.25 - nu * nu, q = a1, c = a1, a = -a1;
  double s = 1 + q * delta;
  for (int k = 2; k < 1000; k++) {
    a -= 2 * (k - 1);
    c = -a * c / k;
    double qn = (q1 - b * q2) / a;
    q1 = q2;
    q2 = qn;
    q += c * qn;
    b += 2;
    d = 1 / (b + a * d);
    delta = (b * d - 1) * delta;
    h += delta;
    double ds = q * delta;
    s += ds;
    if (fabs(ds / s) < 1e-16) break;
  }
  double y = sqrt(PI / (2 * x)) / s;
  *next = y * (nu + x + 0.5 - a1 * h) / x;
  return y;
}
static double bessel_k(double x, int nu, int scaled) {
  if (x != x || x < 0) return NAN;
  if (x == 0) return INFINITY;
  if (isinf(x)) return 0;
  double k1, scale = scaled ? 1 : exp(-x);
  if (x >= 2) {
    double k0 = bessel_k_fraction(0, x, &k1);
    return (nu == 0 ? k0 : k1) * scale;
  }
  // series: with logarithm, Euler's constant and harmonic numbers
  double z = x * x / 4, term = 1, harmonic = 0, sum = 0, l = log(x / 2) + 0.57721566490153286061;
  for (int k = 0; k < 30; k++) {
    double weight = nu == 0 ? harmonic : harmonic + 0.5 / (k + 1);
    sum += term * weight;
    harmonic += 1.0 / (k + 1);
    term *= z / ((k + 1) * (double)(k + 1 + nu));
  }
  double y = nu == 0 ? sum - l * bessel_i_series(x, 0) : 1 / x + l * bessel_i_series(x, 1) - x / 2 * sum;
  return scaled ? y * exp(x) : y;
}
double vm_k0_f64(double x) { return bessel_k(x, 0, 0); }
double vm_k0e_f64(double x) { return bessel_k(x, 0, 1); }
double vm_k1_f64(double x) { return bessel_k(x, 1, 0); }
double vm_k1e_f64(double x) { return bessel_k(x, 1, 1); }

double vm_j0_f64(double x) { return isinf(x) ? 0 : j0(x); }
double vm_j1_f64(double x) { return isinf(x) ? 0 : j1(x); }
double vm_y0_f64(double x) { return x < 0 ? NAN : x == 0 ? -INFINITY : isinf(x) ? 0 : y0(x); }
double vm_y1_f64(double x) { return x < 0 ? NAN : x == 0 ? -INFINITY : isinf(x) ? 0 : y1(x); }
double vm_spherical_j0_f64(double x) {
  if (isinf(x)) return 0;
  double z = x * x;
  if (fabs(x) < 0.5)
    return 1 - z / 6 * (1 - z / 20 * (1 - z / 42 * (1 - z / 72 * (1 - z / 110 * (1 - z / 156)))));
  return sin(x) / x;
}

// Maclaurin's series, in long double because its terms are larger than its sum.
static double airy_series(double x) {
  long double z = (long double)x * x * x, f = 1, g = x, tf = 1, tg = x;
  for (int k = 1; k < 120; k++) {
    tf *= z / ((3 * k - 1) * (long double)(3 * k));
    tg *= z / ((3 * k) * (long double)(3 * k + 1));
    f += tf;
    g += tg;
  }
  return (double)(0.355028053887817239260063186004L * f - 0.258819403792806798405183560189L * g);
}
// Left of 0: sin and cos of zeta + pi/4 with the expansion's even and odd terms.
static double airy_left(double x) {
  double zeta = 2.0 / 3 * x * sqrt(x), term = 1, even = 0, odd = 0;
  for (int k = 0; k < 40; k++) {
    if (k % 2 == 0) even += k % 4 == 0 ? term : -term;
    else odd += k % 4 == 1 ? term : -term;
    double next = term * (6 * k + 1) * (6 * k + 5) / (72.0 * (k + 1)) / zeta;
    if (next >= term || next < TINY) break;
    term = next;
  }
  double angle = zeta + PI / 4;
  return (sin(angle) * even - cos(angle) * odd) / (SQRT_PI * sqrt(sqrt(x)));
}
double vm_airy_ai_f64(double x) {
  if (isinf(x)) return x > 0 ? 0 : NAN;
  if (x < -8) return airy_left(-x);
  if (!(x > 2.1)) return airy_series(x);
  double zeta = 2.0 / 3 * x * sqrt(x), next;
  return exp(-zeta) * bessel_k_fraction(1.0 / 3, zeta, &next) * sqrt(x / 3) / PI;
}

// ---- orthogonal polynomials -----------------------------------------------------------------------------------------

#define MOST_TERMS 10000000

// p(k+1) = (a x) p(k) - p(k-1) from p0 = 1 and p1. Beyond all bounds it is nan.
static double recurrence(double p1, double twice_x, int64_t n) {
  double p = 1, q = p1;
  if (n > MOST_TERMS) return NAN;
  for (int64_t k = 2; k <= n && q == q; k++) {
    double r = twice_x * q - p;
    p = q;
    q = r;
  }
  return q;
}
static double odd_sign(int64_t n) { return n % 2 == 0 ? 1 : -1; }
static int64_t order(double n) { return n != n ? -1 : n > 9e18 ? INT64_MAX : n < 0 && n > -1 ? 0 : n < 0 ? -1 : (int64_t)n; }

double vm_chebyshev_t_f64(double x, double order_n) {
  int64_t n = order(order_n);
  if (n < 0) return 0;
  if (fabs(x) == 1) return x > 0 ? 1 : odd_sign(n);
  if (n > 6 && fabs(x) < 1) return cos((double)n * acos(x));
  return n == 0 ? 1 : recurrence(x, x + x, n);
}
double vm_chebyshev_u_f64(double x, double order_n) {
  int64_t n = order(order_n);
  if (n < 0) return 0;
  if (fabs(x) == 1) return (x > 0 ? 1 : odd_sign(n)) * ((double)n + 1);
  if (n > 8 && fabs(x) < 1) return sin(((double)n + 1) * acos(x)) / sin(acos(x));
  return n == 0 ? 1 : recurrence(x + x, x + x, n);
}
double vm_chebyshev_v_f64(double x, double order_n) {
  int64_t n = order(order_n);
  if (n < 0) return 0;
  if (fabs(x) == 1) return x > 0 ? 1 : odd_sign(n) * (2 * (double)n + 1);
  if (n > 8 && fabs(x) < 1) return cos(((double)n + 0.5) * acos(x)) / cos(acos(x) / 2);
  return n == 0 ? 1 : recurrence(x + x - 1, x + x, n);
}
double vm_chebyshev_w_f64(double x, double order_n) {
  int64_t n = order(order_n);
  if (n < 0) return 0;
  if (fabs(x) == 1) return x > 0 ? 2 * (double)n + 1 : odd_sign(n);
  if (n > 8 && fabs(x) < 1) return sin(((double)n + 0.5) * acos(x)) / sin(acos(x) / 2);
  return n == 0 ? 1 : recurrence(x + x + 1, x + x, n);
}
double vm_hermite_h_f64(double x, double order_n) {
  int64_t n = order(order_n);
  if (n < 0) return 0;
  if (n > 512) return NAN;
  double p = 1, q = x + x;
  for (int64_t k = 2; k < n + n && q == q; k += 2) {
    double r = (x + x) * q - (double)k * p;
    p = q;
    q = r;
  }
  return n == 0 ? 1 : q;
}
double vm_hermite_he_f64(double x, double order_n) {
  int64_t n = order(order_n);
  if (n < 0) return 0;
  if (n > 512) return NAN;
  double p = 1, q = x;
  for (int64_t k = 1; k < n && q == q; k++) {
    double r = x * q - (double)k * p;
    p = q;
    q = r;
  }
  return n == 0 ? 1 : q;
}
double vm_laguerre_l_f64(double x, double order_n) {
  int64_t n = order(order_n);
  if (n < 0) return 0;
  if (x == 0 || n == 0) return 1;
  if (n > MOST_TERMS) return NAN;
  double p = 1, q = 1 - x;
  for (int64_t k = 1; k < n && q == q; k++) {
    double i = (double)k, r = ((i + i + 1 - x) * q - i * p) / (i + 1);
    p = q;
    q = r;
  }
  return q;
}
double vm_legendre_p_f64(double x, double order_n) {
  int64_t n = order(order_n);
  if (n < 0) return 0;
  if (fabs(x) == 1) return x > 0 ? 1 : odd_sign(n);
  if (n == 0) return 1;
  if (n > MOST_TERMS) return NAN;
  double p = 1, q = x;
  for (int64_t k = 1; k < n && q == q; k++) {
    double i = (double)k, r = ((i + i + 1) * x * q - i * p) / (i + 1);
    p = q;
    q = r;
  }
  return q;
}
