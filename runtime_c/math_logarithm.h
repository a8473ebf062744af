// Logarithms, and the inverses of hyperbolic functions. x is split as 2^e (1 + f), with 1 + f from
// sqrt(1/2) to sqrt(2).

// x of a logarithm, as 2^e (1 + f): the bits of x, moved by those of sqrt(1/2) such that they begin
// with e.
static inline uint32_t tf_log_bits_float(float x) {
  uint32_t bits = tf_bits_float(x < 0x1p-126f ? x * 0x1p+23f : x);
  return bits - (x < 0x1p-126f ? 0x3f3504f3u + (23u << 23) : 0x3f3504f3u);
}

// f of x, from sqrt(1/2) - 1 to sqrt(2) - 1, exact.
static inline float tf_log_fraction_float(uint32_t bits) {
  return tf_from_bits_float((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
}

// (log(1 + f) - f) / f^2, for a fraction and its square. The polynomial is off by 2^-26 of the logarithm.
static inline float tf_log_quotient_float(float f, float square) {
  float even = 0x1.05a926p-3f, odd = -0x1.3935a2p-4f;
  even = __builtin_fmaf(even, square, 0x1.22d528p-3f);
  odd = __builtin_fmaf(odd, square, -0x1.0d9686p-3f);
  even = __builtin_fmaf(even, square, 0x1.99a03ep-3f);
  odd = __builtin_fmaf(odd, square, -0x1.5470f8p-3f);
  even = __builtin_fmaf(even, square, 0x1.555554p-2f);
  odd = __builtin_fmaf(odd, square, -0x1.00022cp-2f);
  return __builtin_fmaf(f, __builtin_fmaf(odd, f, even), -0.5f);
}

// What a logarithm of x is, given what it is where x is positive and finite: by its sign bit, a negative x
// makes every bit 1, which is a NaN.
static inline float tf_log_of_float(float x, float y) {
  int32_t bits = (int32_t)tf_bits_float(x);
  uint32_t y_bits = tf_bits_float(bits < 0x7f800000 ? y : x); // infinity, NaN
  y = tf_from_bits_float(y_bits | (uint32_t)(bits >> 31));
  return x == 0.0f ? -__builtin_inff() : y;
}

// log(x).
static inline float tf_log_float(float x) {
  uint32_t bits = tf_log_bits_float(x);
  float e = (float)((int32_t)bits >> 23);
  float f = tf_log_fraction_float(bits), square = f * f;
  float whole = e * 0x1.62e4p-1f; // exact
  float y = whole + f;
  float y_low = __builtin_fmaf(e, 0x1.7f7d1cp-20f, (whole - y) + f);
  y = y + __builtin_fmaf(square, tf_log_quotient_float(f, square), y_low);
  return tf_log_of_float(x, y);
}

// log2(x): e + f q, where the polynomial is off by 2^-25.1.
static inline float tf_log2_float(float x) {
  uint32_t bits = tf_log_bits_float(x);
  float e = (float)((int32_t)bits >> 23);
  float f = tf_log_fraction_float(bits);
  float q = 0x1.01b9d4p-3f;
  q = __builtin_fmaf(q, f, -0x1.a78p-3f);
  q = __builtin_fmaf(q, f, 0x1.b94ep-3f);
  q = __builtin_fmaf(q, f, -0x1.e980a2p-3f);
  q = __builtin_fmaf(q, f, 0x1.26dd48p-2f);
  q = __builtin_fmaf(q, f, -0x1.715b7ep-2f);
  q = __builtin_fmaf(q, f, 0x1.ec7366p-2f);
  q = __builtin_fmaf(q, f, -0x1.715472p-1f);
  q = __builtin_fmaf(q, f, 0x1.715476p+0f);
  return tf_log_of_float(x, __builtin_fmaf(f, q, e));
}

// log10(x): e log10(2) + f q, where the polynomial is off by 2^-24.7.
static inline float tf_log10_float(float x) {
  uint32_t bits = tf_log_bits_float(x);
  float e = (float)((int32_t)bits >> 23);
  float f = tf_log_fraction_float(bits);
  float q = 0x1.379c12p-5f;
  q = __builtin_fmaf(q, f, -0x1.fa7f94p-5f);
  q = __builtin_fmaf(q, f, 0x1.089568p-4f);
  q = __builtin_fmaf(q, f, -0x1.26ee1p-4f);
  q = __builtin_fmaf(q, f, 0x1.63367ap-4f);
  q = __builtin_fmaf(q, f, -0x1.bcbe4p-4f);
  q = __builtin_fmaf(q, f, 0x1.287b44p-3f);
  q = __builtin_fmaf(q, f, -0x1.bcb7aep-3f);
  q = __builtin_fmaf(q, f, 0x1.bcb7b2p-2f);
  float y = __builtin_fmaf(f, q, e * 0x1.3509f8p-18f);
  return tf_log_of_float(x, __builtin_fmaf(e, 0x1.344p-2f, y));
}

// log(1 + x): the logarithm of 1 + f = 2^-e (1 + x), and f_low / (1 + f) for what rounding took from f.
static inline float tf_log1p_float(float x) {
  float larger = x > 1.0f ? x : 1.0f, smaller = x > 1.0f ? 1.0f : x;
  float sum = larger + smaller;
  float low = smaller - (sum - larger);
  uint32_t bits = tf_bits_float(sum) - 0x3f3504f3u;
  float e = (float)((int32_t)bits >> 23);
  float f = tf_log_fraction_float(bits), square = f * f;
  float f_low = low * tf_from_bits_float(0x40000000u - (bits & 0xff800000u)) * 0.5f;
  f_low = __builtin_fmaf(f_low, square - f, f_low);
  float whole = e * 0x1.62e4p-1f; // exact
  float y = whole + f;
  float y_low = __builtin_fmaf(e, 0x1.7f7d1cp-20f, (whole - y) + f) + f_low;
  y = y + __builtin_fmaf(square, tf_log_quotient_float(f, square), y_low);
  return __builtin_copysignf(tf_log_of_float(sum, y), x);
}

// x of a logarithm, as 2^e (1 + f), for normal x: the bits of x, moved by those of sqrt(1/2) such that
// they begin with e + 2046.
static inline uint64_t tf_log_bits_double(double x) {
  return tf_bits_double(x) + (0x7fe0000000000000u - 0x3fe6a09e667f3bcdu);
}

// The same for any x, with the bits of another number for those of sqrt(1/2).
static inline uint64_t tf_log_bits_of_any_double(double x, uint64_t root) {
  bool8_t subnormal = x < 0x1p-1022;
  uint64_t bits = tf_bits_double(subnormal ? x * 0x1p+52 : x);
  return bits + ((subnormal ? 0x7fe0000000000000u - ((uint64_t)52 << 52) : 0x7fe0000000000000u) - root);
}

// e of x.
static inline double tf_log_exponent_double(uint64_t bits) {
  return tf_from_bits_double(bits >> 52 | 0x4330000000000000u) - 0x1.00000000007fep+52;
}

// f of x, from sqrt(1/2) - 1 to sqrt(2) - 1, exact.
static inline double tf_log_fraction_double(uint64_t bits) {
  return tf_from_bits_double((bits & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
}

// log(1 + f) - f, for a fraction: by a polynomial of s = f / (2 + f) that is off by 2^-59 (P. T. P.
// Tang, Table-Driven Implementation of the Logarithm Function, 1990; the form is that of fdlibm).
static inline double tf_log_rest_double(double f) {
  double s = f / (2.0 + f);
  double z = s * s;
  double half_square = 0.5 * f * f;
  double q = 0x1.2f05029f9c266p-3;
  q = __builtin_fma(q, z, 0x1.39a1caa693d2ep-3);
  q = __builtin_fma(q, z, 0x1.74663dfc1a966p-3);
  q = __builtin_fma(q, z, 0x1.c71c520fddb41p-3);
  q = __builtin_fma(q, z, 0x1.24924941e594ep-2);
  q = __builtin_fma(q, z, 0x1.999999997feedp-2);
  q = __builtin_fma(q, z, 0x1.5555555555592p-1);
  return __builtin_fma(s, __builtin_fma(q, z, half_square), -half_square);
}

// What a logarithm of x is, given what it is where x is positive and finite.
static inline double tf_log_of_double(double x, double y) {
  y = x >= 0 ? y : __builtin_nan("");
  y = x == 0 ? -__builtin_inf() : y;
  return x == __builtin_inf() ? x : y;
}

// log(x).
static inline double tf_log_double(double x) {
  uint64_t bits = tf_log_bits_of_any_double(x, 0x3fe6a09e667f3bcdu);
  double e = tf_log_exponent_double(bits);
  double f = tf_log_fraction_double(bits);
  double whole = e * 0x1.62e42fefa38p-1; // exact
  double y = whole + f;
  double y_low = (whole - y) + f;
  y = y + (__builtin_fma(e, 0x1.ef35793c7673p-45, tf_log_rest_double(f)) + y_low);
  return tf_log_of_double(x, y);
}

// log2(x).
static inline double tf_log2_double(double x) {
  uint64_t bits = tf_log_bits_of_any_double(x, 0x3fe6a09e667f3bcdu);
  double e = tf_log_exponent_double(bits);
  double f = tf_log_fraction_double(bits);
  double part = f * 0x1.71547652b82fep+0;
  double part_low = __builtin_fma(f, 0x1.777d0ffda0d24p-56, __builtin_fma(f, 0x1.71547652b82fep+0, -part));
  double y = e + part;
  double y_low = (e - y) + part;
  y = y + (__builtin_fma(tf_log_rest_double(f), 0x1.71547652b82fep+0, part_low) + y_low);
  return tf_log_of_double(x, y);
}

// log10(x).
static inline double tf_log10_double(double x) {
  uint64_t bits = tf_log_bits_of_any_double(x, 0x3fe6a09e667f3bcdu);
  double e = tf_log_exponent_double(bits);
  double f = tf_log_fraction_double(bits);
  double part = f * 0x1.bcb7b1526e50ep-2;
  double part_low = __builtin_fma(f, 0x1.95355baaafad3p-57, __builtin_fma(f, 0x1.bcb7b1526e50ep-2, -part));
  double whole = e * 0x1.34413509f78p-2; // exact
  double y = whole + part;
  double y_low = __builtin_fma(e, 0x1.fef311f12b358p-46, (whole - y) + part);
  y = y + (__builtin_fma(tf_log_rest_double(f), 0x1.bcb7b1526e50ep-2, part_low) + y_low);
  return tf_log_of_double(x, y);
}

// log(x) of a positive normal double, for float functions: off by 2^-32.6.
static inline double tf_log_for_float(double x) {
  uint64_t bits = tf_log_bits_double(x);
  double f = tf_log_fraction_double(bits);
  double q = -0x1.13463d0f2943bp-4;
  q = __builtin_fma(q, f, 0x1.cfcc557379285p-4);
  q = __builtin_fma(q, f, -0x1.bc6838b105b07p-4);
  q = __builtin_fma(q, f, 0x1.bea542b5895fap-4);
  q = __builtin_fma(q, f, -0x1.fbdb21126c836p-4);
  q = __builtin_fma(q, f, 0x1.24bb367b6296ap-3);
  q = __builtin_fma(q, f, -0x1.556f0b0f09a42p-3);
  q = __builtin_fma(q, f, 0x1.999905c25a6d7p-3);
  q = __builtin_fma(q, f, -0x1.ffff80271e88dp-3);
  q = __builtin_fma(q, f, 0x1.55555594e102p-2);
  q = __builtin_fma(q, f, -0x1.0000002c506c4p-1);
  return __builtin_fma(tf_log_exponent_double(bits), 0x1.62e42fefa39efp-1, __builtin_fma(f * f, q, f));
}

// The inverse of the hyperbolic sine.
static inline float tf_asinh_float(float x) {
  double size = __builtin_fabs((double)x);
  float y = (float)tf_log_for_float(size + __builtin_sqrt(__builtin_fma(size, size, 1.0)));
  y = ((size > 0x1p-13) & (size < __builtin_inf())) ? y : (float)size;
  return __builtin_copysignf(y, x);
}

// The inverse of the hyperbolic cosine; NaN below 1.
static inline float tf_acosh_float(float x) {
  double wide = x;
  float y = (float)tf_log_for_float(wide + __builtin_sqrt(__builtin_fma(wide, wide, -1.0)));
  y = x < __builtin_inff() ? y : x;
  return x < 1.0f ? __builtin_nanf("") : y;
}

// The inverse of the hyperbolic tangent; NaN beyond -1 and 1.
static inline float tf_atanh_float(float x) {
  double size = __builtin_fabs((double)x);
  float y = (float)(0.5 * tf_log_for_float((1.0 + size) / (1.0 - size)));
  y = size < 0x1p-13 ? (float)size : y;
  y = size == 1.0 ? __builtin_inff() : y;
  y = size > 1.0 ? __builtin_nanf("") : y;
  return __builtin_copysignf(x == x ? y : x, x);
}

// log(x + low) + log(2) * more, for a positive normal x.
static inline double tf_log_of_sum_double(double x, double low, double more) {
  uint64_t bits = tf_log_bits_double(x);
  double scale = 0.5 * tf_from_bits_double(0xbfe0000000000000u - (bits & 0xfff0000000000000u)); // 2^-e
  double first = tf_log_fraction_double(bits);
  double f = __builtin_fma(low, scale, first);
  double f_low = __builtin_fma(low, scale, first - f);
  double rest = tf_log_rest_double(f) + __builtin_fma(f_low, __builtin_fma(f, f, -f), f_low); // 1 / (1 + f)
  double e = tf_log_exponent_double(bits) + more;
  double whole = e * 0x1.62e42fefa38p-1; // exact
  double y = whole + f;
  double y_low = (whole - y) + f;
  return y + (__builtin_fma(e, 0x1.ef35793c7673p-45, rest) + y_low);
}

// log(1 + x).
static inline double tf_log1p_double(double x) {
  double sum = 1.0 + x;
  double part = sum - 1.0;
  double low = (1.0 - (sum - part)) + (x - part);
  double y = tf_log_of_double(sum, tf_log_of_sum_double(sum, low, 0.0));
  return __builtin_copysign(y, x);
}

// The inverse of the hyperbolic sine: log(|x| + sqrt(x^2 + 1)).
static inline double tf_asinh_double(double x) {
  double size = __builtin_fabs(x);
  double square = size * size;
  double sum = square + 1.0;
  double part = sum - 1.0;
  double sum_low = (1.0 - (sum - part)) + (square - part) + __builtin_fma(size, size, -square);
  double root = __builtin_sqrt(sum);
  double root_low = (__builtin_fma(-root, root, sum) + sum_low) * (0.5 / root);
  double total = root + size;
  double low = (root - total) + size + root_low;
  bool8_t large = size > 0x1p+28;
  double y = tf_log_of_sum_double(large ? size : total, large ? 0.0 : low, large ? 1.0 : 0.0);
  y = ((size > 0x1p-28) & (size < __builtin_inf())) ? y : size;
  return __builtin_copysign(y, x);
}

// The inverse of the hyperbolic cosine, log(x + sqrt(x^2 - 1)); NaN below 1.
static inline double tf_acosh_double(double x) {
  double square = x * x;
  double sum = square - 1.0;
  double sum_low = (square - sum) - 1.0 + __builtin_fma(x, x, -square);
  double root = __builtin_sqrt(sum);
  double root_low = (__builtin_fma(-root, root, sum) + sum_low) * (0.5 / root);
  double total = x + root;
  double low = (x - total) + root + root_low;
  bool8_t large = x > 0x1p+28;
  double y = tf_log_of_sum_double(large ? x : total, large ? 0.0 : low, large ? 1.0 : 0.0);
  y = x < __builtin_inf() ? y : x;
  y = x == 1.0 ? 0.0 : y;
  return x < 1.0 ? __builtin_nan("") : y;
}

// The inverse of the hyperbolic tangent, log((1 + x) / (1 - x)) / 2; NaN beyond -1 and 1.
static inline double tf_atanh_double(double x) {
  double size = __builtin_fabs(x);
  double above = 1.0 + size;
  double above_low = (1.0 - above) + size;
  double below = 1.0 - size;
  double below_low = (1.0 - below) - size;
  double ratio = above / below;
  double error = __builtin_fma(-ratio, below, above) + (above_low - ratio * below_low);
  double low = error * (0.5 + 0.5 * ratio); // 1 / (1 - x)
  double y = 0.5 * tf_log_of_sum_double(ratio, low, 0.0);
  y = size < 0x1p-28 ? size : y;
  y = size == 1.0 ? __builtin_inf() : y;
  y = size > 1.0 ? __builtin_nan("") : y;
  return __builtin_copysign(x == x ? y : x, x);
}

// log(e^a + e^b), without overflow.
static inline double tf_logaddexp_double(double a, double b) {
  double difference = a - b;
  double larger = difference > 0.0 ? a : b;
  double y = larger + tf_log1p_double(tf_exp_double(-__builtin_fabs(difference)));
  y = a == b ? a + 0x1.62e42fefa39efp-1 : y;
  return difference != difference && a != b ? difference : y;
}

// log(e^a + e^b), without overflow, by arithmetic of doubles.
static inline float tf_logaddexp_float(float a, float b) {
  return (float)tf_logaddexp_double(a, b);
}

// log2(2^a + 2^b), without overflow.
static inline double tf_logaddexp2_double(double a, double b) {
  double difference = a - b;
  double larger = difference > 0.0 ? a : b;
  double y = tf_log1p_double(tf_exp2_double(-__builtin_fabs(difference)));
  y = __builtin_fma(y, 0x1.71547652b82fep+0, larger);
  return a == b ? a + 1.0 : y;
}

// log2(2^a + 2^b), without overflow, by arithmetic of doubles.
static inline float tf_logaddexp2_float(float a, float b) {
  return (float)tf_logaddexp2_double(a, b);
}
