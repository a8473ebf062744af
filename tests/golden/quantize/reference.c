typedef __INT8_TYPE__ int8_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT32_TYPE__ uint32_t;

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

// The larger of a and b; NaN where one is NaN; +0 is larger than -0.
static inline float tf_maximum_float(float a, float b) {
  float first = a > b ? a : b;
  float second = b > a ? b : a; // of two zeros, first is b and second is a
  float larger = tf_from_bits_float(tf_bits_float(first) & tf_bits_float(second));
  return __builtin_isunordered(a, b) ? a + b : larger;
}

// x as an int32_t; the smallest int32_t where it does not fit, and for NaN.
static inline int32_t tf_int32_float(float x) {
  return __builtin_fabsf(x) < 2147483648.0f ? (int32_t)x : -2147483647 - 1;
}

typedef struct tf_pool tf_pool;

// scale = np.abs(x).max() / 127
// [absolute, max_lanes, max] reads 528 B, writes 4 B, 327 operations
static void quantize_max(const float *restrict x, float *restrict max) {
  float max_lanes[64];
  for (long l = 0; l < 64; l++)
    max_lanes[l] = -__builtin_inff();
  for (long s = 0; s < 2; s++)
    for (long l = 0; l < 64; l++)
      max_lanes[l] = tf_maximum_float(max_lanes[l], __builtin_fabsf(x[64 * s + l]));
  for (long l = 0; l < 4; l++)
    max_lanes[l] = tf_maximum_float(max_lanes[l], __builtin_fabsf(x[l + 128]));
  for (long l = 0; l < 32; l++)
    max_lanes[l] = tf_maximum_float(max_lanes[l], max_lanes[l + 32]);
  for (long l = 0; l < 16; l++)
    max_lanes[l] = tf_maximum_float(max_lanes[l], max_lanes[l + 16]);
  for (long l = 0; l < 8; l++)
    max_lanes[l] = tf_maximum_float(max_lanes[l], max_lanes[l + 8]);
  for (long l = 0; l < 4; l++)
    max_lanes[l] = tf_maximum_float(max_lanes[l], max_lanes[l + 4]);
  for (long l = 0; l < 2; l++)
    max_lanes[l] = tf_maximum_float(max_lanes[l], max_lanes[l + 2]);
  max_lanes[0] = tf_maximum_float(max_lanes[0], max_lanes[1]);
  max[0] = max_lanes[0];
}

// scale = np.abs(x).max() / 127
// [scale] reads 4 B, writes 4 B, 1 operation
static void quantize_scale(const float *restrict max, float *restrict scale) {
  scale[0] = max[0] / 127.0f;
}

// return np.rint(x / scale).astype(np.int8), scale
// [divide, rint_1, out] reads 532 B, writes 132 B, 264 operations
static void quantize_out(const float *restrict x, const float *restrict scale, int8_t *restrict out) {
  for (long i = 0; i < 132; i++)
    out[i] = (int8_t)tf_int32_float(__builtin_rintf(x[i] / scale[0]));
}

// arrays: x float32[132]; then the results: out int8[132], scale float32[1]
// scratch: 64 bytes; returns 0
int quantize(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)pool;
  float *x = arrays[0];
  int8_t *out = arrays[1];
  float *scale = arrays[2];
  float *max = scratch;
  quantize_max(x, max);
  quantize_scale(max, scale);
  quantize_out(x, scale, out);
  return 0;
}
