// Exponential functions. Every rounding is explicit, and there are no branches: a loop over any of them
// vectorizes, and its bits depend neither on that nor on the compiler. The same holds for the functions
// in the other files of mathematics.
//
// x is split as n log(2) + r: adding a large number rounds x / log(2) to n, and leaves n in the low bits
// of the sum (W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980). The rest are
// polynomials, from the Remez exchange with rounded coefficients, whose error is given as a part of the
// result. Where "low" is what rounding took from another value, see T. J. Dekker, A Floating-Point
// Technique for Extending the Available Precision, 1971. Special values come last: limits on x before
// the arithmetic would cost half of the speed.

// p * 2^n, where the low nine bits are n + 254: in two steps, so that subnormal results are rounded once.
static inline float tf_scaled_float(float p, uint32_t bits) {
  uint32_t half = bits >> 1;
  return p * tf_from_bits_float((bits - half) << 23) * tf_from_bits_float(half << 23);
}

// p * 2^n, where the low twelve bits are n + 2046.
static inline double tf_scaled_double(double p, uint64_t bits) {
  uint64_t half = bits >> 1;
  return p * tf_from_bits_double((bits - half) << 52) * tf_from_bits_double(half << 52);
}

// (1 + p) * 2^n likewise.
static inline double tf_scaled_from_one_double(double p, uint64_t bits) {
  uint64_t half = bits >> 1;
  double scale = tf_from_bits_double((bits - half) << 52);
  return __builtin_fma(p, scale, scale) * tf_from_bits_double(half << 52);
}

// e^r - 1 for |r| <= log(2) / 2, off by 2^-27.5.
static inline float tf_exp_core_float(float r) {
  float q = 0x1.6a5166p-10f;
  q = __builtin_fmaf(q, r, 0x1.123e52p-7f);
  q = __builtin_fmaf(q, r, 0x1.5558d6p-5f);
  q = __builtin_fmaf(q, r, 0x1.555494p-3f);
  q = __builtin_fmaf(q, r, 0x1.fffffcp-2f);
  return __builtin_fmaf(r * r, q, r);
}

// e^r likewise, off by 2^-27.5: with 1 as one more coefficient, what comes before it is rounded finer.
static inline float tf_exp_near_float(float r) {
  float q = 0x1.6a5166p-10f;
  q = __builtin_fmaf(q, r, 0x1.123e52p-7f);
  q = __builtin_fmaf(q, r, 0x1.5558d6p-5f);
  q = __builtin_fmaf(q, r, 0x1.555494p-3f);
  q = __builtin_fmaf(q, r, 0x1.fffffcp-2f);
  q = __builtin_fmaf(q, r, 1.0f);
  return __builtin_fmaf(q, r, 1.0f);
}

// e^x.
static inline float tf_exp_float(float x) {
  float t = __builtin_fmaf(x, 0x1.715476p+0f, 0x1.8001fcp+23f); // n + 254 in its low bits
  float n = t - 0x1.8001fcp+23f;
  float r = __builtin_fmaf(n, -0x1.7f7d1cp-20f, __builtin_fmaf(n, -0x1.62e4p-1f, x));
  float y = tf_scaled_float(tf_exp_near_float(r), tf_bits_float(t));
  y = x > 89.0f ? __builtin_inff() : y;
  return x < -104.5f ? 0.0f : y;
}

// e^r - 1 for |r| <= log(2) / 2, off by 2^-63.
static inline double tf_exp_core_double(double r) {
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
  return __builtin_fma(r * r, q, r);
}

// e^x.
static inline double tf_exp_double(double x) {
  double t = __builtin_fma(x, 0x1.71547652b82fep+0, 0x1.80000000007fep+52); // n + 2046 in its low bits
  double n = t - 0x1.80000000007fep+52;
  double r = __builtin_fma(n, -0x1.cf79abc9e3b3ap-40, __builtin_fma(n, -0x1.62e42fefap-1, x));
  double y = tf_scaled_from_one_double(tf_exp_core_double(r), tf_bits_double(t));
  y = x > 710.0 ? __builtin_inf() : y;
  return x < -746.0 ? 0.0 : y;
}

// e^x for x <= 0, or NaN: 2^n need not be split, as 2^(n + 64) is normal. All coefficients are those of
// e^r times 2^-64, which changes no rounding.
static inline float tf_exp_nonpositive_float(float x) {
  float t = __builtin_fmaf(x, 0x1.715476p+0f, 0x1.80017ep+23f); // n + 127 + 64 in its low bits
  float n = t - 0x1.80017ep+23f;
  float r = __builtin_fmaf(n, -0x1.7f7d1cp-20f, __builtin_fmaf(n, -0x1.62e4p-1f, x));
  float q = 0x1.6a5166p-74f;
  q = __builtin_fmaf(q, r, 0x1.123e52p-71f);
  q = __builtin_fmaf(q, r, 0x1.5558d6p-69f);
  q = __builtin_fmaf(q, r, 0x1.555494p-67f);
  q = __builtin_fmaf(q, r, 0x1.fffffcp-66f);
  q = __builtin_fmaf(q, r, 0x1p-64f);
  q = __builtin_fmaf(q, r, 0x1p-64f);
  float y = q * tf_from_bits_float(tf_bits_float(t) << 23);
  return x < -104.5f ? 0.0f : y;
}

// e^x for x <= 0, or NaN: likewise, with 2^(n + 512).
static inline double tf_exp_nonpositive_double(double x) {
  double t = __builtin_fma(x, 0x1.71547652b82fep+0, 0x1.80000000005ffp+52); // n + 1023 + 512 in its low bits
  double n = t - 0x1.80000000005ffp+52;
  double r = __builtin_fma(n, -0x1.cf79abc9e3b3ap-40, __builtin_fma(n, -0x1.62e42fefap-1, x));
  double scale = tf_from_bits_double(tf_bits_double(t) << 52);
  double y = __builtin_fma(tf_exp_core_double(r), scale, scale) * 0x1p-512;
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
  float y = tf_scaled_float(__builtin_fmaf(q, r, 1.0f), tf_bits_float(t));
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
  double y = tf_scaled_double(__builtin_fma(q, r, 1.0), tf_bits_double(t));
  y = x > 1025.0 ? __builtin_inf() : y;
  return x < -1076.0 ? 0.0 : y;
}

// e^x - 1; x where that is nearest.
static inline float tf_expm1_float(float x) {
  float t = __builtin_fmaf(x, 0x1.715476p+0f, 0x1.8000fcp+23f); // n + 126 in its low bits
  float n = t - 0x1.8000fcp+23f;
  float r = __builtin_fmaf(n, -0x1.7f7d1cp-20f, __builtin_fmaf(n, -0x1.62e4p-1f, x));
  float scale = tf_from_bits_float(tf_bits_float(t) << 23); // 2^n / 2
  float half = __builtin_fmaf(scale, tf_exp_core_float(r), scale - 0.5f);
  float y = x > 89.0f ? __builtin_inff() : half + half;
  y = x < -18.0f ? -1.0f : y;
  return __builtin_fabsf(x) < 0x1p-25f ? x : y; // halves of subnormal numbers are rounded
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

// cosh(x) / 2 and, in *odd, sinh(x) / 2, for x from 0 to 89.5. The polynomials are off by 2^-33.
static inline float tf_cosh_and_sinh_float(float x, float *odd) {
  float t = __builtin_fmaf(x, 0x1.715476p+0f, 0x1.8000fap+23f); // n + 125 in its low bits
  float n = t - 0x1.8000fap+23f;
  float r = __builtin_fmaf(n, -0x1.7f7d1cp-20f, __builtin_fmaf(n, -0x1.62e4p-1f, x));
  float z = r * r;
  float c = __builtin_fmaf(0x1.6d4f28p-10f, z, 0x1.5554e6p-5f);
  c = __builtin_fmaf(c, z, 0.5f) * z; // cosh(r) - 1
  float s = __builtin_fmaf(0x1.a2e2f6p-13f, z, 0x1.110fbep-7f);
  s = __builtin_fmaf(s, z, 0x1.555556p-3f) * (z * r); // sinh(r) - r
  uint32_t bits = tf_bits_float(t) << 23;
  float up = tf_from_bits_float(bits);                           // 2^n / 4
  float down = tf_from_bits_float(0x7f000000u - bits) * 0.0625f; // 2^-n / 4
  float even = up + down, difference = up - down;
  float first = __builtin_fmaf(even, r, difference);
  float first_low = __builtin_fmaf(even, r, difference - first);
  *odd = first + __builtin_fmaf(difference, c, __builtin_fmaf(even, s, first_low));
  first = __builtin_fmaf(difference, r, even);
  first_low = __builtin_fmaf(difference, r, (up - first) + down);
  return first + __builtin_fmaf(even, c, __builtin_fmaf(difference, s, first_low));
}

// The hyperbolic sine of x; x where that is nearest.
static inline float tf_sinh_float(float x) {
  float half, size = __builtin_fabsf(x);
  tf_cosh_and_sinh_float(size, &half);
  float y = size > 89.5f ? __builtin_inff() : half + half;
  y = size < 0x1p-12f ? size : y; // halves of subnormal numbers are rounded
  return __builtin_copysignf(y, x);
}

// The hyperbolic cosine of x.
static inline float tf_cosh_float(float x) {
  float half_sinh, size = __builtin_fabsf(x);
  float half = tf_cosh_and_sinh_float(size, &half_sinh);
  return size > 89.5f ? __builtin_inff() : half + half;
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
  c = __builtin_fma(c, z, 0.5);
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
  double even_low = (up - even) + down;
  double difference_low = (up - difference) - down;
  double first = __builtin_fma(even, r, difference);
  double first_low = __builtin_fma(even, r, difference - first) + difference_low;
  *odd = first + (__builtin_fma(difference, c, even * s) + first_low);
  double odd_part = __builtin_fma(difference, r, __builtin_fma(difference, s, even_low));
  return even + __builtin_fma(even, c, odd_part);
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

// The hyperbolic tangent of x: h / (h + 1) with h = (e^2x - 1) / 2, and as h - h^2 / (h + 1) where h is
// small and its sum with 1 too coarse. The polynomial is that of e^r at 2r.
static inline float tf_tanh_float(float x) {
  float size = __builtin_fabsf(x);
  float t = __builtin_fmaf(size, 0x1.715476p+1f, 0x1.8000fep+23f); // n + 127 in its low bits
  float r = __builtin_fmaf(t - 0x1.8000fep+23f, -0x1.62e43p-2f, size);
  float z = r * r;
  float q = __builtin_fmaf(0x1.6a5166p-5f, z, __builtin_fmaf(0x1.123e52p-3f, r, 0x1.5558d6p-2f));
  q = __builtin_fmaf(q, z, __builtin_fmaf(0x1.555494p-1f, r, 0x1.fffffcp-1f));
  float scale = tf_from_bits_float(tf_bits_float(t) << 23); // 2^n
  float h = __builtin_fmaf(scale, __builtin_fmaf(z, q, r), __builtin_fmaf(scale, 0.5f, -0.5f));
  float y = h / (-1.0f - h);
  y = size > 10.0f ? 1.0f : y;
  y = size < 0.3f ? __builtin_fmaf(h, y, h) : y;
  return __builtin_copysignf(y, x);
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
