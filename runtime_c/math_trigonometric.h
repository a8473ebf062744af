// Trigonometric functions and their inverses. Every rounding is explicit, and there are no branches: a
// loop over any of them vectorizes, and its bits depend neither on that nor on the compiler.
//
// Adding a large number rounds to an integer, and leaves that in the low bits of the sum. Polynomials
// are from the Remez exchange, with rounded coefficients; their error is given as a part of the result.
// Where "low" is what rounding took from another value, see T. J. Dekker, A Floating-Point Technique
// for Extending the Available Precision, 1971.

// The high and the low part of c with x * c = 2^8 x / pi modulo 2^9, exactly enough for every float x.
// Where x = m * 2^e with an integer m, c is 2^(8 - e) times (2^e / pi modulo 2): of the digits of 1 / pi,
// those that a huge x would turn into multiples of 2 are left out. (Payne and Hanek, Radian reduction
// for trigonometric functions, 1983.) One c serves 26 or 27 exponents, and the low part of the first and
// of the second one is the high part of the third and of the fourth. The factor 2^8 keeps what is left of
// tiny x above most subnormal floats. In another order gcc 12 compares twice as often.
static inline void tf_over_pi_float(float x, double *high, double *low) {
  float size = __builtin_fabsf(x);
  float limit = size < 0x1p75f ? 0x1p47f : 0x1p102f;
  double second = size < limit ? 0x1.529fc2757d1f5p-45 : -0x1.505c1596447e5p-74;
  double third = size < limit ? 0x1.a6ee06db14acdp-100 : 0x1.b14acc9e21c82p-128;
  double first = size < limit ? 0x1.45f306dc9c880p+6 : -0x1.236377d5ac07bp-18;
  *high = size < 0x1p75f ? first : second;
  *low = size < 0x1p75f ? second : third;
}

// x = (f / 2^8 + n) pi with an integer n, |f| / 2^8 <= 0.526: returns f, and puts n modulo 2 as a sign bit.
static inline double tf_half_turns_float(float x, uint32_t *sign) {
  double high, low;
  tf_over_pi_float(x, &high, &low);
  double shifted = __builtin_fma(x, high, 0x1.8p60); // the last bit is that of n
  double n = shifted - 0x1.8p60;
  *sign = (uint32_t)tf_bits_double(shifted) << 31;
  return __builtin_fma(x, low, __builtin_fma(x, high, -n));
}

// sin(x) = sin(pi f / 2^8), with a sign. At 0 and at 1/2, the product with 2.25 is the larger one of the
// two that are added, and is not rounded.
static inline float tf_sin_float(float x) {
  uint32_t sign;
  float g = (float)tf_half_turns_float(x, &sign), z = g * g;
  float q = 0x1.3d3b02p-76f; // minimax, relative error 2^-26.3
  q = __builtin_fmaf(q, z, -0x1.324bcap-57f);
  q = __builtin_fmaf(q, z, 0x1.466904p-39f);
  q = __builtin_fmaf(q, z, -0x1.4abbc8p-22f);
  q = __builtin_fmaf(q, z, 0x1.c87ed6p-9f);
  g = tf_from_bits_float(tf_bits_float(g) ^ sign);
  return __builtin_fmaf(g, 0x1.2p-7f, g * q);
}

// cos(x) = cos(pi f / 2^8), with a sign: v / 2^16 = 1/4 - (f / 2^8)^2 has its zeros, and what it is to be
// multiplied by is a polynomial of v.
static inline float tf_cos_float(float x) {
  uint32_t sign;
  double f = tf_half_turns_float(x, &sign);
  float v = (float)__builtin_fma(-f, f, 0x1p14);
  float q = 0x1.96b1c2p-86f; // minimax, relative error 2^-26.5
  q = __builtin_fmaf(q, v, 0x1.a26f24p-67f);
  q = __builtin_fmaf(q, v, 0x1.1d92c6p-48f);
  q = __builtin_fmaf(q, v, 0x1.921fb0p-31f);
  q = __builtin_fmaf(q, v, -0x1.b7812cp-17f);
  v = tf_from_bits_float(tf_bits_float(v) ^ sign);
  return __builtin_fmaf(v, 0x1p-14f, v * q);
}

// tan(x) = tan(pi f / 2^8) = f p / v: v / 2^16 = 1/4 - (f / 2^8)^2 has its poles, and p is a polynomial of v.
// A difference of bits is within 6 % of 1 / v, which steps of fourth and of second order improve; that is
// faster than a division.
static inline float tf_tan_float(float x) {
  uint32_t sign;
  double f = tf_half_turns_float(x, &sign);
  double v = __builtin_fma(-f, f, 0x1p14);
  double p = 0x1.df35b5a3d09b6p-79; // minimax, relative error 2^-28.8
  p = __builtin_fma(p, v, -0x1.40dd46df2047fp-61);
  p = __builtin_fma(p, v, 0x1.539b88bec2158p-44);
  p = __builtin_fma(p, v, -0x1.79ecbe3b53ee4p-27);
  p = __builtin_fma(p, v, 0x1.45f3094878b05p-9);
  p = __builtin_fma(p, v, 0x1.45f306d434a8bp+7);
  double inverse = tf_from_bits_double(0x7fde623822fc16e6u - tf_bits_double(v));
  double error = __builtin_fma(-v, inverse, 1.0);
  inverse = __builtin_fma(inverse, __builtin_fma(__builtin_fma(error, error, error), error, error), inverse);
  error = __builtin_fma(-v, inverse, 1.0);
  double y = f * p * inverse;
  return (float)__builtin_fma(y, error, y);
}

// arcsin(s) - s for 0 <= s^2 = z <= 1/4.
static inline float tf_asin_rest_float(float s, float z) {
  float q = 0x1.59582ap-5f; // minimax, relative error of the sum 2^-27.6
  q = __builtin_fmaf(q, z, 0x1.8c42b2p-6f);
  q = __builtin_fmaf(q, z, 0x1.747b60p-5f);
  q = __builtin_fmaf(q, z, 0x1.330206p-4f);
  q = __builtin_fmaf(q, z, 0x1.5555c8p-3f);
  return s * z * q;
}

// arctan(s) - s for 0 <= s <= 1.
static inline float tf_atan_rest_float(float s) {
  float z = s * s;
  float q = -0x1.d367cep-10f; // minimax, off by 2^-28 of the sum, and right at 1
  q = __builtin_fmaf(q, z, 0x1.642780p-7f);
  q = __builtin_fmaf(q, z, -0x1.fd7d7ep-6f);
  q = __builtin_fmaf(q, z, 0x1.da2924p-5f);
  q = __builtin_fmaf(q, z, -0x1.5808e4p-4f);
  q = __builtin_fmaf(q, z, 0x1.c08c48p-4f);
  q = __builtin_fmaf(q, z, -0x1.242086p-3f);
  q = __builtin_fmaf(q, z, 0x1.9991e4p-3f);
  q = __builtin_fmaf(q, z, -0x1.55553ep-2f);
  return s * z * q;
}

// arcsin(x) for |x| <= 1, else NaN. Above 1/2 it is pi / 2 - 2 arcsin(sqrt((1 - x) / 2)).
static inline float tf_asin_float(float x) {
  float size = __builtin_fabsf(x);
  float z = size > 0.5f ? __builtin_fmaf(-0.5f, size, 0.5f) : x * x;
  float s = size > 0.5f ? __builtin_sqrtf(z) : size;
  float rest = tf_asin_rest_float(s, z);
  float large = __builtin_fmaf(-2.0f, s, 1.5f) + __builtin_fmaf(-2.0f, rest, 0x1.21fb54p-4f);
  return __builtin_copysignf(size > 0.5f ? large : s + rest, x);
}

// arccos(x) for |x| <= 1, else NaN: pi / 2 - arcsin(x), or below -1/2 and above 1/2, with the same root,
// pi - 2 arcsin(sqrt((1 + x) / 2)) and 2 arcsin(sqrt((1 - x) / 2)).
static inline float tf_acos_float(float x) {
  float size = __builtin_fabsf(x);
  float z = size > 0.5f ? __builtin_fmaf(-0.5f, size, 0.5f) : x * x;
  float s = size > 0.5f ? __builtin_sqrtf(z) : x;
  float rest = tf_asin_rest_float(s, z);
  float complement = 0x1.921fb6p+0f - (s + (rest + 0x1.777a5cp-25f));
  float large = 2.0f * (x > 0.0f ? s + rest : complement);
  return size > 0.5f ? large : complement;
}

// arctan(x): above 1 it is pi / 2 - arctan(1 / x).
static inline float tf_atan_float(float x) {
  float size = __builtin_fabsf(x);
  float s = size > 1.0f ? 1.0f / size : size;
  float rest = tf_atan_rest_float(s);
  float large = 0x1.921fb6p+0f - (s + (rest + 0x1.777a5cp-25f));
  return __builtin_copysignf(size > 1.0f ? large : s + rest, x);
}

// The angle of the point (x, y), in (-pi, pi]. The smaller one of |x| and |y| over the larger one comes
// with what its rounding lost; the factors keep the reciprocal in range.
static inline float tf_atan2_float(float y, float x) {
  float across = __builtin_fabsf(x), up = __builtin_fabsf(y);
  uint32_t steep = up > across;
  float larger = steep ? up : across, smaller = steep ? across : up;
  float grow = larger < 0x1p-64f ? 0x1p64f : 1.0f, shrink = larger > 0x1p64f ? 0x1p-64f : 1.0f;
  float divisor = larger * grow * shrink;
  smaller *= grow;
  float inverse = 1.0f / divisor, s = smaller * inverse;
  float low = __builtin_fmaf(-s, divisor, smaller) * inverse * shrink;
  s *= shrink;
  bool8_t divided = (larger > 0.0f) & (larger < __builtin_inff());
  s = divided ? s : (smaller == __builtin_inff() ? 1.0f : 0.0f);
  low = divided ? low : 0.0f;
  float rest = tf_atan_rest_float(s) + __builtin_fmaf(-0.5f * s, s * low, low); // about low / (1 + s^2)
  uint32_t left = tf_bits_float(x) >> 31;
  float quarters = steep ? 1.0f : (left ? 2.0f : 0.0f);
  float sign = steep != left ? -1.0f : 1.0f; // of the small angle, which is taken from a quarter turn
  rest = __builtin_fmaf(sign, rest, quarters * -0x1.777a5cp-25f);
  float angle = __builtin_fmaf(quarters, 0x1.921fb6p+0f, __builtin_fmaf(sign, s, rest));
  return __builtin_isunordered(x, y) ? x + y : __builtin_copysignf(angle, y);
}

// a + b, and what its rounding lost (Knuth's two-sum).
static inline double tf_sum_double(double a, double b, double *lost) {
  double sum = a + b, part = sum - a;
  *lost = (a - (sum - part)) + (b - part);
  return sum;
}

// x = f pi + n pi / 2 with an integer n, |f| <= 1/4: returns f, and puts its low part and n modulo 4.
// Of 1 / pi, 192 bits are used, which start at one of every 16: those before it would make multiples of
// 2 of x / pi. (Payne and Hanek, Radian reduction for trigonometric functions, 1983.)
static inline double tf_half_turns_double(double x, double *low, uint64_t *quarters) {
  // floor(2^(16 i + 47) / pi) modulo 2^48
  static const double windows[70] = {
      0x28be60db9391, 0x60db9391054a, 0x9391054a7f09, 0x054a7f09d5f4, 0x7f09d5f47d4d,
      0xd5f47d4d3770, 0x7d4d377036d8, 0x377036d8a566, 0x36d8a5664f10, 0xa5664f10e410,
      0x4f10e4107f94, 0xe4107f9458ea, 0x7f9458eaf7ae, 0x58eaf7aef158, 0xf7aef1586dc9,
      0xf1586dc91b8e, 0x6dc91b8e9093, 0x1b8e909374b8, 0x909374b80192, 0x74b801924bba,
      0x01924bba8274, 0x4bba82746487, 0x827464873f87, 0x64873f877ac7, 0x3f877ac72c4a,
      0x7ac72c4a69cf, 0x2c4a69cfba20, 0x69cfba208d7d, 0xba208d7d4bae, 0x8d7d4baed121,
      0x4baed1213a67, 0xd1213a671c09, 0x3a671c09ad17, 0x1c09ad17df90, 0xad17df904e64,
      0xdf904e64758e, 0x4e64758e60d4, 0x758e60d4ce7d, 0x60d4ce7d2721, 0xce7d272117e2,
      0x272117e2ef7e, 0x17e2ef7e4a0e, 0xef7e4a0ec7fe, 0x4a0ec7fe25ff, 0xc7fe25fff781,
      0x25fff7816603, 0xf7816603fbcb, 0x6603fbcbc462, 0xfbcbc462d682, 0xc462d6829b47,
      0xd6829b47db4d, 0x9b47db4d9fb3, 0xdb4d9fb3c9f2, 0x9fb3c9f2c26d, 0xc9f2c26dd3d1,
      0xc26dd3d18fd9, 0xd3d18fd9a797, 0x8fd9a797fa8b, 0xa797fa8b5d49, 0xfa8b5d49eeb1,
      0x5d49eeb1faf9, 0xeeb1faf97c5e, 0xfaf97c5ecf41, 0x7c5ecf41ce7d, 0xcf41ce7de294,
      0xce7de294a4ba, 0xe294a4ba9afe, 0xa4ba9afed7ec, 0x9afed7ec47e3, 0xd7ec47e35742};
  int64_t i = ((int64_t)(tf_bits_double(x) >> 52 & 2047) - 1075) >> 4; // or 0 where that is negative
  i &= ~(i >> 63);
  double m = x * tf_from_bits_double((uint64_t)(976 - 16 * i) << 52); // x / 2^(16 i + 47)
  double c = windows[i + 3] * 0x1p-48, d = windows[i + 6] * 0x1p-96, e = windows[i + 9] * 0x1p-144;
  double first = m * windows[i], second = m * c, third = m * d, lost[8];
  lost[0] = __builtin_fma(m, windows[i], -first);
  lost[1] = __builtin_fma(m, c, -second);
  lost[2] = __builtin_fma(m, e, __builtin_fma(m, d, -third));
  first = __builtin_fma(-2.0, __builtin_rint(0.5 * first), first);
  double near = tf_sum_double(lost[0], second, &lost[3]);
  double shifted = (first + near) + 0x1.8p51, n = shifted - 0x1.8p51; // the last bit is worth 1/2
  double f = tf_sum_double(first - n, near, &lost[4]);
  double large = tf_sum_double(lost[1], third, &lost[5]), tiny = tf_sum_double(lost[3], lost[4], &lost[6]);
  double rest = tf_sum_double(large, tiny, &lost[7]);
  f = tf_sum_double(f, rest, &rest);
  rest += ((lost[5] + lost[6]) + lost[7]) + lost[2];
  *low = rest;
  *quarters = tf_bits_double(shifted);
  return f;
}

// sin(r + low) for |r| <= pi / 4, and its low part.
static inline double tf_sin_core_double(double r, double low, double *rest) {
  double z = r * r;
  double q = 0x1.5d8b6942ddd2ap-33; // minimax, relative error 2^-57.9
  q = __builtin_fma(q, z, -0x1.ae5e4bc0481ffp-26);
  q = __builtin_fma(q, z, 0x1.71de35556ca42p-19);
  q = __builtin_fma(q, z, -0x1.a01a019be95a9p-13);
  q = __builtin_fma(q, z, 0x1.111111110f731p-7);
  q = __builtin_fma(q, z, -0x1.5555555555548p-3);
  double small = __builtin_fma(z * r, q, __builtin_fma(-0.5 * z, low, low));
  double sum = r + small;
  *rest = (r - sum) + small;
  return sum;
}

// cos(r + low) for |r| <= pi / 4, and its low part.
static inline double tf_cos_core_double(double r, double low, double *rest) {
  double z = r * r;
  double q = -0x1.8fa65506a5243p-37; // minimax, relative error 2^-63.9
  q = __builtin_fma(q, z, 0x1.1ee9db80ca020p-29);
  q = __builtin_fma(q, z, -0x1.27e4f7f134d85p-22);
  q = __builtin_fma(q, z, 0x1.a01a019c8ec95p-16);
  q = __builtin_fma(q, z, -0x1.6c16c16c15013p-10);
  q = __builtin_fma(q, z, 0x1.555555555554bp-5);
  double lost = -0.5 * __builtin_fma(r, r, -z); // of z / 2
  double most = 1.0 - 0.5 * z;
  double small = ((1.0 - most) - 0.5 * z) + (lost + __builtin_fma(z * z, q, -r * low));
  double sum = most + small;
  *rest = (most - sum) + small;
  return sum;
}

// x = r + n pi / 2 for |x| < 2^30, with an integer n, |r| <= pi / 4 (1 + 2^-23): returns r, and puts its
// low part and n modulo 4. The first difference is exact: both are multiples of the last bit of one. (W. J.
// Cody and W. Waite, Software Manual for the Elementary Functions, 1980.)
static inline double tf_reduced_small_double(double x, double *low, uint64_t *quarters) {
  double shifted = __builtin_fma(x, 0x1.45f306dc9c883p-1, 0x1.8p52), n = shifted - 0x1.8p52;
  double first = __builtin_fma(n, -0x1.921fb54442d18p+0, x), second = n * 0x1.1a62633145c07p-54, lost;
  double r = tf_sum_double(first, -second, &lost);
  double rest = __builtin_fma(n, 0x1.1a62633145c07p-54, -second);
  *low = lost - __builtin_fma(n, -0x1.f1976b7ed8fbcp-110, rest);
  *quarters = tf_bits_double(shifted);
  return r;
}

// Whether that is not to be used.
static inline uint64_t tf_is_large_angle_double(double x) {
  return !(__builtin_fabs(x) < 0x1p30);
}

// x = r + n pi / 2 for any x, the same where it is less.
static inline double tf_reduced_double(double x, double *low, uint64_t *quarters) {
  uint64_t some, few;
  double rest, small_low, f = tf_half_turns_double(x, &rest, &some);
  double r = f * 0x1.921fb54442d18p+1;
  double small = __builtin_fma(f, 0x1.1a62633145c07p-53, rest * 0x1.921fb54442d18p+1);
  double large_low = __builtin_fma(f, 0x1.921fb54442d18p+1, -r) + small;
  double small_r = tf_reduced_small_double(x, &small_low, &few);
  uint64_t large = tf_is_large_angle_double(x);
  *low = large ? large_low : small_low;
  *quarters = large ? some : few;
  return large ? r : small_r;
}

// sin(x) of what is left of x; x where that is nearest.
static inline double tf_sin_of_double(double x, double r, double low, uint64_t quarters) {
  double rest;
  double sine = tf_sin_core_double(r, low, &rest), cosine = tf_cos_core_double(r, low, &rest);
  double y = quarters & 1 ? cosine : sine;
  y = tf_from_bits_double(tf_bits_double(y) ^ (quarters & 2) << 62);
  return __builtin_fabs(x) < 0x1p-27 ? x : y;
}

// cos(x) of what is left of x.
static inline double tf_cos_of_double(double r, double low, uint64_t quarters) {
  double rest;
  double sine = tf_sin_core_double(r, low, &rest), cosine = tf_cos_core_double(r, low, &rest);
  double y = quarters & 1 ? sine : cosine;
  return tf_from_bits_double(tf_bits_double(y) ^ ((quarters + 1) & 2) << 62);
}

// tan(x) of what is left of x, a quotient whose rounding error is added; x where that is nearest.
static inline double tf_tan_of_double(double x, double r, double low, uint64_t quarters) {
  double sine_rest, cosine_rest;
  double sine = tf_sin_core_double(r, low, &sine_rest), cosine = tf_cos_core_double(r, low, &cosine_rest);
  bool8_t odd = quarters & 1;
  double above = odd ? -cosine : sine, above_rest = odd ? -cosine_rest : sine_rest;
  double below = odd ? sine : cosine, below_rest = odd ? sine_rest : cosine_rest;
  double inverse = 1.0 / below, y = above * inverse;
  double error = __builtin_fma(-y, below, above) + __builtin_fma(-y, below_rest, above_rest);
  y = __builtin_fma(error, inverse, y);
  return __builtin_fabs(x) < 0x1p-27 ? x : y;
}

// sin(x).
static inline double tf_sin_double(double x) {
  double low;
  uint64_t quarters;
  double r = tf_reduced_double(x, &low, &quarters);
  return tf_sin_of_double(x, r, low, quarters);
}

// cos(x).
static inline double tf_cos_double(double x) {
  double low;
  uint64_t quarters;
  double r = tf_reduced_double(x, &low, &quarters);
  return tf_cos_of_double(r, low, quarters);
}

// tan(x).
static inline double tf_tan_double(double x) {
  double low;
  uint64_t quarters;
  double r = tf_reduced_double(x, &low, &quarters);
  return tf_tan_of_double(x, r, low, quarters);
}

// sin(x) for |x| < 2^30.
static inline double tf_sin_small_double(double x) {
  double low;
  uint64_t quarters;
  double r = tf_reduced_small_double(x, &low, &quarters);
  return tf_sin_of_double(x, r, low, quarters);
}

// cos(x) for |x| < 2^30.
static inline double tf_cos_small_double(double x) {
  double low;
  uint64_t quarters;
  double r = tf_reduced_small_double(x, &low, &quarters);
  return tf_cos_of_double(r, low, quarters);
}

// tan(x) for |x| < 2^30.
static inline double tf_tan_small_double(double x) {
  double low;
  uint64_t quarters;
  double r = tf_reduced_small_double(x, &low, &quarters);
  return tf_tan_of_double(x, r, low, quarters);
}

// arcsin(s) - s for 0 <= s^2 = z <= 1/4.
static inline double tf_asin_rest_double(double s, double z) {
  double q = 0x1.056ed7c51f105p-5; // minimax, relative error of the sum 2^-55.9
  q = __builtin_fma(q, z, -0x1.09d72576fd778p-6);
  q = __builtin_fma(q, z, 0x1.3ff720f818485p-6);
  q = __builtin_fma(q, z, 0x1.abcbd4602b55fp-8);
  q = __builtin_fma(q, z, 0x1.8ec36490d56d1p-7);
  q = __builtin_fma(q, z, 0x1.c6fdb1a7f63d5p-7);
  q = __builtin_fma(q, z, 0x1.1c6be27cabc9fp-6);
  q = __builtin_fma(q, z, 0x1.6e89f4312c38fp-6);
  q = __builtin_fma(q, z, 0x1.f1c72c39a3cecp-6);
  q = __builtin_fma(q, z, 0x1.6db6db4278372p-5);
  q = __builtin_fma(q, z, 0x1.333333336e83cp-4);
  q = __builtin_fma(q, z, 0x1.5555555555390p-3);
  return s * z * q;
}

// arcsin(x) for |x| <= 1, else NaN. Above 1/2 it is pi / 2 - 2 arcsin(sqrt((1 - x) / 2)).
static inline double tf_asin_double(double x) {
  double size = __builtin_fabs(x);
  double z = size > 0.5 ? __builtin_fma(-0.5, size, 0.5) : x * x;
  double s = size > 0.5 ? __builtin_sqrt(z) : size;
  double rest = tf_asin_rest_double(s, z);
  double large = __builtin_fma(-2.0, s, 1.5) + __builtin_fma(-2.0, rest, 0x1.21fb54442d184p-4);
  return __builtin_copysign(size > 0.5 ? large : s + rest, x);
}

// arccos(x) for |x| <= 1, else NaN: pi / 2 - arcsin(x), or below -1/2 and above 1/2, with the same root,
// pi - 2 arcsin(sqrt((1 + x) / 2)) and 2 arcsin(sqrt((1 - x) / 2)).
static inline double tf_acos_double(double x) {
  double size = __builtin_fabs(x);
  double z = size > 0.5 ? __builtin_fma(-0.5, size, 0.5) : x * x;
  double s = size > 0.5 ? __builtin_sqrt(z) : x;
  double rest = tf_asin_rest_double(s, z);
  double complement = 0x1.921fb54442d18p+0 - (s + (rest - 0x1.1a62633145c07p-54));
  double large = 2.0 * (x > 0.0 ? s + rest : complement);
  return size > 0.5 ? large : complement;
}

// arctan(s + low) - s for |s| <= tan(pi / 8) and a tiny low part.
static inline double tf_atan_rest_double(double s, double low) {
  double z = s * s;
  double q = -0x1.25646acb686bep-6; // minimax, relative error of the sum 2^-59.4
  q = __builtin_fma(q, z, 0x1.37d2e81b608bfp-5);
  q = __builtin_fma(q, z, -0x1.9cd1a7dddb1f8p-5);
  q = __builtin_fma(q, z, 0x1.df0f0df1673f7p-5);
  q = __builtin_fma(q, z, -0x1.10ebb423a6990p-4);
  q = __builtin_fma(q, z, 0x1.3b1118c2d280fp-4);
  q = __builtin_fma(q, z, -0x1.745cf8d7c7721p-4);
  q = __builtin_fma(q, z, 0x1.c71c70e5ec003p-4);
  q = __builtin_fma(q, z, -0x1.24924922ad1cap-3);
  q = __builtin_fma(q, z, 0x1.9999999995865p-3);
  q = __builtin_fma(q, z, -0x1.555555555553dp-2);
  return __builtin_fma(s * z, q, __builtin_fma(-z, low, low));
}

// The angle from the axis x of the point (x, y), x and y >= 0, if `left` from the negative axis. Within
// pi / 8 of the diagonal it is pi / 4 + arctan((y - x) / (y + x)), else pi / 2 - arctan(x / y) above it.
static inline double tf_angle_double(double y, double x, uint64_t left) {
  uint64_t steep = y > x;
  double larger = steep ? y : x, smaller = steep ? x : y;
  bool8_t diagonal = smaller > 0x1.a827999fcef32p-2 * larger; // tan(pi / 8)
  double above = diagonal ? smaller - larger : smaller;
  double above_lost = diagonal ? smaller - (above + larger) : 0.0;
  double below = diagonal ? larger + smaller : larger;
  double below_lost = diagonal ? smaller - (below - larger) : 0.0;
  double inverse = 1.0 / below, s = above * inverse;
  double error = __builtin_fma(-s, below, above) + __builtin_fma(-s, below_lost, above_lost);
  double rest = tf_atan_rest_double(s, error * inverse);
  double turn = steep != left ? -1.0 : 1.0; // how the small angle is added to eighths of a turn
  double eighths = (steep ? 2.0 : left ? 4.0
                                       : 0.0) +
                   (diagonal ? turn : 0.0);
  double low = __builtin_fma(eighths, 0x1.1a62633145c07p-55, turn * rest);
  return __builtin_fma(eighths, 0x1.921fb54442d18p-1, __builtin_fma(turn, s, low));
}

// arctan(x).
static inline double tf_atan_double(double x) {
  double size = __builtin_fabs(x);
  double angle = tf_angle_double(size, 1.0, 0);
  angle = size == __builtin_inf() ? 0x1.921fb54442d18p+0 : angle;
  return __builtin_copysign(angle, x);
}

// The angle of the point (x, y), in (-pi, pi].
static inline double tf_atan2_double(double y, double x) {
  double across = __builtin_fabs(x), up = __builtin_fabs(y);
  double larger = up > across ? up : across;
  double scale = larger < 0x1p-900 ? 0x1p200 : 1.0; // where sums or reciprocals would leave the range
  scale = larger > 0x1p1000 ? 0x1p-30 : scale;
  bool8_t infinite = larger == __builtin_inf();
  double a = infinite ? (double)(across == larger) : across * scale;
  double b = infinite ? (double)(up == larger) : up * scale;
  a = larger == 0.0 ? 1.0 : a;
  double angle = tf_angle_double(b, a, tf_bits_double(x) >> 63);
  return __builtin_isunordered(x, y) ? x + y : __builtin_copysign(angle, y);
}
