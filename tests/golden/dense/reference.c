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

typedef struct tf_pool tf_pool;

// return np.maximum(x @ weight + BIAS, 0)
// [matmul] reads 332 B, writes 80 B, 280 operations
static void dense_matmul(const float *restrict x, const float *restrict weight, float *restrict matmul) {
  for (long i = 0; i < 5; i++) {
    for (long j = 0; j < 4; j++)
      matmul[4 * i + j] = 0.0f;
    for (long j = 0; j < 4; j++) {
      matmul[4 * i + j] = __builtin_fmaf(x[7 * i], weight[j], matmul[4 * i + j]);
      matmul[4 * i + j] = __builtin_fmaf(x[7 * i + 1], weight[j + 4], matmul[4 * i + j]);
      matmul[4 * i + j] = __builtin_fmaf(x[7 * i + 2], weight[j + 8], matmul[4 * i + j]);
      matmul[4 * i + j] = __builtin_fmaf(x[7 * i + 3], weight[j + 12], matmul[4 * i + j]);
    }
    for (long j = 0; j < 4; j++) {
      matmul[4 * i + j] = __builtin_fmaf(x[7 * i + 4], weight[j + 16], matmul[4 * i + j]);
      matmul[4 * i + j] = __builtin_fmaf(x[7 * i + 5], weight[j + 20], matmul[4 * i + j]);
      matmul[4 * i + j] = __builtin_fmaf(x[7 * i + 6], weight[j + 24], matmul[4 * i + j]);
    }
  }
}

// return np.maximum(x @ weight + BIAS, 0)
// [add, out] reads 96 B, writes 80 B, 40 operations
static void dense_out(const float *restrict matmul, const float *restrict BIAS, float *restrict out) {
  for (long i = 0; i < 5; i++)
    for (long j = 0; j < 4; j++)
      out[4 * i + j] = tf_maximum_float(matmul[4 * i + j] + BIAS[j], 0.0f);
}

// arrays: x float32[35], weight float32[28], BIAS float32[4]; then the results: out float32[20]
// scratch: 128 bytes; returns 0
int dense(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)pool;
  float *x = arrays[0];
  float *weight = arrays[1];
  float *BIAS = arrays[2];
  float *out = arrays[3];
  float *matmul = scratch;
  dense_matmul(x, weight, matmul);
  dense_out(matmul, BIAS, out);
  return 0;
}
