typedef __INT8_TYPE__ int8_t;
typedef __INT32_TYPE__ int32_t;
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

// x, but +0 where its integer part is 0. gcc 12 makes trunc(x) of an integer that is converted
// back to the type of x, which has a sign where that integer is 0.
static inline float tf_zero_if_fraction_float(float x) {
  return __builtin_fabsf(x) >= 1.0f ? x : 0.0f;
}

// x as an int32_t; the smallest int32_t where it does not fit, and for NaN.
static inline int32_t tf_int32_float(float x) {
  return __builtin_fabsf(x) < 2147483648.0f ? (int32_t)tf_zero_if_fraction_float(x) : -2147483647 - 1;
}

typedef struct tf_pool tf_pool;

// scale = np.abs(x).max() / 127
// return np.rint(x / scale).astype(np.int8), scale
// [absolute, max_rank, max, scale, divide, rint_1, out] reads 532 B, writes 136 B, 662 operations
static void quantize_out(const float *restrict x, float *restrict scale, int8_t *restrict out) {
  uint32_t max_rank = 0u;
  for (long k = 0; k < 132; k++)
    max_rank = tf_maximum_uint32(max_rank, tf_rank_nan_last_float(__builtin_fabsf(x[k])));
  scale[0] = tf_of_rank_nan_last_float(max_rank) / 127.0f;
  for (long i = 0; i < 132; i++)
    out[i] = (int8_t)tf_int32_float(__builtin_rintf(x[i] / scale[0]));
}

// arrays: x float32[132]; then the results: out int8[132], scale float32[1]
// scratch: 0 bytes; returns 0
int quantize(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  float *x = arrays[0];
  int8_t *out = arrays[1];
  float *scale = arrays[2];
  quantize_out(x, scale, out);
  return 0;
}
