typedef __UINT32_TYPE__ uint32_t;

// The larger of a and b.
static inline uint32_t tf_maximum_uint32(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

// The bits of x.
static inline uint32_t tf_bits_float(float x) {
  union {
    float value;
    uint32_t bits;
  } pun = {.value = x};
  return pun.bits;
}

// The value that has these bits.
static inline float tf_from_bits_float(uint32_t bits) {
  union {
    uint32_t bits;
    float value;
  } pun = {.bits = bits};
  return pun.value;
}

// The place of x among all values: -0 before +0, and every NaN after infinity.
static inline uint32_t tf_rank_nan_last_float(float x) {
  const uint32_t bits = tf_bits_float(x), sign = (uint32_t)1 << (32 - 1);
  return bits & sign ? sign + 0x7f800000u - bits : bits + 0x7f800000u + 1;
}

// The value that has this place, where NaN comes last.
static inline float tf_of_rank_nan_last_float(uint32_t rank) {
  const uint32_t bits = rank - 0x7f800000u - 1, sign = (uint32_t)1 << (32 - 1);
  return tf_from_bits_float(bits & sign ? ~bits ^ sign : bits);
}

// The sum of 32 lanes, in the first: lanes[l] += lanes[l + half] for half = 16, 8, 4, 2, 1.
static inline void tf_halve_32_float(float *lanes) {
  typedef float eight_t __attribute__((vector_size(8 * sizeof(float)), aligned(sizeof(float)), may_alias));
  typedef float four_t __attribute__((vector_size(4 * sizeof(float)), aligned(sizeof(float)), may_alias));
  typedef float two_t __attribute__((vector_size(2 * sizeof(float)), aligned(sizeof(float)), may_alias));
  for (long l = 0; l < 16; l++)
    lanes[l] += lanes[l + 16];
  *(eight_t *)lanes += *(eight_t *)(lanes + 8);
  *(four_t *)lanes += *(four_t *)(lanes + 4);
  *(two_t *)lanes += *(two_t *)(lanes + 2);
  lanes[0] += lanes[1];
}

// The sum of 64 lanes, in the first.
static inline void tf_halve_64_float(float *lanes) {
  for (long l = 0; l < 32; l++)
    lanes[l] += lanes[l + 32];
  tf_halve_32_float(lanes);
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

// to[k] = e^(from[k] - top), of what is not above top. Where all results are normal, 2^n is added to the
// exponent, without a comparison; the sizes are looked at as well, and a row with any below e^-87, or
// with NaN, is computed again. Returns twice the bits of the largest size.
static inline uint32_t tf_exp_row_float(float *restrict to, const float *restrict from, long extent, float top) {
  uint32_t largest = 0;
  for (long k = 0; k < extent; k++) {
    const float x = from[k] - top;
    const uint32_t size = tf_bits_float(x) << 1;
    largest = size > largest ? size : largest;
    const float t = __builtin_fmaf(x, 0x1.715476p+0f, 0x1.8p+23f); // n in its low bits
    const float n = t - 0x1.8p+23f;
    const float r = __builtin_fmaf(n, -0x1.7f7d1cp-20f, __builtin_fmaf(n, -0x1.62e4p-1f, x));
    to[k] = tf_from_bits_float(tf_bits_float(tf_exp_near_float(r)) + (tf_bits_float(t) << 23));
  }
  if (largest > 0x855c0000u) // twice the bits of 87
    for (long k = 0; k < extent; k++)
      to[k] = tf_exp_nonpositive_float(from[k] - top);
  return largest;
}

// The same of long rows. A function of its own has registers for all its numbers, which a kernel that
// calls it does not have beside those of its other loops.
static __attribute__((noinline)) uint32_t tf_exp_long_row_float(float *restrict to, const float *restrict from, long extent, float top) {
  return tf_exp_row_float(to, from, extent, top);
}

// row[k] = row[k] / divisor, of such exponentials, where `largest` is what was returned of them: none is
// below 2^-100, as a product with the inverse needs it that is corrected, if that is at most twice the
// bits of 69; else they are looked at, and zeros are divided so as well.
static __attribute__((noinline)) void tf_divide_exps_float(float *row, long extent, float divisor, uint32_t largest) {
  const float inverse = 1.0f / divisor, negative = -inverse;
  uint32_t least = 0xffffffffu;
  if (largest > 0x85140000u)
    for (long k = 0; k < extent; k++) {
      const uint32_t size = tf_bits_float(row[k]);
      least = size - 1 < least ? size - 1 : least;
    }
  if (divisor > 0x1p-24f && divisor < 0x1p+24f && least >= 0x0d7fffffu)
    for (long k = 0; k < extent; k++) {
      const float quotient = row[k] * inverse;
      row[k] = __builtin_fmaf(__builtin_fmaf(divisor, quotient, -row[k]), negative, quotient);
    }
  else
    for (long k = 0; k < extent; k++)
      row[k] = row[k] / divisor;
}

typedef struct tf_pool tf_pool;

// e = np.exp(x - x.max(axis=-1, keepdims=True))
// return e / e.sum(axis=-1, keepdims=True)
// [max_rank, max, subtract, e, sum_lanes, sum, out] reads 9.38 KiB, writes 9.38 KiB, 15072
//   operations
static void softmax_out(const float *restrict x, float *restrict out) {
  for (long i = 0; i < 8; i++) {
    uint32_t max_rank;
    float sum;
    max_rank = 0u;
    for (long k = 0; k < 300; k++)
      max_rank = tf_maximum_uint32(max_rank, tf_rank_nan_last_float(x[300 * i + k]));
    const float max = tf_of_rank_nan_last_float(max_rank);
    const uint32_t out_sizes = tf_exp_long_row_float(out + 300 * i, x + 300 * i, 300, max);
    float sum_lanes[64];
    for (long l = 0; l < 64; l++)
      sum_lanes[l] = 0.0f;
    for (long s = 0; s < 4; s++)
      for (long l = 0; l < 64; l++)
        sum_lanes[l] += out[300 * i + 64 * s + l];
    for (long l = 0; l < 64; l++)
      sum_lanes[l] = l < 44 ? sum_lanes[l] + out[300 * i + l + 256] : sum_lanes[l];
    tf_halve_64_float(sum_lanes);
    sum = sum_lanes[0];
    tf_divide_exps_float(out + 300 * i, 300, sum, out_sizes);
  }
}

// arrays: x float32[2400]; then the results: out float32[2400]
// scratch: 0 bytes; returns 0
int softmax(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  float *x = arrays[0];
  float *out = arrays[1];
  softmax_out(x, out);
  return 0;
}
