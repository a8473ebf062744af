typedef __UINT32_TYPE__ uint32_t;

// The larger of a and b.
static inline uint32_t tf_maximum_uint32(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

// The smaller of a and b.
static inline uint32_t tf_minimum_uint32(uint32_t a, uint32_t b) {
  return a < b ? a : b;
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

// The place of x among all values: -0 before +0, and every NaN before negative infinity.
static inline uint32_t tf_rank_nan_first_float(float x) {
  const uint32_t bits = tf_bits_float(x), sign = (uint32_t)1 << (32 - 1);
  return bits & sign ? sign - 0x7f800000u - 2 - bits : bits - 0x7f800000u - 1;
}

// The value that has this place, where NaN comes last.
static inline float tf_of_rank_nan_last_float(uint32_t rank) {
  const uint32_t bits = rank - 0x7f800000u - 1, sign = (uint32_t)1 << (32 - 1);
  return tf_from_bits_float(bits & sign ? ~bits ^ sign : bits);
}

// The value that has this place, where NaN comes first.
static inline float tf_of_rank_nan_first_float(uint32_t rank) {
  const uint32_t bits = rank + 0x7f800000u + 1, sign = (uint32_t)1 << (32 - 1);
  return tf_from_bits_float(bits & sign ? ~bits ^ sign : bits);
}

typedef struct tf_pool tf_pool;

// x = x - x.min()
// x = x / x.max()
// [min_rank, min, x_1, max_rank, max, x_2] reads 200 B, writes 200 B, 353 operations
static void rebound_x_2(const float *restrict x, float *restrict x_2) {
  uint32_t min_rank;
  uint32_t max_rank;
  min_rank = 4294967295u;
  for (long k = 0; k < 50; k++)
    min_rank = tf_minimum_uint32(min_rank, tf_rank_nan_first_float(x[k]));
  max_rank = 0u;
  const float min = tf_of_rank_nan_first_float(min_rank);
  for (long k = 0; k < 50; k++) {
    const float x_1 = x[k] - min;
    max_rank = tf_maximum_uint32(max_rank, tf_rank_nan_last_float(x_1));
  }
  const float min_1 = tf_of_rank_nan_first_float(min_rank);
  const float max = tf_of_rank_nan_last_float(max_rank);
  for (long i = 0; i < 50; i++) {
    const float x_1 = x[i] - min_1;
    x_2[i] = x_1 / max;
  }
}

// arrays: x float32[50]; then the results: x_2 float32[50]
// scratch: 0 bytes; returns 0
int rebound(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  float *x = arrays[0];
  float *x_2 = arrays[1];
  rebound_x_2(x, x_2);
  return 0;
}
