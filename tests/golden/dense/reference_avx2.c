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
// [matmul, add, out] reads 268 B, writes 80 B, 320 operations
static void dense_out(const float *restrict x, const float *restrict weight, const float *restrict BIAS, float *restrict out) {
  for (long i = 0; i < 5; i++) {
    float matmul[4];
    for (long j = 0; j < 4; j++) {
      float matmul_acc = 0.0f;
      matmul_acc = __builtin_fmaf(x[7 * i], weight[j], matmul_acc);
      matmul_acc = __builtin_fmaf(x[7 * i + 1], weight[j + 4], matmul_acc);
      matmul_acc = __builtin_fmaf(x[7 * i + 2], weight[j + 8], matmul_acc);
      matmul_acc = __builtin_fmaf(x[7 * i + 3], weight[j + 12], matmul_acc);
      matmul_acc = __builtin_fmaf(x[7 * i + 4], weight[j + 16], matmul_acc);
      matmul_acc = __builtin_fmaf(x[7 * i + 5], weight[j + 20], matmul_acc);
      matmul_acc = __builtin_fmaf(x[7 * i + 6], weight[j + 24], matmul_acc);
      matmul[j] = matmul_acc;
    }
    for (long j = 0; j < 4; j++)
      out[4 * i + j] = tf_maximum_float(matmul[j] + BIAS[j], 0.0f);
  }
}

// arrays: x float32[35], weight float32[28], BIAS float32[4]; then the results: out float32[20]
// scratch: 0 bytes; returns 0
int dense(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  float *x = arrays[0];
  float *weight = arrays[1];
  float *BIAS = arrays[2];
  float *out = arrays[3];
  dense_out(x, weight, BIAS, out);
  return 0;
}
