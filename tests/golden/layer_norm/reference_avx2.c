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

typedef struct tf_pool tf_pool;

// mean = x.mean(axis=-1, keepdims=True)
// centred = x - mean
// variance = (centred * centred).mean(axis=-1, keepdims=True)
// return centred / np.sqrt(variance + np.float32(1e-5)) * weight + bias
// [sum_lanes, sum, mean, centred, multiply, sum_1_lanes, sum_1, variance, ... and 5 more] reads 1.5
//   KiB, writes 1 KiB, 2568 operations
static void layer_norm_out(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict out) {
  for (long i = 0; i < 4; i++) {
    float sum;
    float mean;
    float sum_1;
    float sum_lanes[64];
    for (long l = 0; l < 64; l++) {
      float sum_lanes_acc = 0.0f;
      sum_lanes_acc += x[64 * i + l];
      sum_lanes[l] = sum_lanes_acc;
    }
    tf_halve_64_float(sum_lanes);
    sum = sum_lanes[0];
    mean = sum / 64.0f;
    float sum_1_lanes[64];
    for (long l = 0; l < 64; l++) {
      float sum_1_lanes_acc = 0.0f;
      const float centred = x[64 * i + l] - mean;
      sum_1_lanes_acc += centred * centred;
      sum_1_lanes[l] = sum_1_lanes_acc;
    }
    tf_halve_64_float(sum_1_lanes);
    sum_1 = sum_1_lanes[0];
    const float variance = sum_1 / 64.0f;
    const float add = variance + 1e-05f;
    const float sqrt_1 = __builtin_sqrtf(add);
    for (long j = 0; j < 64; j++) {
      const float centred = x[64 * i + j] - mean;
      out[64 * i + j] = centred / sqrt_1 * weight[j] + bias[j];
    }
  }
}

// arrays: x float32[256], weight float32[64], bias float32[64]; then the results: out float32[256]
// scratch: 0 bytes; returns 0
int layer_norm(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  float *x = arrays[0];
  float *weight = arrays[1];
  float *bias = arrays[2];
  float *out = arrays[3];
  layer_norm_out(x, weight, bias, out);
  return 0;
}
