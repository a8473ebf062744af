typedef __UINT8_TYPE__ bool8_t; // 0 or 1
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
// for gcc, which takes some orders of eight doubles for others
#if defined(__AVX512F__) && !defined(__clang__)
#define tf_pieces __attribute__((noinline, target("prefer-vector-width=256")))
#else
#define tf_pieces
#endif
// for gcc, which does not move instructions before it gives them registers
#if defined(__GNUC__) && !defined(__clang__)
#define tf_interleaved __attribute__((optimize("schedule-insns", "no-tree-pre")))
#else
#define tf_interleaved
#endif

// The bits of x.
static inline uint64_t tf_bits_double(double x) {
  union {
    double value;
    uint64_t bits;
  } pun = {.value = x};
  return pun.bits;
}

// The value that has these bits.
static inline double tf_from_bits_double(uint64_t bits) {
  union {
    uint64_t bits;
    double value;
  } pun = {.bits = bits};
  return pun.value;
}

// chosen where the condition holds, else other: by their bits. Both are loaded before, since gcc 12
// mixes up loads behind several conditions, in one sum or in steps of a loop that it writes out.
static inline double tf_select_double(bool8_t condition, double chosen, double other) {
  uint64_t mask = -(uint64_t)condition;
  return tf_from_bits_double((tf_bits_double(chosen) & mask) | (tf_bits_double(other) & ~mask));
}

// -x by its sign bit. gcc 12 makes -(a * b) - c of -fma(a, b, c): +0 instead of -0 where that is 0.
static inline double tf_negative_double(double x) {
  return tf_from_bits_double(tf_bits_double(x) ^ (uint64_t)1 << (64 - 1));
}

// The sum of 32 lanes, in the first: lanes[l] += lanes[l + half] for half = 16, 8, 4, 2, 1.
static inline void tf_halve_32_double(double *lanes) {
  typedef double eight_t __attribute__((vector_size(8 * sizeof(double)), aligned(sizeof(double)), may_alias));
  typedef double four_t __attribute__((vector_size(4 * sizeof(double)), aligned(sizeof(double)), may_alias));
  typedef double two_t __attribute__((vector_size(2 * sizeof(double)), aligned(sizeof(double)), may_alias));
  for (long l = 0; l < 16; l++)
    lanes[l] += lanes[l + 16];
  *(eight_t *)lanes += *(eight_t *)(lanes + 8);
  *(four_t *)lanes += *(four_t *)(lanes + 4);
  *(two_t *)lanes += *(two_t *)(lanes + 2);
  lanes[0] += lanes[1];
}

// The sum of 64 lanes, in the first.
static inline void tf_halve_64_double(double *lanes) {
  for (long l = 0; l < 32; l++)
    lanes[l] += lanes[l + 32];
  tf_halve_32_double(lanes);
}

// (1 + p) * 2^n likewise.
static inline double tf_scaled_from_one_double(double p, uint64_t bits) {
  uint64_t half = bits >> 1;
  double scale = tf_from_bits_double((bits - half) << 52);
  return __builtin_fma(p, scale, scale) * tf_from_bits_double(half << 52);
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

typedef struct tf_pool tf_pool;

// turned = z * np.exp(1j * turn)
// return np.abs(turned), turned.conj() @ z
// [multiply, negative, fma_1, multiply_1, fma_2, greater, subtract, select, ... and 40 more] reads
//   3.91 KiB, writes 2.36 KiB, 5136 operations
static tf_pieces tf_interleaved void phasors_out_1(const double *restrict turn, const double *restrict z, double *restrict turned_real, double *restrict turned_imag, double *restrict out, double *restrict out_1) {
  double matmul;
  double matmul_1;
  double matmul_2;
  double matmul_3;
  const double multiply = 1.0 * 0.0;
  const double negative = tf_negative_double(multiply);
  {
    uint64_t large = 0;
    for (long i = 0; i < 100; i++)
      large |= tf_is_large_angle_double(__builtin_fma(0.0, 0.0, 1.0 * turn[i]));
    if (__builtin_expect(large, 0))
      for (long i = 0; i < 100; i++) {
        double fma_1;
        double fma_2;
        double exp_1;
        bool8_t logical_and;
        double select_4;
        double select_6;
        fma_1 = __builtin_fma(0.0, turn[i], negative);
        fma_2 = __builtin_fma(0.0, 0.0, 1.0 * turn[i]);
        const bool8_t greater = fma_1 > 709.0;
        const double subtract = fma_1 - 709.0;
        const double select = tf_select_double(greater, subtract, fma_1);
        exp_1 = tf_exp_double(select);
        const bool8_t equal_1 = fma_1 == (-__builtin_inf());
        const bool8_t isfinite_1 = __builtin_fabs(fma_2) < __builtin_inf();
        const bool8_t logical_not = !isfinite_1;
        logical_and = equal_1 & logical_not;
        const bool8_t equal_2 = fma_1 == __builtin_inf();
        const bool8_t isfinite_1_1 = __builtin_fabs(fma_2) < __builtin_inf();
        const bool8_t logical_not_1 = !isfinite_1_1;
        const bool8_t logical_and_1 = equal_2 & logical_not_1;
        const bool8_t equal = fma_2 == 0.0;
        const bool8_t greater_1 = fma_1 > 709.0;
        const double select_1 = greater_1 ? 8.218407461554972e+307 : 1.0;
        const double multiply_6 = exp_1 * select_1;
        const double cos_1 = tf_cos_double(fma_2);
        const double multiply_2 = exp_1 * cos_1;
        const double multiply_3 = multiply_2 * select_1;
        const double select_2 = equal ? multiply_6 : multiply_3;
        const double select_3 = logical_and_1 ? __builtin_inf() : select_2;
        select_4 = logical_and ? 0.0 : select_3;
        const double copysign_1 = __builtin_copysign(0.0, fma_2);
        const bool8_t equal_3 = fma_2 == 0.0;
        const double sin_1 = tf_sin_double(fma_2);
        const double multiply_4 = exp_1 * sin_1;
        const bool8_t greater_2 = fma_1 > 709.0;
        const double select_1_1 = greater_2 ? 8.218407461554972e+307 : 1.0;
        const double multiply_5 = multiply_4 * select_1_1;
        const double select_5 = tf_select_double(equal_3, fma_2, multiply_5);
        select_6 = logical_and ? copysign_1 : select_5;
        turned_real[i] = __builtin_fma(z[2 * i], select_4, tf_negative_double(z[2 * i + 1] * select_6));
        turned_imag[i] = __builtin_fma(z[2 * i], select_6, z[2 * i + 1] * select_4);
        out[i] = tf_hypot_double(turned_real[i], turned_imag[i]);
      }
    else
      for (long i = 0; i < 100; i++) {
        double fma_1;
        double fma_2;
        double exp_1;
        bool8_t logical_and;
        double select_4;
        double select_6;
        fma_1 = __builtin_fma(0.0, turn[i], negative);
        fma_2 = __builtin_fma(0.0, 0.0, 1.0 * turn[i]);
        const bool8_t greater = fma_1 > 709.0;
        const double subtract = fma_1 - 709.0;
        const double select = tf_select_double(greater, subtract, fma_1);
        exp_1 = tf_exp_double(select);
        const bool8_t equal_1 = fma_1 == (-__builtin_inf());
        const bool8_t isfinite_1 = __builtin_fabs(fma_2) < __builtin_inf();
        const bool8_t logical_not = !isfinite_1;
        logical_and = equal_1 & logical_not;
        const bool8_t equal_2 = fma_1 == __builtin_inf();
        const bool8_t isfinite_1_1 = __builtin_fabs(fma_2) < __builtin_inf();
        const bool8_t logical_not_1 = !isfinite_1_1;
        const bool8_t logical_and_1 = equal_2 & logical_not_1;
        const bool8_t equal = fma_2 == 0.0;
        const bool8_t greater_1 = fma_1 > 709.0;
        const double select_1 = greater_1 ? 8.218407461554972e+307 : 1.0;
        const double multiply_6 = exp_1 * select_1;
        const double cos_1 = tf_cos_small_double(fma_2);
        const double multiply_2 = exp_1 * cos_1;
        const double multiply_3 = multiply_2 * select_1;
        const double select_2 = equal ? multiply_6 : multiply_3;
        const double select_3 = logical_and_1 ? __builtin_inf() : select_2;
        select_4 = logical_and ? 0.0 : select_3;
        const double copysign_1 = __builtin_copysign(0.0, fma_2);
        const bool8_t equal_3 = fma_2 == 0.0;
        const double sin_1 = tf_sin_small_double(fma_2);
        const double multiply_4 = exp_1 * sin_1;
        const bool8_t greater_2 = fma_1 > 709.0;
        const double select_1_1 = greater_2 ? 8.218407461554972e+307 : 1.0;
        const double multiply_5 = multiply_4 * select_1_1;
        const double select_5 = tf_select_double(equal_3, fma_2, multiply_5);
        select_6 = logical_and ? copysign_1 : select_5;
        turned_real[i] = __builtin_fma(z[2 * i], select_4, tf_negative_double(z[2 * i + 1] * select_6));
        turned_imag[i] = __builtin_fma(z[2 * i], select_6, z[2 * i + 1] * select_4);
        out[i] = tf_hypot_double(turned_real[i], turned_imag[i]);
      }
  }
  double matmul_lanes[64];
  for (long l = 0; l < 64; l++)
    matmul_lanes[l] = 0.0;
  for (long l = 0; l < 64; l++)
    matmul_lanes[l] = __builtin_fma(turned_real[l], z[2 * l], matmul_lanes[l]);
  for (long l = 0; l < 64; l++)
    matmul_lanes[l] = l < 36 ? __builtin_fma(turned_real[l + 64], z[2 * l + 128], matmul_lanes[l]) : matmul_lanes[l];
  tf_halve_64_double(matmul_lanes);
  matmul = matmul_lanes[0];
  double matmul_1_lanes[64];
  for (long l = 0; l < 64; l++)
    matmul_1_lanes[l] = 0.0;
  for (long l = 0; l < 64; l++)
    matmul_1_lanes[l] = __builtin_fma(tf_negative_double(turned_imag[l]), z[2 * l + 1], matmul_1_lanes[l]);
  for (long l = 0; l < 64; l++)
    matmul_1_lanes[l] = l < 36 ? __builtin_fma(tf_negative_double(turned_imag[l + 64]), z[2 * l + 129], matmul_1_lanes[l]) : matmul_1_lanes[l];
  tf_halve_64_double(matmul_1_lanes);
  matmul_1 = matmul_1_lanes[0];
  double matmul_2_lanes[64];
  for (long l = 0; l < 64; l++)
    matmul_2_lanes[l] = 0.0;
  for (long l = 0; l < 64; l++)
    matmul_2_lanes[l] = __builtin_fma(turned_real[l], z[2 * l + 1], matmul_2_lanes[l]);
  for (long l = 0; l < 64; l++)
    matmul_2_lanes[l] = l < 36 ? __builtin_fma(turned_real[l + 64], z[2 * l + 129], matmul_2_lanes[l]) : matmul_2_lanes[l];
  tf_halve_64_double(matmul_2_lanes);
  matmul_2 = matmul_2_lanes[0];
  double matmul_3_lanes[64];
  for (long l = 0; l < 64; l++)
    matmul_3_lanes[l] = 0.0;
  for (long l = 0; l < 64; l++)
    matmul_3_lanes[l] = __builtin_fma(tf_negative_double(turned_imag[l]), z[2 * l], matmul_3_lanes[l]);
  for (long l = 0; l < 64; l++)
    matmul_3_lanes[l] = l < 36 ? __builtin_fma(tf_negative_double(turned_imag[l + 64]), z[2 * l + 128], matmul_3_lanes[l]) : matmul_3_lanes[l];
  tf_halve_64_double(matmul_3_lanes);
  matmul_3 = matmul_3_lanes[0];
  out_1[0] = matmul - matmul_1;
  out_1[1] = matmul_2 + matmul_3;
}

// arrays: z float64[200], turn float64[100]; then the results: out float64[100], out_1 float64[2]
// scratch: 1664 bytes; returns 0
int phasors(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)pool;
  double *z = arrays[0];
  double *turn = arrays[1];
  double *out = arrays[2];
  double *out_1 = arrays[3];
  double *turned_real = scratch;
  double *turned_imag = (void *)((char *)scratch + 832);
  phasors_out_1(turn, z, turned_real, turned_imag, out, out_1);
  return 0;
}
