// Special functions, and roots. Every rounding is explicit, and there are no branches: a loop over any
// of them vectorizes, and its bits depend neither on that nor on the compiler.
//
// Polynomials are from the Remez exchange, with rounded coefficients; their error is given as a part of
// the result. Where "low" is what rounding took from another value, see T. J. Dekker, A Floating-Point
// Technique for Extending the Available Precision, 1971. What is close to a zero or to an end of the
// range comes last, as a choice between results.

// The cube root. A linear function of the bits is within 6 % of 1 / cbrt(x) (W. Kahan, Computing a real
// cube root, 1991). A step of third order and one of Newton's improve that, the last one the root.
static inline float tf_cbrt_float(float x) {
  float size = __builtin_fabsf(x);
  bool8_t small = size < 0x1p-126f;
  float a = small ? size * 0x1p24f : size;
  float guess = __builtin_fmaf((float)(int32_t)tf_bits_float(a), -0x1.555556p-2f, 0x1.528beap+30f);
  float r = tf_from_bits_float((uint32_t)(int32_t)guess);
  float h = __builtin_fmaf(-a * r, r * r, 1.0f);
  r = __builtin_fmaf(r * h, __builtin_fmaf(h, 0x1.c71c72p-3f, 0x1.555556p-2f), r);
  h = __builtin_fmaf(-a * r, r * r, 1.0f);
  r = __builtin_fmaf(r * h, 0x1.555556p-2f, r);
  float root = a * r * r;
  float square = root * root;
  float error = __builtin_fmaf(square, root, -a) + __builtin_fmaf(root, root, -square) * root; // of its cube
  root = __builtin_fmaf(error * r, r * -0x1.555556p-2f, root);
  root = small ? root * 0x1p-8f : root;
  root = ((a > 0.0f) & (a < __builtin_inff())) ? root : a;
  return __builtin_copysignf(root, x);
}

// The cube root: as above, with one more step.
static inline double tf_cbrt_double(double x) {
  double size = __builtin_fabs(x);
  bool8_t small = size < 0x1p-1022;
  double a = small ? size * 0x1p54 : size;
  double half = tf_from_bits_double(0x4330000000000000u | tf_bits_double(a) >> 32) - 0x1p52; // of the bits
  double guess = __builtin_fma(half, -0x1.5555555555555p-2, 0x1.8p52 + 0x553ef0ff);
  double r = tf_from_bits_double(tf_bits_double(guess) << 32);
  double h = __builtin_fma(-a * r, r * r, 1.0);
  r = __builtin_fma(r * h, __builtin_fma(h, 0x1.c71c71c71c71cp-3, 0x1.5555555555555p-2), r);
  h = __builtin_fma(-a * r, r * r, 1.0);
  r = __builtin_fma(r * h, __builtin_fma(h, 0x1.c71c71c71c71cp-3, 0x1.5555555555555p-2), r);
  h = __builtin_fma(-a * r, r * r, 1.0);
  r = __builtin_fma(r * h, 0x1.5555555555555p-2, r);
  double root = a * r * r;
  double square = root * root;
  double error = __builtin_fma(square, root, -a) + __builtin_fma(root, root, -square) * root; // of its cube
  root = __builtin_fma(error * r, r * -0x1.5555555555555p-2, root);
  root = small ? root * 0x1p-18 : root;
  root = ((a > 0.0) & (a < __builtin_inf())) ? root : a;
  return __builtin_copysign(root, x);
}

// sqrt(x^2 + y^2); infinite if x or y is, even beside NaN.
static inline float tf_hypot_float(float x, float y) {
  double wide = x, high = y;
  float root = (float)__builtin_sqrt(__builtin_fma(wide, wide, high * high));
  bool8_t infinite = (__builtin_fabsf(x) == __builtin_inff()) | (__builtin_fabsf(y) == __builtin_inff());
  return infinite ? __builtin_inff() : root;
}

// sqrt(x^2 + y^2); infinite if x or y is, even beside NaN. The root of a rounded sum is corrected by
// what it lacks (C. F. Borges, An improved algorithm for hypot(a, b), 2019).
static inline double tf_hypot_double(double x, double y) {
  double wide = __builtin_fabs(x), high = __builtin_fabs(y);
  double a = wide > high ? wide : high, b = wide > high ? high : wide;
  double scale = a < 0x1p-450 ? 0x1p600 : 1.0; // where squares would leave the range
  scale = a > 0x1p510 ? 0x1p-600 : scale;
  a *= scale;
  b *= scale;
  double square = a * a, other = b * b, sum = square + other;
  double root = __builtin_sqrt(sum);
  double lost = ((square - sum) + other) + (__builtin_fma(a, a, -square) + __builtin_fma(b, b, -other));
  double error = __builtin_fma(-root, root, sum) + lost;
  root = (sum > 0.0 ? root + 0.5 * error / root : root) * (1.0 / scale);
  bool8_t infinite = (wide == __builtin_inf()) | (high == __builtin_inf());
  root = a == a ? root : x + y;
  return infinite ? __builtin_inf() : root;
}

// e^x for |x| < 700, for float functions: off by 2^-34.
static inline double tf_exp_for_float(double x) {
  double t = __builtin_fma(x, 0x1.71547652b82fep+0, 0x1.80000000003ffp+52); // n + 1023 in its low bits
  double r = __builtin_fma(t - 0x1.80000000003ffp+52, -0x1.62e42fefa39efp-1, x);
  double q = 0x1.a1bc9c4423b8cp-13;
  q = __builtin_fma(q, r, 0x1.6d9745d442b1ep-10);
  q = __builtin_fma(q, r, 0x1.1110797214d08p-7);
  q = __builtin_fma(q, r, 0x1.55547f83c5e9dp-5);
  q = __builtin_fma(q, r, 0x1.5555559a9cfecp-3);
  q = __builtin_fma(q, r, 0x1.000000434970fp-1);
  return __builtin_fma(r * r, q, 1.0 + r) * tf_from_bits_double(tf_bits_double(t) << 52);
}

// The error function. From 0.9 on it is 1 - e^w with a polynomial w of |x|.
static inline float tf_erf_float(float x) {
  float size = __builtin_fabsf(x);
  float z = x * x;
  float q = -0x1.3ba9cep-11f; // minimax below 0.9
  q = __builtin_fmaf(q, z, 0x1.479c9ep-8f);
  q = __builtin_fmaf(q, z, -0x1.b69b96p-6f);
  q = __builtin_fmaf(q, z, 0x1.ce1b86p-4f);
  q = __builtin_fmaf(q, z, -0x1.8126ecp-2f);
  q = __builtin_fmaf(q, z, 0x1.06eba6p-3f);
  float small = __builtin_fmaf(size, q, size);
  float w = 0x1.9fb61p-13f; // log(1 - erf(x)), minimax from 0.9 to 3.93, where erf(x) rounds to 1
  w = __builtin_fmaf(w, size, -0x1.91cdbcp-9f);
  w = __builtin_fmaf(w, size, 0x1.6d9cdcp-6f);
  w = __builtin_fmaf(w, size, -0x1.aa7306p-4f);
  w = __builtin_fmaf(w, size, -0x1.4621cp-1f);
  w = __builtin_fmaf(w, size, -0x1.20b75p+0f);
  w = __builtin_fmaf(w, size, -0x1.5d212p-13f);
  float t = __builtin_fmaf(w, 0x1.715476p+0f, 0x1.8000fep+23f); // n + 127 in its low bits
  float r = __builtin_fmaf(t - 0x1.8000fep+23f, -0x1.62e43p-1f, w);
  float e = 0x1.6a5166p-10f;
  e = __builtin_fmaf(e, r, 0x1.123e52p-7f);
  e = __builtin_fmaf(e, r, 0x1.5558d6p-5f);
  e = __builtin_fmaf(e, r, 0x1.555494p-3f);
  e = __builtin_fmaf(e, r, 0x1.fffffcp-2f);
  e = __builtin_fmaf(e, r, 0x1p+0f);
  float large = 1.0f - __builtin_fmaf(e, r, 1.0f) * tf_from_bits_float(tf_bits_float(t) << 23);
  float y = size < 0.9f ? small : large;
  return __builtin_copysignf(size > 3.93f ? 1.0f : y, x);
}

// erf(x) / x - 1 for x^2 = z < 0.82.
static inline double tf_erf_rest_double(double z) {
  double q = -0x1.1ffd3f8deca4fp-30; // minimax, relative error of erf 2^-56.3
  q = __builtin_fma(q, z, 0x1.00eccca81ded7p-26);
  q = __builtin_fma(q, z, -0x1.615b5300b93efp-23);
  q = __builtin_fma(q, z, 0x1.ba405e805bf93p-20);
  q = __builtin_fma(q, z, -0x1.f4db351362d54p-17);
  q = __builtin_fma(q, z, 0x1.f9a3af350af2p-14);
  q = __builtin_fma(q, z, -0x1.c02db9225e1ap-11);
  q = __builtin_fma(q, z, 0x1.565bcd2ce3e52p-8);
  q = __builtin_fma(q, z, -0x1.b82ce3135a65p-6);
  q = __builtin_fma(q, z, 0x1.ce2f21a0459fep-4);
  q = __builtin_fma(q, z, -0x1.812746b037a26p-2);
  q = __builtin_fma(q, z, 0x1.06eba8214db69p-3);
  return q;
}

// e^(x^2) erfc(x) with its low part, for x from 1/2 to 27.4: what depends on x like 1 / (1 + 2 x) is taken
// out, and the rest is a polynomial of (x - 4) / (x + 4). (M. M. Shepherd and J. G. Laframboise, Chebyshev
// approximation of (1 + 2 x) exp(x^2) erfc x, 1981.)
static inline double tf_erfc_factor_double(double x, double *low) {
  double s = (x - 4.0) / (x + 4.0);
  double q = -0x1.5ced1fa88159bp-27; // minimax, relative error 2^-58.8
  q = __builtin_fma(q, s, -0x1.a3583ebc0f394p-27);
  q = __builtin_fma(q, s, 0x1.c18e76eb93bd8p-24);
  q = __builtin_fma(q, s, 0x1.1fa0988f027ccp-24);
  q = __builtin_fma(q, s, -0x1.b8e1456b826c7p-21);
  q = __builtin_fma(q, s, 0x1.41b85d9780fb3p-22);
  q = __builtin_fma(q, s, 0x1.7f083b6f29594p-18);
  q = __builtin_fma(q, s, -0x1.78a4180b13f4ep-17);
  q = __builtin_fma(q, s, -0x1.9956d317a2df9p-16);
  q = __builtin_fma(q, s, 0x1.3be0d871105e8p-13);
  q = __builtin_fma(q, s, -0x1.a1df34dc45adap-13);
  q = __builtin_fma(q, s, -0x1.8d4aa1936df48p-11);
  q = __builtin_fma(q, s, 0x1.49c67295fb44p-8);
  q = __builtin_fma(q, s, -0x1.0962387d85aa1p-6);
  q = __builtin_fma(q, s, 0x1.3079edf65a299p-5);
  q = __builtin_fma(q, s, -0x1.0fb06dfe6be46p-4);
  q = __builtin_fma(q, s, 0x1.7fee004e13444p-4);
  q = __builtin_fma(q, s, -0x1.9ddb23c3e7c85p-4);
  q = __builtin_fma(q, s, 0x1.16ecefcfa533fp-4);
  q = __builtin_fma(q, s, 0x1.f7f5df66fd569p-7);
  q = __builtin_fma(q, s, -0x1.1df1ad154a28ep-3);
  double p = __builtin_fma(q, s, 0x1.3ba5916e9fd7fp+0);
  double p_low = __builtin_fma(q, s, 0x1.3ba5916e9fd7fp+0 - p) + -0x1.942e0b7d7d3bfp-55;
  double d = __builtin_fma(2.0, x, 1.0), d_low = __builtin_fma(2.0, x, 1.0 - d);
  double inverse = 1.0 / d, y = p * inverse;
  *low = (__builtin_fma(-y, d, p) + __builtin_fma(-y, d_low, p_low)) * inverse;
  return y;
}

// e^(x + low) * (factor + factor_low), rounded where it leaves the range, not before.
static inline double tf_exp_times_double(double x, double low, double factor, double factor_low) {
  double t = __builtin_fma(x, 0x1.71547652b82fep+0, 0x1.80000000007fep+52); // n + 2046 in its low bits
  double n = t - 0x1.80000000007fep+52;
  double close = __builtin_fma(n, -0x1.62e42fefap-1, x);
  double power = tf_exp_of_sum_double(close, __builtin_fma(n, -0x1.cf79abc9e3b3ap-40, low));
  double y = __builtin_fma(power, factor, power * factor_low);
  return tf_scaled_double(y, tf_bits_double(t));
}

// The error function. From 0.9 on it is 1 - e^w with a polynomial w of |x|.
static inline double tf_erf_double(double x) {
  double size = __builtin_fabs(x);
  double small = __builtin_fma(size, tf_erf_rest_double(x * x), size);
  double w = 0x1.81228604e3d1dp-40; // log(1 - erf(x)), minimax from 0.9 to 5.95, relative error of erf 2^-55.84
  w = __builtin_fma(w, size, -0x1.0cfca3365808cp-34);
  w = __builtin_fma(w, size, 0x1.5fe47c8271e9dp-30);
  w = __builtin_fma(w, size, -0x1.1e37caca054a9p-26);
  w = __builtin_fma(w, size, 0x1.43bf734606979p-23);
  w = __builtin_fma(w, size, -0x1.0d2f6ff38418dp-20);
  w = __builtin_fma(w, size, 0x1.51b536c3c4c1dp-18);
  w = __builtin_fma(w, size, -0x1.3fc9e69317904p-16);
  w = __builtin_fma(w, size, 0x1.b6c941775c75p-15);
  w = __builtin_fma(w, size, -0x1.6c71b1391c579p-14);
  w = __builtin_fma(w, size, -0x1.f22252b114307p-17);
  w = __builtin_fma(w, size, 0x1.3973c8e55b24fp-11);
  w = __builtin_fma(w, size, -0x1.c2c3ed9065de4p-10);
  w = __builtin_fma(w, size, 0x1.efd01d6d5e7ffp-13);
  w = __builtin_fma(w, size, 0x1.39113242ddfc2p-6);
  w = __builtin_fma(w, size, -0x1.a4ea042af2448p-4);
  w = __builtin_fma(w, size, -0x1.45f37cdbc2f2dp-1);
  w = __builtin_fma(w, size, -0x1.20dd68eb92e4cp+0);
  w = __builtin_fma(w, size, -0x1.2369b499ab7d1p-24);
  double large = 1.0 - tf_exp_double(w);
  double y = size < 0.9 ? small : large;
  return __builtin_copysign(size > 5.95 ? 1.0 : y, x);
}

// 1 - erf(x), to the last place also where that is small.
static inline double tf_erfc_double(double x) {
  double size = __builtin_fabs(x);
  double z = x * x;
  double low, factor = tf_erfc_factor_double(size, &low);
  double most = 1.0 - x;
  double near = most + __builtin_fma(-x, tf_erf_rest_double(z), (1.0 - most) - x);
  double far = tf_exp_times_double(-z, -__builtin_fma(x, x, -z), factor, low);
  far = size > 27.3 ? 0.0 : far;
  far = x < 0.0 ? 2.0 - far : far;
  return size < 0.5 ? near : (x == x ? far : x);
}

// 1 / x for float functions, off by 2^-38: a difference of bits is within 6 %, which two steps of third
// order improve. That is faster than a division.
static inline double tf_inverse_for_float(double x) {
  double inverse = tf_from_bits_double(0x7fde623822fc16e6u - tf_bits_double(x));
  double error = __builtin_fma(-x, inverse, 1.0);
  inverse = __builtin_fma(inverse, __builtin_fma(error, error, error), inverse);
  error = __builtin_fma(-x, inverse, 1.0);
  return __builtin_fma(inverse, __builtin_fma(error, error, error), inverse);
}

// 1 - erf(x), by arithmetic of doubles.
static inline float tf_erfc_float(float x) {
  double size = __builtin_fabs((double)x);
  double z = size * size;
  double p = -0x1.93502fa8dccdep-11; // minimax, relative error of erf 2^-36.3
  p = __builtin_fma(p, z, 0x1.54ce75890f679p-8);
  p = __builtin_fma(p, z, -0x1.b820148ba02f3p-6);
  p = __builtin_fma(p, z, 0x1.ce2ef19df5ad2p-4);
  p = __builtin_fma(p, z, -0x1.8127466e27016p-2);
  p = __builtin_fma(p, z, 0x1.06eba820d7664p-3);
  double near = __builtin_fma(-(double)x, p, 1.0 - x);
  double d = __builtin_fma(2.0, size, 1.0), sum = size + 2.0;
  double inverse = tf_inverse_for_float(sum * d);
  double s = (size - 2.0) * d * inverse;
  double q = 0x1.e508e92098751p-13; // minimax, relative error 2^-30.8
  q = __builtin_fma(q, s, -0x1.5050d7cf0d7dbp-12);
  q = __builtin_fma(q, s, -0x1.849d9fe769218p-10);
  q = __builtin_fma(q, s, 0x1.40a7257446ee3p-10);
  q = __builtin_fma(q, s, 0x1.1e18e67af7383p-7);
  q = __builtin_fma(q, s, -0x1.0700053ab3e26p-7);
  q = __builtin_fma(q, s, -0x1.bc2dcfebd346ap-5);
  q = __builtin_fma(q, s, 0x1.4ff9d5a744507p-3);
  q = __builtin_fma(q, s, -0x1.5407b8948d661p-3);
  q = __builtin_fma(q, s, -0x1.7bf5e944f4494p-4);
  q = __builtin_fma(q, s, 0x1.46e80e212540fp+0);
  double far = tf_exp_for_float(-z) * q * (sum * inverse); // e^(-x^2) q / (1 + 2 x), as for doubles
  far = size > 10.1 ? 0.0 : far;
  far = x < 0.0f ? 2.0 - far : far;
  return (float)(size < 0.5 ? near : (x == x ? far : x));
}

// (a + a_low) * (b + b_low) with its low part.
static inline double tf_product_double(double a, double a_low, double b, double b_low, double *low) {
  double y = a * b;
  *low = __builtin_fma(a, b_low, __builtin_fma(a_low, b, __builtin_fma(a, b, -y)));
  return y;
}

// log(gamma(x + x_low)) with its low part, for x >= 8, by Stirling's series:
// x (log(x) - 1) - log(x) / 2 + log(2 pi) / 2 + 1 / (12 x) - ...
static inline double tf_stirling_double(double x, double x_low, double *low) {
  double l_low, l = tf_log_with_low_double(x, &l_low);
  double inverse = 1.0 / x, z = inverse * inverse;
  double q = 0x1.45fafabf191d8p-8; // minimax, off by 2^-64.5
  q = __builtin_fma(q, z, -0x1.ee576fbdff0c8p-10);
  q = __builtin_fma(q, z, 0x1.b92034ec077f1p-11);
  q = __builtin_fma(q, z, -0x1.381330c902db8p-11);
  q = __builtin_fma(q, z, 0x1.a01a015cd3b15p-11);
  q = __builtin_fma(q, z, -0x1.6c16c16c10889p-9);
  q = __builtin_fma(q, z, 0x1.5555555555555p-4);
  double product = x * (l - 1.0), lost_first, lost_second, lost_third; // l > 2: exact
  double product_low = __builtin_fma(x, l_low, __builtin_fma(x, l - 1.0, -product));
  double first = tf_sum_double(-0.5 * l, 0x1.d67f1c864beb5p-1, &lost_first);
  double second = tf_sum_double(product, first, &lost_second);
  double sum = tf_sum_double(second, q * inverse, &lost_third);
  double rest = (lost_first + lost_second) + (lost_third + product_low);
  rest += __builtin_fma(-0.5, l_low, -0x1.65b5a1b7ff5dfp-55);
  *low = __builtin_fma(x_low, __builtin_fma(-0.5, inverse, l), rest); // with the derivative
  return sum;
}

// x (x + 1) ... (x + 7) / x with its low part, for 0 < x < 8, given x (x + 8).
static inline double tf_rising_double(double x, double u, double u_low, double *low) {
  double a_low, b_low, c_low, d_low;
  double a = tf_sum_double(u, 7.0, &a_low), b = tf_sum_double(u, 12.0, &b_low);
  double c = tf_sum_double(u, 15.0, &c_low), d = tf_sum_double(x, 4.0, &d_low);
  a = tf_product_double(a, a_low + u_low, b, b_low + u_low, &a_low);
  c = tf_product_double(c, c_low + u_low, d, d_low, &c_low);
  return tf_product_double(a, a_low, c, c_low, low);
}

// sin(pi x) with its low part, for x > 0, but for its sign.
static inline double tf_sin_of_pi_double(double x, double *low) {
  double f = __builtin_fabs(x - __builtin_rint(x)), sine_low, cosine_low;
  bool8_t steep = f <= 0.25;
  double g = steep ? f : 0.5 - f;
  double r = g * 0x1.921fb54442d18p+1;
  double r_low = __builtin_fma(g, 0x1.1a62633145c07p-53, __builtin_fma(g, 0x1.921fb54442d18p+1, -r));
  double sine = tf_sin_core_double(r, r_low, &sine_low), cosine = tf_cos_core_double(r, r_low, &cosine_low);
  *low = steep ? sine_low : cosine_low;
  return steep ? sine : cosine;
}

// log|gamma(x)| with its low part: below 8 by gamma(x) = gamma(x + 8) / (x (x + 1) ... (x + 7)), and of
// negative x by gamma(x) = -pi / (sin(pi |x|) |x| gamma(|x|)).
static inline double tf_log_gamma_double(double x, double *low) {
  double size = __builtin_fabs(x);
  bool8_t small = size < 8.0, tiny = size < 0x1p-60; // there gamma(x) = 1 / x
  bool8_t negative = x < 0.0;
  double y = small ? size + 8.0 : size, y_low = small ? size - (y - 8.0) : 0.0;
  double main_low, main = tf_stirling_double(y, y_low, &main_low);
  double u = size * y, u_low = __builtin_fma(size, y_low, __builtin_fma(size, y, -u));
  double p_low, p = tf_rising_double(size, u, u_low, &p_low);
  p = small ? p : 1.0;
  p_low = small ? p_low : 0.0;
  double sine_low, sine = tf_sin_of_pi_double(size, &sine_low), above_low;
  double above = tf_product_double(0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53, p, p_low, &above_low);
  above = negative ? above : 1.0;
  above_low = negative ? above_low : 0.0;
  double below_low = negative ? sine_low : p_low, below = negative ? sine : p;
  double times = negative == small ? 1.0 : size;
  below = tf_product_double(below, below_low, times, 0.0, &below_low);
  double quotient = below / above;
  double error = __builtin_fma(-quotient, above, below) + __builtin_fma(-quotient, above_low, below_low);
  quotient = tiny ? size : quotient;
  error = tiny ? 0.0 : error / below;
  double factor_low, factor = tf_log_with_low_double(quotient, &factor_low);
  double sign = tiny ? 0.0 : (negative ? -1.0 : 1.0);
  double lost, sum = tf_sum_double(sign * main, -factor, &lost);
  double rest = lost + (__builtin_fma(sign, main_low, -factor_low) - error);
  double total = sum + rest;
  *low = (sum - total) + rest;
  return total;
}

// Gamma(x); NaN at negative integers and -infinity, 1 / x at zeros.
static inline double tf_gamma_double(double x) {
  double low, y = tf_log_gamma_double(x, &low);
  y = tf_exp_of_sum_double(y, low);
  double whole = __builtin_floor(x), half = 0.5 * whole;
  y = ((x < 0.0) & (__builtin_floor(half) != half)) ? -y : y;
  y = ((x < 0.0) & (whole == x)) ? __builtin_nan("") : y;
  y = x > 172.0 ? __builtin_inf() : y;
  return __builtin_fabs(x) < 0x1p-60 ? 1.0 / x : y;
}

// log|gamma(x)|; infinite at poles. Close to the zeros at 1 and 2 by the Taylor series.
static inline double tf_lgamma_double(double x) {
  double low, y = tf_log_gamma_double(x, &low);
  bool8_t one = x < 1.5;
  double d = one ? x - 1.0 : x - 2.0;
  double q = one ? 0x1.9abdf2f7fd40fp-4 : 0x1.a179fb41d6911p-14;
  q = __builtin_fma(q, d, one ? -0x1.c8efa06a09cf4p-4 : -0x1.d43836938bc0cp-13);
  q = __builtin_fma(q, d, one ? 0x1.010b267b78a53p-3 : 0x1.0b36ac09a3aabp-11);
  q = __builtin_fma(q, d, one ? -0x1.27038857f44e5p-3 : -0x1.38ac5a8f75eb4p-10);
  q = __builtin_fma(q, d, one ? 0x1.5b40cb10cb189p-3 : 0x1.7add6eadd7856p-9);
  q = __builtin_fma(q, d, one ? -0x1.a8b9c17ced938p-3 : -0x1.e404fc219894dp-8);
  q = __builtin_fma(q, d, one ? 0x1.151322ac7d881p-2 : 0x1.51322ac7d847fp-6);
  q = __builtin_fma(q, d, one ? -0x1.9a4d55beab245p-2 : -0x1.13e001a557606p-4);
  q = __builtin_fma(q, d, one ? 0x1.a51a6625307d3p-1 : 0x1.4a34cc4a60fa6p-2);
  double near = __builtin_fma(d * d, q, d * (one ? -0x1.2788cfc6fb619p-1 : 0x1.b0ee6072093cep-2));
  y = __builtin_fabs(d) < 0x1p-5 ? near : y;
  y = ((x <= 0.0) & (__builtin_floor(x) == x)) ? __builtin_inf() : y;
  y = x > 0x1.754d9278b51a7p+1014 ? __builtin_inf() : y; // where it leaves the range
  return __builtin_fabs(x) == __builtin_inf() ? x : y;
}

// log|gamma(x)| + log(below / above), as for doubles, by arithmetic of doubles.
static inline double tf_stirling_for_float(double x, double *above, double *below) {
  double size = __builtin_fabs(x);
  bool8_t small = size < 8.0, negative = x < 0.0;
  double y = small ? size + 8.0 : size;
  double inverse = tf_inverse_for_float(y), z = inverse * inverse;
  double q = 0x1.97cf1169dd72cp-11; // minimax, off by 2^-37.8
  q = __builtin_fma(q, z, -0x1.6c12a72f18b5cp-9);
  q = __builtin_fma(q, z, 0x1.5555554509627p-4);
  double main = __builtin_fma(y - 0.5, tf_log_double(y), __builtin_fma(q, inverse, 0x1.d67f1c864beb5p-1 - y));
  double u = size * y;
  double p = small ? ((u + 7.0) * (u + 12.0)) * ((u + 15.0) * (size + 4.0)) : 1.0;
  double f = size - __builtin_rint(size);
  z = f * f;
  double sine = -0x1.cc33c62abaf5dp-8; // sin(pi f) / f, minimax, relative error 2^-35.4
  sine = __builtin_fma(sine, z, 0x1.500ff29310c2cp-4);
  sine = __builtin_fma(sine, z, -0x1.32d111df2e8dfp-1);
  sine = __builtin_fma(sine, z, 0x1.466bbfc1a129ap+1);
  sine = __builtin_fma(sine, z, -0x1.4abbce4f18277p+2);
  sine = __builtin_fma(sine, z, 0x1.921fb5441e4efp+1);
  sine *= __builtin_fabs(f);
  *above = negative ? p * 0x1.921fb54442d18p+1 : 1.0;
  *below = (negative ? sine : p) * (negative == small ? 1.0 : size);
  return negative ? -main : main;
}

// Gamma(x); NaN at negative integers and -infinity, 1 / x at zeros.
static inline float tf_gamma_float(float x) {
  double above, below, main = tf_stirling_for_float(x, &above, &below);
  float y = (float)(tf_exp_for_float(main) * (above * tf_inverse_for_float(below)));
  float whole = __builtin_floorf(x), half = 0.5f * whole;
  y = x < -50.0f ? 0.0f : y;
  y = ((x < 0.0f) & (__builtin_floorf(half) != half)) ? -y : y;
  y = ((x < 0.0f) & (whole == x)) ? __builtin_nanf("") : y;
  y = x > 40.0f ? __builtin_inff() : y;
  return __builtin_fabsf(x) < 0x1p-60f ? 1.0f / x : y;
}

// log|gamma(x)|; infinite at poles. Close to the zeros at 1 and 2 by the Taylor series.
static inline float tf_lgamma_float(float x) {
  double above, below, main = tf_stirling_for_float(x, &above, &below);
  float y = (float)(main - tf_log_double(below * tf_inverse_for_float(above)));
  bool8_t one = x < 1.5f;
  double d = one ? x - 1.0 : x - 2.0;
  double q = one ? -0x1.284bb2653e8bp-3 : -0x1.39647f38371b4p-10;
  q = __builtin_fma(q, d, one ? 0x1.5d0476cc17badp-3 : 0x1.7b527b4730c7p-9);
  q = __builtin_fma(q, d, one ? -0x1.a8b96622b5eaap-3 : -0x1.e404d07409fb6p-8);
  q = __builtin_fma(q, d, one ? 0x1.1512b19b6ae2dp-2 : 0x1.5132237605ebp-6);
  q = __builtin_fma(q, d, one ? -0x1.9a4d55b690bfbp-2 : -0x1.13e001a62c7e5p-4);
  q = __builtin_fma(q, d, one ? 0x1.a51a662c41d38p-1 : 0x1.4a34cc4a6f9e3p-2);
  double near = __builtin_fma(d * d, q, d * (one ? -0x1.2788cfc6fbf63p-1 : 0x1.b0ee6072093f8p-2));
  y = __builtin_fabs(d) < 0x1p-4 ? (float)near : y;
  y = ((x <= 0.0f) & (__builtin_floorf(x) == x)) ? __builtin_inff() : y;
  return __builtin_fabsf(x) == __builtin_inff() ? x : y;
}
