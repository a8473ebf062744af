// How far functions are from the exact values: float against double, double against __float128.
#define _GNU_SOURCE
#include <math.h>
#include <quadmath.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

// worst: the largest error in units of the last place, and the operands it is at. count: of values
// that were compared. over: of those more than `bound` off. wrong: of those that are NaN, infinite
// or zero, or have a sign, where the exact value does not. backwards: of neighbours in the wrong order.
typedef struct {
  double worst, worst_at[2], wrong_at[2];
  int64_t count, over, wrong, backwards;
} report_t;

typedef struct {
  double bound;
  double near_zero; // the error is measured in units of at least this value's last place
} tolerance_t;

// References that the libraries do not have.

static double expit(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }

static __float128 expitq(__float128 x) { return x < 0 ? expq(x) / (1 + expq(x)) : 1 / (1 + expq(-x)); }

static long double logaddexp(long double a, long double b) {
  if (a == b) return a + logl(2);
  return fmaxl(a, b) + log1pl(expl(-fabsl(a - b)));
}

static double logaddexp_narrow(double a, double b) { return a != a || b != b ? a + b : (double)logaddexp(a, b); }

static double logaddexp2_narrow(double a, double b) {
  if (a != a || b != b) return a + b;
  if (a == b) return a + 1;
  return (double)(fmaxl(a, b) + M_LOG2El * log1pl(exp2l(-fabsl((long double)a - b))));
}

static __float128 logaddexpq(__float128 a, __float128 b) {
  if (a != a || b != b) return a + b;
  if (a == b) return a + M_LN2q;
  return fmaxq(a, b) + log1pq(expq(-fabsq(a - b)));
}

static __float128 logaddexp2q(__float128 a, __float128 b) {
  if (a != a || b != b) return a + b;
  if (a == b) return a + 1;
  return fmaxq(a, b) + M_LOG2Eq * log1pq(exp2q(-fabsq(a - b)));
}

// The conventions of scipy at poles and at -infinity.
static double gamma_of(double x) { return x < 0 && (isinf(x) || x == floor(x)) ? NAN : tgamma(x); }

static __float128 gamma_ofq(__float128 x) { return x < 0 && (isinfq(x) || x == floorq(x)) ? nanq("") : tgammaq(x); }

static double gammaln_of(double x) { return isinf(x) ? x : lgamma(x); }

static __float128 gammaln_ofq(__float128 x) { return isinfq(x) ? x : lgammaq(x); }

#define POWER(name, exponent) \
  static double name(double x) { return pow(x, exponent); } \
  static __float128 name##q(__float128 x) { return powq(x, exponent); }

POWER(power_3, 3)
POWER(power_4, 4)
POWER(power_3_halves, 1.5)
POWER(power_minus_half, -0.5)
POWER(power_minus_3_halves, -1.5)
POWER(power_minus_2, -2)

typedef struct {
  const char *name;
  double (*of_float)(double);
  __float128 (*of_double)(__float128);
} unary_t;

typedef struct {
  const char *name;
  double (*of_float)(double, double);
  __float128 (*of_double)(__float128, __float128);
} binary_t;

#define LIKE(name) {#name, name, name##q}
#define ARC(name) {"arc" #name, a##name, a##name##q}

static const unary_t unary[] = {
    LIKE(exp), LIKE(exp2), LIKE(expm1), LIKE(log), LIKE(log2), LIKE(log10), LIKE(log1p), LIKE(cbrt), LIKE(sin), LIKE(cos), LIKE(tan), LIKE(sinh), LIKE(cosh), LIKE(tanh), ARC(sin), ARC(cos), ARC(tan), ARC(sinh), ARC(cosh), ARC(tanh), LIKE(erf), LIKE(erfc), LIKE(expit), LIKE(power_3), LIKE(power_4), LIKE(power_3_halves), LIKE(power_minus_half), LIKE(power_minus_3_halves), LIKE(power_minus_2), {"gamma", gamma_of, gamma_ofq}, {"gammaln", gammaln_of, gammaln_ofq}};

static const binary_t binary[] = {
    LIKE(hypot), ARC(tan2), {"power", pow, powq}, {"logaddexp", logaddexp_narrow, logaddexpq}, {"logaddexp2", logaddexp2_narrow, logaddexp2q}};

static const unary_t *unary_named(const char *name) {
  for (size_t i = 0; i < sizeof unary / sizeof *unary; i++)
    if (!strcmp(unary[i].name, name)) return &unary[i];
  return NULL;
}

static const binary_t *binary_named(const char *name) {
  for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
    if (!strcmp(binary[i].name, name)) return &binary[i];
  return NULL;
}

// Errors

// 2^floor(log2(size)), where that is normal.
static double power_of_two(double size) {
  uint64_t bits;
  memcpy(&bits, &size, sizeof bits);
  bits &= 0x7ff0000000000000;
  memcpy(&size, &bits, sizeof bits);
  return size;
}

// The error in units of the last place; -1 where it is not a matter of accuracy.
static double error_of_float(double exact, float got, double near_zero) {
  if (exact != exact || got != got) return exact != exact && got != got ? 0 : -1;
  if (fabs(exact) < near_zero && got < near_zero) return fabs(exact - got) / (power_of_two(near_zero) * 0x1p-23);
  if (!signbit(exact) != !signbit(got)) return -1;
  if (isinf(exact) || exact == 0) return exact == got ? 0 : -1;
  if (isinf(got) && fabs(exact) >= 0x1p128) return 0;
  double size = fmax(fmin(power_of_two(exact), 0x1p127), fmax(0x1p-126, power_of_two(near_zero)));
  return fabs((isinf(got) ? copysign(0x1p128, got) : got) - exact) / (size * 0x1p-23);
}

static double error_of_double(__float128 exact, double got, double near_zero) {
  if (exact != exact || got != got) return exact != exact && got != got ? 0 : -1;
  double near = (double)exact; // with the exponent of exact, but where that rounds up
  if (fabs(near) < near_zero && got < near_zero) return (double)(fabsq(exact - got) / (power_of_two(near_zero) * 0x1p-52Q));
  if (!signbit(near) != !signbit(got)) return -1;
  if (isinfq(exact) || exact == 0) return near == got ? 0 : -1;
  if (isinf(got) && fabsq(exact) >= 0x1p1024Q) return 0;
  double size = fmax(fmin(power_of_two(near), 0x1p1023), fmax(0x1p-1022, power_of_two(near_zero)));
  if (size > fabsq(exact)) size /= size > 0x1p-1022 ? 2 : 1;
  __float128 value = isinf(got) ? copysignq(0x1p1024Q, got) : (__float128)got;
  return (double)(fabsq(value - exact) / ((__float128)size * 0x1p-52Q));
}

static void record(report_t *report, double error, double x, double y, double bound) {
  report->count++;
  if (error < 0) {
    if (!report->wrong++) report->wrong_at[0] = x, report->wrong_at[1] = y;
    return;
  }
  report->over += error > bound;
  if (error > report->worst) report->worst = error, report->worst_at[0] = x, report->worst_at[1] = y;
}

// Checks. A kernel is what tinyfuse builds: its arrays are the number of elements, operands, result.

typedef int (*kernel_t)(void *const *arrays, void *scratch, const void *pool);

enum { BLOCK = 4096 };

// Every step-th float32 from bits `first` to `last`; results of neighbours are compared if step is 1.
int check_floats(kernel_t kernel, const char *name, uint64_t first, uint64_t last, uint64_t step,
                 tolerance_t tolerance, report_t *report) {
  const unary_t *reference = unary_named(name);
  if (!reference) return 1;
  float x[BLOCK], y[BLOCK], last_y = NAN;
  double last_exact = NAN;
  for (uint64_t bits = first; bits < last;) {
    int64_t count = 0;
    for (; count < BLOCK && bits < last; bits += step, count++) {
      uint32_t narrow = (uint32_t)bits;
      memcpy(&x[count], &narrow, sizeof narrow);
    }
    kernel((void *[]){&count, x, y}, NULL, NULL);
    for (int64_t i = 0; i < count; i++) {
      double exact = reference->of_float(x[i]);
      record(report, error_of_float(exact, y[i], tolerance.near_zero), x[i], 0, tolerance.bound);
      report->backwards += (exact > last_exact && y[i] < last_y) || (exact < last_exact && y[i] > last_y);
      last_exact = exact, last_y = y[i];
    }
  }
  return 0;
}

int check_float(const char *name, int64_t count, const float *x, const float *y, const float *got,
                tolerance_t tolerance, report_t *report) {
  const unary_t *one = unary_named(name);
  const binary_t *two = binary_named(name);
  if (!one && !two) return 1;
  for (int64_t i = 0; i < count; i++) {
    double exact = one ? one->of_float(x[i]) : two->of_float(x[i], y[i]);
    record(report, error_of_float(exact, got[i], tolerance.near_zero), x[i], y[i], tolerance.bound);
  }
  return 0;
}

int check_double(const char *name, int64_t count, const double *x, const double *y, const double *got,
                 tolerance_t tolerance, report_t *report) {
  const unary_t *one = unary_named(name);
  const binary_t *two = binary_named(name);
  if (!one && !two) return 1;
  for (int64_t i = 0; i < count; i++) {
    __float128 exact = one ? one->of_double(x[i]) : two->of_double(x[i], y[i]);
    record(report, error_of_double(exact, got[i], tolerance.near_zero), x[i], y[i], tolerance.bound);
  }
  return 0;
}

// Seconds that `times` calls take.
double seconds(kernel_t kernel, void *const *arrays, int times) {
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (int i = 0; i < times; i++) kernel(arrays, NULL, NULL);
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
}
