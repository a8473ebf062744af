// Exponential and logarithmic functions. Every rounding is explicit, and there are no branches: a
// loop over any of them vectorizes, and its bits depend neither on that nor on the compiler.
//
// Exponentials split x as n log(2) + r: adding a large number rounds x / log(2) to n, and leaves n in
// the low bits of the sum (W. J. Cody and W. Waite, Software Manual for the Elementary Functions,
// 1980). Logarithms split x as 2^e (1 + f) with 1 + f from sqrt(1/2) to sqrt(2). The rest are
// polynomials, from the Remez exchange with rounded coefficients, whose error is given as a part of
// the result. Where "low" is what rounding took from another value, see T. J. Dekker, A
// Floating-Point Technique for Extending the Available Precision, 1971. Special values come last:
// limits on x before the arithmetic would cost half of the speed.

// p * 2^n with biased = n + 254: in two steps, so that subnormal results are rounded once.
static inline float tf_scaled_float(float p, uint32_t biased) {
  uint32_t half = biased >> 1;
  return p * tf_from_bits_float((biased - half) << 23) * tf_from_bits_float(half << 23);
}

// p * 2^n with biased = n + 2046.
static inline double tf_scaled_double(double p, uint64_t biased) {
  uint64_t half = biased >> 1;
  return p * tf_from_bits_double((biased - half) << 52) * tf_from_bits_double(half << 52);
}

// e^x. The polynomial is off by 2^-27.5.
static inline float tf_exp_float(float x) {
  float t = __builtin_fmaf(x, 0x1.715476p+0f, 0x1.8001fcp+23f); // n + 254 in its low bits
  float n = t - 0x1.8001fcp+23f;
  float r = __builtin_fmaf(n, -0x1.7f7d1cp-20f, __builtin_fmaf(n, -0x1.62e4p-1f, x));
  float q = 0x1.6a5166p-10f;
  q = __builtin_fmaf(q, r, 0x1.123e52p-7f);
  q = __builtin_fmaf(q, r, 0x1.5558d6p-5f);
  q = __builtin_fmaf(q, r, 0x1.555494p-3f);
  q = __builtin_fmaf(q, r, 0x1.fffffcp-2f);
  float y = tf_scaled_float(__builtin_fmaf(r * r, q, r) + 1.0f, tf_bits_float(t) - 0x4b400000u);
  y = x > 89.0f ? __builtin_inff() : y;
  return x < -104.5f ? 0.0f : y;
}

// e^x. The polynomial is off by 2^-63.
static inline double tf_exp_double(double x) {
  double t = __builtin_fma(x, 0x1.71547652b82fep+0, 0x1.80000000007fep+52); // n + 2046 in its low bits
  double n = t - 0x1.80000000007fep+52;
  double r = __builtin_fma(n, -0x1.cf79abc9e3b3ap-40, __builtin_fma(n, -0x1.62e42fefap-1, x));
  double q = 0x1.2017e3f402e46p-29;
  q = __builtin_fma(q, r, 0x1.af738d7b9a8f6p-26);
  q = __builtin_fma(q, r, 0x1.27e46a8325508p-22);
  q = __builtin_fma(q, r, 0x1.71ddeb3a8f9a6p-19);
  q = __builtin_fma(q, r, 0x1.a01a01dd79904p-16);
  q = __builtin_fma(q, r, 0x1.a01a01b5bd84fp-13);
  q = __builtin_fma(q, r, 0x1.6c16c16c0b76bp-10);
  q = __builtin_fma(q, r, 0x1.111111110e595p-7);
  q = __builtin_fma(q, r, 0x1.555555555556bp-5);
  q = __builtin_fma(q, r, 0x1.555555555555dp-3);
  q = __builtin_fma(q, r, 0.5);
  double y = tf_scaled_double(__builtin_fma(r * r, q, r) + 1.0, tf_bits_double(t) - 0x4338000000000000u);
  y = x > 710.0 ? __builtin_inf() : y;
  return x < -746.0 ? 0.0 : y;
}

// 2^x. The polynomial is off by 2^-30.8.
static inline float tf_exp2_float(float x) {
  float t = x + 0x1.8001fcp+23f; // n + 254 in its low bits
  float r = x - (t - 0x1.8001fcp+23f);
  float q = 0x1.cd9b34p-17f;
  q = __builtin_fmaf(q, r, 0x1.441414p-13f);
  q = __builtin_fmaf(q, r, 0x1.5db254p-10f);
  q = __builtin_fmaf(q, r, 0x1.3b2a5p-7f);
  q = __builtin_fmaf(q, r, 0x1.c6b066p-5f);
  q = __builtin_fmaf(q, r, 0x1.ebfbep-3f);
  q = __builtin_fmaf(q, r, 0x1.62e43p-1f);
  float y = tf_scaled_float(__builtin_fmaf(q, r, 1.0f), tf_bits_float(t) - 0x4b400000u);
  y = x > 129.0f ? __builtin_inff() : y;
  return x < -151.0f ? 0.0f : y;
}

// 2^x. The polynomial is off by 2^-56.5.
static inline double tf_exp2_double(double x) {
  double t = x + 0x1.80000000007fep+52; // n + 2046 in its low bits
  double r = x - (t - 0x1.80000000007fep+52);
  double q = 0x1.139d4efe94d81p-35;
  q = __builtin_fma(q, r, 0x1.ec485c46bd876p-32);
  q = __builtin_fma(q, r, 0x1.e49783488af87p-28);
  q = __builtin_fma(q, r, 0x1.b5234948a50ecp-24);
  q = __builtin_fma(q, r, 0x1.62c02d1dc2125p-20);
  q = __builtin_fma(q, r, 0x1.ffcbfd3e8af2dp-17);
  q = __builtin_fma(q, r, 0x1.430912f6a1428p-13);
  q = __builtin_fma(q, r, 0x1.5d87fe7876ac9p-10);
  q = __builtin_fma(q, r, 0x1.3b2ab6fba5286p-7);
  q = __builtin_fma(q, r, 0x1.c6b08d704a1ccp-5);
  q = __builtin_fma(q, r, 0x1.ebfbdff82c58ep-3);
  q = __builtin_fma(q, r, 0x1.62e42fefa39efp-1);
  double y = tf_scaled_double(__builtin_fma(q, r, 1.0), tf_bits_double(t) - 0x4338000000000000u);
  y = x > 1025.0 ? __builtin_inf() : y;
  return x < -1076.0 ? 0.0 : y;
}

// e^x - 1, by arithmetic of doubles. The polynomial is off by 2^-31.8.
static inline float tf_expm1_float(float x) {
  double t = __builtin_fma(x, 0x1.71547652b82fep+0, 0x1.80000000003ffp+52); // n + 1023 in its low bits
  double r = __builtin_fma(t - 0x1.80000000003ffp+52, -0x1.62e42fefa39efp-1, x);
  double q = 0x1.a151b9b9f9468p-13;
  q = __builtin_fma(q, r, 0x1.6d758bcd6903ap-10);
  q = __builtin_fma(q, r, 0x1.1110c613ed8f1p-7);
  q = __builtin_fma(q, r, 0x1.5554ac8ab8909p-5);
  q = __builtin_fma(q, r, 0x1.555555675e3dp-3);
  q = __builtin_fma(q, r, 0x1.000000289873ap-1);
  double scale = tf_from_bits_double(tf_bits_double(t) << 52);
  float y = (float)__builtin_fma(scale, __builtin_fma(r * r, q, r), scale - 1.0);
  y = x > 89.0f ? __builtin_inff() : y;
  y = x < -104.5f ? -1.0f : y;
  return x == 0.0f ? x : y;
}

// (e^x - 1) / 2 with its low part, for x from -37 to 710. The polynomial is off by 2^-60.
static inline double tf_half_expm1_double(double x, double *low) {
  double t = __builtin_fma(x, 0x1.71547652b82fep+0, 0x1.80000000003fep+52); // n + 1022 in its low bits
  double n = t - 0x1.80000000003fep+52;
  double close = __builtin_fma(n, -0x1.62e42fefap-1, x);
  double r = __builtin_fma(n, -0x1.cf79abc9e3b3ap-40, close);
  double r_low = __builtin_fma(n, -0x1.cf79abc9e3b3ap-40, close - r);
  double q = 0x1.2017e3f402e46p-29;
  q = __builtin_fma(q, r, 0x1.af738d7b9a8f6p-26);
  q = __builtin_fma(q, r, 0x1.27e46a8325508p-22);
  q = __builtin_fma(q, r, 0x1.71ddeb3a8f9a6p-19);
  q = __builtin_fma(q, r, 0x1.a01a01dd79904p-16);
  q = __builtin_fma(q, r, 0x1.a01a01b5bd84fp-13);
  q = __builtin_fma(q, r, 0x1.6c16c16c0b76bp-10);
  q = __builtin_fma(q, r, 0x1.111111110e595p-7);
  q = __builtin_fma(q, r, 0x1.555555555556bp-5);
  q = __builtin_fma(q, r, 0x1.555555555555dp-3);
  q = __builtin_fma(q, r, 0.5);
  double scale = tf_from_bits_double(tf_bits_double(t) << 52);
  double offset = scale - 0.5;
  double first = __builtin_fma(scale, r, offset);
  double rest = __builtin_fma(scale, __builtin_fma(r * r, q, r_low), __builtin_fma(scale, r, offset - first));
  double high = first + rest;
  *low = (first - high) + rest;
  return high;
}

// e^x - 1.
static inline double tf_expm1_double(double x) {
  double low;
  double y = 2.0 * tf_half_expm1_double(x, &low);
  y = x > 710.0 ? __builtin_inf() : y;
  y = x < -38.0 ? -1.0 : y;
  return __builtin_fabs(x) < 0x1p-54 ? x : y; // halves of subnormal numbers are rounded
}

// cosh(x) and, in *odd, sinh(x), for x from -90 to 90, by arithmetic of doubles: off by 2^-34.
static inline double tf_cosh_and_sinh_float(float x, double *odd) {
  double t = __builtin_fma(x, 0x1.71547652b82fep+0, 0x1.80000000003fep+52); // n + 1022 in its low bits
  double r = __builtin_fma(t - 0x1.80000000003fep+52, -0x1.62e42fefa39efp-1, x);
  double z = r * r;
  double c = 0x1.6d97eb9a743d7p-10;
  c = __builtin_fma(c, z, 0x1.55547e599f275p-5);
  c = __builtin_fma(c, z, 0x1.000000442a9a2p-1);
  double s = 0x1.a170421c23302p-13;
  s = __builtin_fma(s, z, 0x1.1110b19013857p-7);
  s = __builtin_fma(s, z, 0x1.555555739d04bp-3);
  c = c * z;                      // cosh(r) - 1
  s = __builtin_fma(s, z * r, r); // sinh(r)
  uint64_t bits = tf_bits_double(t) << 52;
  double up = tf_from_bits_double(bits);                         // 2^n / 2
  double down = tf_from_bits_double(0x7fc0000000000000u - bits); // 2^-n / 2
  *odd = __builtin_fma(up - down, c, up - down) + (up + down) * s;
  return __builtin_fma(up + down, c, up + down) + (up - down) * s;
}

// The hyperbolic sine of x.
static inline float tf_sinh_float(float x) {
  double sinh;
  tf_cosh_and_sinh_float(x, &sinh);
  float size = (float)__builtin_fabs(sinh);
  size = __builtin_fabsf(x) > 90.0f ? __builtin_inff() : size;
  return __builtin_copysignf(size, x);
}

// The hyperbolic cosine of x.
static inline float tf_cosh_float(float x) {
  double sinh;
  float y = (float)tf_cosh_and_sinh_float(x, &sinh);
  return __builtin_fabsf(x) > 90.0f ? __builtin_inff() : y;
}

// cosh(x) / 2 and, in *odd, sinh(x) / 2, for x from 0 to 710.5. The polynomials are off by 2^-65.
static inline double tf_cosh_and_sinh_double(double x, double *odd) {
  double t = __builtin_fma(x, 0x1.71547652b82fep+0, 0x1.80000000003fdp+52); // n + 1021 in its low bits
  double n = t - 0x1.80000000003fdp+52;
  double close = __builtin_fma(n, -0x1.62e42fefap-1, x);
  double r = __builtin_fma(n, -0x1.cf79abc9e3b3ap-40, close);
  double r_low = __builtin_fma(n, -0x1.cf79abc9e3b3ap-40, close - r);
  double z = r * r;
  double c = 0x1.1f8bd918c104dp-29;
  c = __builtin_fma(c, z, 0x1.27e4cc11cc017p-22);
  c = __builtin_fma(c, z, 0x1.a01a01ad7f036p-16);
  c = __builtin_fma(c, z, 0x1.6c16c16c14ffcp-10);
  c = __builtin_fma(c, z, 0x1.5555555555558p-5);
  c = __builtin_fma(c, z, 0x1p-1);
  double s = 0x1.82b0a023afef2p-33;
  s = __builtin_fma(s, z, 0x1.ae4cd44536f5cp-26);
  s = __builtin_fma(s, z, 0x1.71de4081fc32bp-19);
  s = __builtin_fma(s, z, 0x1.a01a019ea07d2p-13);
  s = __builtin_fma(s, z, 0x1.1111111111387p-7);
  s = __builtin_fma(s, z, 0x1.5555555555555p-3);
  c = __builtin_fma(r, r_low, c * z);      // cosh(r) - 1
  s = __builtin_fma(s, z * r, r_low);      // sinh(r) - r
  uint64_t bits = tf_bits_double(t) << 52; // those of 2^n / 4
  double up = tf_from_bits_double(bits);
  double down = tf_from_bits_double(0x7fe0000000000000u - bits) * 0.0625; // 2^-n / 4
  double even = up + down;
  double difference = up - down;
  double first = __builtin_fma(even, r, difference);
  double first_low = __builtin_fma(even, r, difference - first);
  *odd = first + (__builtin_fma(difference, c, even * s) + first_low);
  return even + __builtin_fma(even, c, __builtin_fma(difference, r, difference * s));
}

// The hyperbolic sine of x.
static inline double tf_sinh_double(double x) {
  double half;
  double size = __builtin_fabs(x);
  tf_cosh_and_sinh_double(size, &half);
  double y = size > 710.5 ? __builtin_inf() : 2.0 * half;
  y = size < 0x1p-28 ? size : y; // halves of subnormal numbers are rounded
  return __builtin_copysign(y, x);
}

// The hyperbolic cosine of x.
static inline double tf_cosh_double(double x) {
  double half_sinh;
  double size = __builtin_fabs(x);
  double y = 2.0 * tf_cosh_and_sinh_double(size, &half_sinh);
  return size > 710.5 ? __builtin_inf() : y;
}

// The hyperbolic tangent of x: a polynomial that is off by 2^-26 below 0.85, above 1 - 2 / (e^2x + 1).
static inline float tf_tanh_float(float x) {
  float size = __builtin_fabsf(x);
  float z = x * x;
  float p = 0x1.55d22ap-10f;
  p = __builtin_fmaf(p, z, -0x1.c1942ap-8f);
  p = __builtin_fmaf(p, z, 0x1.567e3p-6f);
  p = __builtin_fmaf(p, z, -0x1.b8161ep-5f);
  p = __builtin_fmaf(p, z, 0x1.11017ap-3f);
  p = __builtin_fmaf(p, z, -0x1.555504p-2f);
  float t = __builtin_fmaf(size, 0x1.715476p+1f, 0x1.8000fep+23f); // n + 127 in its low bits
  float n = t - 0x1.8000fep+23f;
  float r = __builtin_fmaf(n, -0x1.7f7d1cp-20f, __builtin_fmaf(n, -0x1.62e4p-1f, size + size));
  float q = 0x1.6a5166p-10f;
  q = __builtin_fmaf(q, r, 0x1.123e52p-7f);
  q = __builtin_fmaf(q, r, 0x1.5558d6p-5f);
  q = __builtin_fmaf(q, r, 0x1.555494p-3f);
  q = __builtin_fmaf(q, r, 0x1.fffffcp-2f);
  float power = (__builtin_fmaf(r * r, q, r) + 1.0f) * tf_from_bits_float(tf_bits_float(t) << 23);
  float y = size < 0.85f ? __builtin_fmaf(size * z, p, size) : 1.0f - 2.0f / (power + 1.0f);
  return __builtin_copysignf(size > 10.0f ? 1.0f : y, x);
}

// The hyperbolic tangent of x: h / (h + 1) with h = (e^2x - 1) / 2, and the error of that added.
static inline double tf_tanh_double(double x) {
  double size = __builtin_fabs(x);
  double low;
  double high = tf_half_expm1_double(size + size, &low);
  double sum = high + 1.0;
  double part = sum - 1.0;
  double sum_low = (1.0 - (sum - part)) + (high - part) + low;
  double y = high / sum;
  double error = __builtin_fma(-y, sum, high) + (low - y * sum_low);
  y = __builtin_fma(error, 1.0 - y, y); // 1 / (h + 1) = 1 - y
  y = size < 0x1p-28 ? size : y;
  y = size > 18.714 ? 0x1.fffffffffffffp-1 : y; // 2 e^-2x is below 2^-53
  return __builtin_copysign(size > 19.0615 ? 1.0 : y, x);
}

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

// log(1 + f) - f, for a fraction. The polynomial is off by 2^-26.
static inline float tf_log_rest_float(float f) {
  float q = -0x1.3935a2p-4f;
  q = __builtin_fmaf(q, f, 0x1.05a926p-3f);
  q = __builtin_fmaf(q, f, -0x1.0d9686p-3f);
  q = __builtin_fmaf(q, f, 0x1.22d528p-3f);
  q = __builtin_fmaf(q, f, -0x1.5470f8p-3f);
  q = __builtin_fmaf(q, f, 0x1.99a03ep-3f);
  q = __builtin_fmaf(q, f, -0x1.00022cp-2f);
  q = __builtin_fmaf(q, f, 0x1.555554p-2f);
  float square = f * f;
  return __builtin_fmaf(square * f, q, -0.5f * square);
}

// What a logarithm of x is, given what it is where x is positive and finite.
static inline float tf_log_of_float(float x, float y) {
  y = x >= 0 ? y : __builtin_nanf("");
  y = x == 0 ? -__builtin_inff() : y;
  return x == __builtin_inff() ? x : y;
}

// log(x).
static inline float tf_log_float(float x) {
  uint32_t bits = tf_log_bits_float(x);
  float e = (float)((int32_t)bits >> 23);
  float f = tf_log_fraction_float(bits);
  float whole = e * 0x1.62e4p-1f; // exact
  float y = whole + f;
  float y_low = (whole - y) + f;
  y = y + (__builtin_fmaf(e, 0x1.7f7d1cp-20f, tf_log_rest_float(f)) + y_low);
  return tf_log_of_float(x, y);
}

// log2(x).
static inline float tf_log2_float(float x) {
  uint32_t bits = tf_log_bits_float(x);
  float e = (float)((int32_t)bits >> 23);
  float f = tf_log_fraction_float(bits);
  float part = f * 0x1.715476p+0f;
  float part_low = __builtin_fmaf(f, 0x1.4ae0cp-26f, __builtin_fmaf(f, 0x1.715476p+0f, -part));
  float y = e + part;
  float y_low = (e - y) + part;
  y = y + (__builtin_fmaf(tf_log_rest_float(f), 0x1.715476p+0f, part_low) + y_low);
  return tf_log_of_float(x, y);
}

// log10(x).
static inline float tf_log10_float(float x) {
  uint32_t bits = tf_log_bits_float(x);
  float e = (float)((int32_t)bits >> 23);
  float f = tf_log_fraction_float(bits);
  float part = f * 0x1.bcb7b2p-2f;
  float part_low = __builtin_fmaf(f, -0x1.5b235ep-27f, __builtin_fmaf(f, 0x1.bcb7b2p-2f, -part));
  float whole = e * 0x1.344p-2f; // exact
  float y = whole + part;
  float y_low = __builtin_fmaf(e, 0x1.3509f8p-18f, (whole - y) + part);
  y = y + (__builtin_fmaf(tf_log_rest_float(f), 0x1.bcb7b2p-2f, part_low) + y_low);
  return tf_log_of_float(x, y);
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

// log(1 + x).
static inline float tf_log1p_float(float x) {
  float y = (float)tf_log_for_float(1.0 + x);
  y = __builtin_fabsf(x) < 0x1p-13f ? __builtin_fmaf(-0.5f * x, x, x) : y;
  y = tf_log_of_float(1.0f + x, y);
  return x == 0.0f ? x : y;
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

// The logistic function 1 / (1 + e^-x), by arithmetic of doubles. The polynomial is off by 2^-34.
static inline float tf_expit_float(float x) {
  double t = __builtin_fma(x, -0x1.71547652b82fep+0, 0x1.80000000003ffp+52); // n + 1023 in its low bits
  double r = __builtin_fma(t - 0x1.80000000003ffp+52, -0x1.62e42fefa39efp-1, -(double)x);
  double q = 0x1.9f05246b85fp-13;
  q = __builtin_fma(q, r, 0x1.6d8d55b03a549p-10);
  q = __builtin_fma(q, r, 0x1.111274a41e531p-7);
  q = __builtin_fma(q, r, 0x1.55548d7b20214p-5);
  q = __builtin_fma(q, r, 0x1.5555543f15586p-3);
  q = __builtin_fma(q, r, 0x1.0000003a33f0ap-1);
  double power = (__builtin_fma(r * r, q, r) + 1.0) * tf_from_bits_double(tf_bits_double(t) << 52);
  float y = (float)(1.0 / (1.0 + power));
  y = x > 89.0f ? 1.0f : y;
  return x < -104.5f ? 0.0f : y;
}

// The logistic function 1 / (1 + e^-x), with the error of the quotient added.
static inline double tf_expit_double(double x) {
  double power = tf_exp_double(-__builtin_fabs(x));
  double sum = 1.0 + power;
  double sum_low = (1.0 - sum) + power;
  double part = x < 0.0 ? power : 1.0;
  double y = part / sum;
  double error = __builtin_fma(-y, sum, part) - y * sum_low;
  return __builtin_fma(error, x < 0.0 ? 1.0 - y : y, y); // that factor is 1 / sum
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

// x^y, given |x|^y where neither x is -1 or 1 nor y is 0.
static inline float tf_pow_of_float(float x, float y, float power) {
  float size = __builtin_fabsf(x);
  float half = 0.5f * y;
  power = ((size == 1.0f) | (y == 0.0f)) ? 1.0f : power;
  power = ((x < 0.0f) & (__builtin_floorf(y) != y) & (size < __builtin_inff())) ? __builtin_nanf("") : power;
  float sign = ((__builtin_floorf(half) != half) & (__builtin_floorf(y) == y)) ? x : 0.0f; // of odd powers
  return tf_from_bits_float(tf_bits_float(power) ^ (tf_bits_float(sign) & 0x80000000u));
}

// x^y = 2^(y log2|x|) by arithmetic of doubles, and a sign. The polynomials are off by 2^-35.8 and 2^-32.
static inline float tf_pow_float(float x, float y) {
  double size = __builtin_fabsf(x);
  uint64_t bits = tf_log_bits_double(size);
  double f = tf_log_fraction_double(bits);
  double square = f * f;
  double p = 0x1.3ce9de2b6af5cp-4;
  double p_odd = -0x1.248bf78405dcep-3;
  p = __builtin_fma(p, square, 0x1.287380d9c18ccp-3);
  p_odd = __builtin_fma(p_odd, square, -0x1.252ecfcb95e3ep-3);
  p = __builtin_fma(p, square, 0x1.4528c213a5792p-3);
  p_odd = __builtin_fma(p_odd, square, -0x1.714172ccc91adp-3);
  p = __builtin_fma(p, square, 0x1.a63f4a9f804a2p-3);
  p_odd = __builtin_fma(p_odd, square, -0x1.ec72b5cae8c6fp-3);
  p = __builtin_fma(p, square, 0x1.277651e528e62p-2);
  p_odd = __builtin_fma(p_odd, square, -0x1.71547096a0788p-2);
  p = __builtin_fma(p, square, 0x1.ec709ebbcee8ap-2);
  p_odd = __builtin_fma(p_odd, square, -0x1.715476565e26p-1);
  p = __builtin_fma(p, square, 0x1.71547652a1e3bp+0);
  p = __builtin_fma(p_odd, f, p);
  double logarithm = __builtin_fma(f, p, tf_log_exponent_double(bits));
  logarithm = size < __builtin_inf() ? logarithm : size; // infinity, NaN
  logarithm = size == 0.0 ? -__builtin_inf() : logarithm;
  double w = y * logarithm;
  double t = w + 0x1.80000000003ffp+52; // n + 1023 in its low bits
  double r = w - (t - 0x1.80000000003ffp+52);
  double q = 0x1.c049e106e1a66p-17;
  q = __builtin_fma(q, r, 0x1.44402b6a7db8fp-13);
  q = __builtin_fma(q, r, 0x1.5dc06b67124dfp-10);
  q = __builtin_fma(q, r, 0x1.3b2a1b6177fbep-7);
  q = __builtin_fma(q, r, 0x1.c6b054e80dd0ep-5);
  q = __builtin_fma(q, r, 0x1.ebfbe045de753p-3);
  q = __builtin_fma(q, r, 0x1.62e4300bc581dp-1);
  q = __builtin_fma(q, r, 1.0);
  float power = (float)(q * tf_from_bits_double(tf_bits_double(t) << 52));
  power = w > 129.0 ? __builtin_inff() : power;
  power = w < -151.0 ? 0.0f : power;
  return tf_pow_of_float(x, y, power);
}

// x^y, given |x|^y where neither x is -1 or 1 nor y is 0.
static inline double tf_pow_of_double(double x, double y, double power) {
  double size = __builtin_fabs(x);
  double half = 0.5 * y;
  power = ((size == 1.0) | (y == 0.0)) ? 1.0 : power;
  power = ((x < 0.0) & (__builtin_floor(y) != y) & (size < __builtin_inf())) ? __builtin_nan("") : power;
  double sign = ((__builtin_floor(half) != half) & (__builtin_floor(y) == y)) ? x : 0.0; // of odd powers
  return tf_from_bits_double(tf_bits_double(power) ^ (tf_bits_double(sign) & 0x8000000000000000u));
}

// log(1 + f) with its low part, for f from -0.19 to 0.23, off by 2^-68: 2 s + s^3 (2/3 + ...) with
// s = f / (2 + f), where all but the dots have low parts.
static inline double tf_log1p_with_low_double(double f, double *low) {
  double d = 2.0 + f;
  double d_low = f - (d - 2.0);
  double s = f / d;
  double s_low = __builtin_fma(-s, d_low, __builtin_fma(-s, d, f)) * __builtin_fma(-0.5, s, 0.5); // 1 / d
  double twice = s + s;
  double z = s * s;
  double z_low = __builtin_fma(twice, s_low, __builtin_fma(s, s, -z));
  double w = z * z;
  double p_odd = 0x1.1a9250ffcd58fp-3;
  double p = 0x1.3aedecb4a8e21p-3;
  p_odd = __builtin_fma(p_odd, w, 0x1.745d62f38e4bcp-3);
  p = __builtin_fma(p, w, 0x1.c71c71774eea5p-3);
  p_odd = __builtin_fma(p_odd, w, 0x1.24924924a6ea5p-2);
  p = __builtin_fma(p, w, 0x1.999999999995ap-2);
  p = __builtin_fma(p_odd, z, p);
  double q = __builtin_fma(p, z, 0x1.5555555555555p-1);
  double q_low = __builtin_fma(p, z, 0x1.5555555555555p-1 - q) + 0x1.5555555555555p-55;
  double zq = z * q;
  double zq_low = __builtin_fma(z_low, q, __builtin_fma(z, q_low, __builtin_fma(z, q, -zq)));
  double cube = s * zq;
  double cube_low = __builtin_fma(s_low, zq, __builtin_fma(s, zq_low, __builtin_fma(s, zq, -cube)));
  double high = twice + cube;
  *low = (twice - high) + cube + __builtin_fma(2.0, s_low, cube_low);
  return high;
}

// e^(x + low).
static inline double tf_exp_of_sum_double(double x, double low) {
  double t = __builtin_fma(x, 0x1.71547652b82fep+0, 0x1.80000000007fep+52); // n + 2046 in its low bits
  double n = t - 0x1.80000000007fep+52;
  double close = __builtin_fma(n, -0x1.62e42fefap-1, x);
  double far = __builtin_fma(n, -0x1.cf79abc9e3b3ap-40, low);
  double r = close + far;
  double r_low = (close - r) + far;
  double square = r * r;
  double q = 0x1.2017e3f402e46p-29;
  double q_odd = 0x1.af738d7b9a8f6p-26;
  q = __builtin_fma(q, square, 0x1.27e46a8325508p-22);
  q_odd = __builtin_fma(q_odd, square, 0x1.71ddeb3a8f9a6p-19);
  q = __builtin_fma(q, square, 0x1.a01a01dd79904p-16);
  q_odd = __builtin_fma(q_odd, square, 0x1.a01a01b5bd84fp-13);
  q = __builtin_fma(q, square, 0x1.6c16c16c0b76bp-10);
  q_odd = __builtin_fma(q_odd, square, 0x1.111111110e595p-7);
  q = __builtin_fma(q, square, 0x1.555555555556bp-5);
  q_odd = __builtin_fma(q_odd, square, 0x1.555555555555dp-3);
  q = __builtin_fma(q, square, 0.5);
  q = __builtin_fma(q_odd, r, q);
  double rest = __builtin_fma(square, q, __builtin_fma(r, r_low, r_low));
  double first = 1.0 + r;
  double p = first + (((1.0 - first) + r) + rest);
  double y = tf_scaled_double(p, tf_bits_double(t) - 0x4338000000000000u);
  y = x > 710.0 ? __builtin_inf() : y;
  return x < -746.0 ? 0.0 : y;
}

// log(x) with its low part, for x >= 0: x is 2^e (1 + f) or 2^e (1 + f) 4/3.
static inline double tf_log_with_low_double(double x, double *low) {
  uint64_t bits = tf_log_bits_of_any_double(x, 0x3fea20bd700c2c3e); // those of sqrt(2/3)
  double m = tf_from_bits_double((bits & 0xfffffffffffffu) + 0x3fea20bd700c2c3e);
  bool8_t large = m > 0x1.3988e1409212ep+0; // sqrt(3/2)
  double part_low;
  double part = tf_log1p_with_low_double(large ? __builtin_fma(m, 0.75, -1.0) : m - 1.0, &part_low);
  double e = tf_log_exponent_double(bits);
  double whole = __builtin_fma(e, 0x1.62e42fefa38p-1, large ? 0x1.269621134d8p-2 : 0.0); // exact
  double y = whole + part;
  part_low += __builtin_fma(e, 0x1.ef35793c7673p-45, large ? 0x1.c93c1df5bb3b6p-45 : 0.0);
  *low = (whole - y) + part + part_low;
  y = x < __builtin_inf() ? y : x; // infinity, NaN
  return x == 0.0 ? -__builtin_inf() : y;
}

// x^y = e^(y log|x|), the product with its low part, and a sign.
static inline double tf_pow_double(double x, double y) {
  double low;
  double logarithm = tf_log_with_low_double(__builtin_fabs(x), &low);
  double product = y * logarithm;
  double product_low = __builtin_fma(y, low, __builtin_fma(y, logarithm, -product));
  return tf_pow_of_double(x, y, tf_exp_of_sum_double(product, product_low));
}
