// Powers: x^y = 2^(y log2|x|) or e^(y log|x|), with a sign.

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
