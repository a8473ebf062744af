typedef __INT64_TYPE__ int64_t;
typedef __UINT32_TYPE__ uint32_t;

// The smaller of a and b.
static inline uint32_t tf_minimum_uint32(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

// The smaller of a and b.
static inline int64_t tf_minimum_int64(int64_t a, int64_t b) {
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

// The place of x among all values: -0 before +0, and every NaN before negative infinity.
static inline uint32_t tf_rank_nan_first_float(float x) {
  const uint32_t bits = tf_bits_float(x), sign = (uint32_t)1 << (32 - 1);
  return bits & sign ? sign - 0x7f800000u - 2 - bits : bits - 0x7f800000u - 1;
}

// The value that has this place, where NaN comes first.
static inline float tf_of_rank_nan_first_float(uint32_t rank) {
  const uint32_t bits = rank + 0x7f800000u + 1, sign = (uint32_t)1 << (32 - 1);
  return tf_from_bits_float(bits & sign ? ~bits ^ sign : bits);
}

// x * x.
static inline float tf_square_float(float x) {
  return x * x;
}

typedef struct tf_pool tf_pool;

// squares = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1)
// return squares.argmin(axis=1)
// [subtract, square, squares, out_min_rank, out_min, out] reads 120 B, writes 48 B, 366 operations
static void nearest_out(const float *restrict points, const float *restrict centres, int64_t *restrict out) {
  for (long i = 0; i < 6; i++) {
    float squares[4];
    uint32_t out_min_rank;
    for (long j = 0; j < 4; j++) {
      float squares_acc = 0.0f;
      for (long k = 0; k < 3; k++)
        squares_acc += tf_square_float(points[3 * i + k] - centres[3 * j + k]);
      squares[j] = squares_acc;
    }
    out_min_rank = 4294967295u;
    for (long k = 0; k < 4; k++)
      out_min_rank = tf_minimum_uint32(out_min_rank, tf_rank_nan_first_float(squares[k]));
    int64_t out_acc = 4;
    const float out_min = tf_of_rank_nan_first_float(out_min_rank);
    for (long k = 0; k < 4; k++)
      out_acc = tf_minimum_int64(out_acc, ((squares[k] == out_min) | (squares[k] != squares[k])) ? k : 4);
    out[i] = out_acc;
  }
}

// arrays: points float32[18], centres float32[12]; then the results: out int64[6]
// scratch: 0 bytes; returns 0
int nearest(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  float *points = arrays[0];
  float *centres = arrays[1];
  int64_t *out = arrays[2];
  nearest_out(points, centres, out);
  return 0;
}
