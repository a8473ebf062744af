typedef __INT64_TYPE__ int64_t;
typedef __UINT32_TYPE__ uint32_t;

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

// The smaller of a and b; NaN where one is NaN; -0 is smaller than +0.
static inline float tf_minimum_float(float a, float b) {
  float first = a < b ? a : b;
  float second = b < a ? b : a; // of two zeros, first is b and second is a
  float smaller = tf_from_bits_float(tf_bits_float(first) | tf_bits_float(second));
  return __builtin_isunordered(a, b) ? a + b : smaller;
}

// x * x.
static inline float tf_square_float(float x) {
  return x * x;
}

typedef struct tf_pool tf_pool;

// squares = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1)
// [subtract, square, squares] reads 120 B, writes 96 B, 216 operations
static void nearest_squares(const float *restrict points, const float *restrict centres, float *restrict squares) {
  for (long i = 0; i < 6; i++)
    for (long j = 0; j < 4; j++) {
      float squares_acc = 0.0f;
      for (long k = 0; k < 3; k++)
        squares_acc += tf_square_float(points[3 * i + k] - centres[3 * j + k]);
      squares[4 * i + j] = squares_acc;
    }
}

// return squares.argmin(axis=1)
// [out_min] reads 96 B, writes 24 B, 24 operations
static void nearest_out_min(const float *restrict squares, float *restrict out_min) {
  for (long i = 0; i < 6; i++) {
    float out_min_acc = __builtin_inff();
    for (long k = 0; k < 4; k++)
      out_min_acc = tf_minimum_float(out_min_acc, squares[4 * i + k]);
    out_min[i] = out_min_acc;
  }
}

// return squares.argmin(axis=1)
// [out] reads 120 B, writes 48 B, 96 operations
static void nearest_out(const float *restrict squares, const float *restrict out_min, int64_t *restrict out) {
  for (long i = 0; i < 6; i++) {
    int64_t out_acc = 4;
    for (long k = 0; k < 4; k++)
      out_acc = tf_minimum_int64(out_acc, ((squares[4 * i + k] == out_min[i]) | (squares[4 * i + k] != squares[4 * i + k])) ? k : 4);
    out[i] = out_acc;
  }
}

// arrays: points float32[18], centres float32[12]; then the results: out int64[6]
// scratch: 192 bytes; returns 0
int nearest(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)pool;
  float *points = arrays[0];
  float *centres = arrays[1];
  int64_t *out = arrays[2];
  float *squares = scratch;
  float *out_min = (void *)((char *)scratch + 128);
  nearest_squares(points, centres, squares);
  nearest_out_min(squares, out_min);
  nearest_out(squares, out_min, out);
  return 0;
}
