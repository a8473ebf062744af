// Powers: x^y = 2^(y log2|x|) or e^(y log|x|), with a sign.

// x^y, given |x|^y where neither x is -1 or 1 nor y is 0. From 2^24 on, every y is even.
static inline float tf_pow_of_float(float x, float y, float power) {
  float size = __builtin_fabsf(x);
  float size_y = __builtin_fabsf(y);
  uint32_t bits_y = tf_bits_float(size_y); // in the order of the values
  int32_t n = (int32_t)tf_from_bits_float(bits_y < 0x4b800000u ? bits_y : 0x4b800000u);
  bool8_t fraction = ((float)n != size_y) & (bits_y - 0x4b800000u > 0x34000000u); // or NaN
  power = ((size == 1.0f) | (y == 0.0f)) ? 1.0f : power;
  power = ((x < 0.0f) & (size < __builtin_inff()) & fraction) ? __builtin_nanf("") : power;
  uint32_t odd = (float)n == size_y ? (uint32_t)n << 31 : 0;
  return tf_from_bits_float(tf_bits_float(power) ^ (tf_bits_float(x) & odd));
}

// log2(x) with its low part, for x >= 0: for x = 2^e m, that is e + s (2 / log(2) + s^2 (...)) with
// s = (m - 1) / (m + 1), where all but the last addend in the dots have low parts. Off by 2^-31.
static inline float tf_log2_with_low_float(float x, float *low) {
  uint32_t bits = tf_log_bits_float(x);
  float e = (float)((int32_t)bits >> 23);
  float m = tf_from_bits_float((bits & 0x7fffffu) + 0x3f3504f3u);
  float f = m - 1.0f; // exact
  float d = m + 1.0f;
  float d_low = m - (d - 1.0f);
  float s = f / d;
  float z = s * s;
  float half = __builtin_fmaf(-0.5f, s, 0.5f); // about 1 / d; the slope of the logarithm is 1 / (1 - z)
  float s_low = __builtin_fmaf(-s, d_low, __builtin_fmaf(-s, d, f)) * __builtin_fmaf(half, z, half);
  float q = __builtin_fmaf(0x1.50dbbep-2f, z, 0x1.a62766p-2f); // minimax, relative error 2^-27
  q = __builtin_fmaf(q, z * z, __builtin_fmaf(0x1.27766ep-1f, z, 0x1.ec709ep-1f));
  float zq = z * q;
  float zq_low = __builtin_fmaf(__builtin_fmaf(s, s, -z), q, __builtin_fmaf(z, q, -zq));
  float slope = 0x1.715476p+1f + zq;
  float slope_low = ((0x1.715476p+1f - slope) + zq) + (zq_low + 0x1.4ae0c0p-25f);
  float part = s * slope;
  float part_low = __builtin_fmaf(s, slope_low, __builtin_fmaf(s, slope, -part));
  part_low = __builtin_fmaf(s_low, 0x1.715476p+1f, part_low);
  float y = e + part;
  *low = (e - y) + part + part_low;
  y = x < __builtin_inff() ? y : x; // infinity, NaN
  return x == 0.0f ? -__builtin_inff() : y;
}

// x^y = 2^(y log2|x|), the product with its low part, and a sign.
static inline float tf_pow_float(float x, float y) {
  float low;
  float logarithm = tf_log2_with_low_float(__builtin_fabsf(x), &low);
  float w = y * logarithm;
  float w_low = __builtin_fmaf(y, low, __builtin_fmaf(y, logarithm, -w));
  float t = w + 0x1.8001fcp+23f; // n + 254 in its low bits
  float r = (w - (t - 0x1.8001fcp+23f)) + w_low;
  float square = r * r;
  float q = __builtin_fmaf(0x1.4ba6acp-13f, r, 0x1.5fb964p-10f); // minimax, off by 2^-27.3
  q = __builtin_fmaf(q, square, __builtin_fmaf(0x1.3b21bcp-7f, r, 0x1.c6ada6p-5f));
  q = __builtin_fmaf(q, square, __builtin_fmaf(0x1.ebfbe6p-3f, r, 0x1.62e432p-1f));
  float power = tf_scaled_float(__builtin_fmaf(q, r, 1.0f), tf_bits_float(t));
  power = w > 129.0f ? __builtin_inff() : power;
  power = w < -151.0f ? 0.0f : power;
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
  double y = tf_scaled_double(p, tf_bits_double(t));
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
