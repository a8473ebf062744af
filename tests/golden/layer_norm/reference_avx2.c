typedef struct tf_pool tf_pool;

// mean = x.mean(axis=-1, keepdims=True)
// [sum_lanes, sum] reads 1 KiB, writes 16 B, 508 operations
static void layer_norm_sum(const float *restrict x, float *restrict sum) {
  for (long i = 0; i < 4; i++) {
    float sum_lanes[64];
    for (long l = 0; l < 64; l++) {
      float sum_lanes_acc = 0.0f;
      sum_lanes_acc += x[64 * i + l];
      sum_lanes[l] = sum_lanes_acc;
    }
    for (long l = 0; l < 32; l++)
      sum_lanes[l] += sum_lanes[l + 32];
    for (long l = 0; l < 16; l++)
      sum_lanes[l] += sum_lanes[l + 16];
    for (long l = 0; l < 8; l++)
      sum_lanes[l] += sum_lanes[l + 8];
    for (long l = 0; l < 4; l++)
      sum_lanes[l] += sum_lanes[l + 4];
    for (long l = 0; l < 2; l++)
      sum_lanes[l] += sum_lanes[l + 2];
    sum_lanes[0] += sum_lanes[1];
    sum[i] = sum_lanes[0];
  }
}

// mean = x.mean(axis=-1, keepdims=True)
// centred = x - mean
// [mean, centred] reads 1.02 KiB, writes 1 KiB, 260 operations
static void layer_norm_centred(const float *restrict sum, const float *restrict x, float *restrict centred) {
  for (long i = 0; i < 4; i++) {
    const float mean = sum[i] / 64.0f;
    for (long j = 0; j < 64; j++)
      centred[64 * i + j] = x[64 * i + j] - mean;
  }
}

// variance = (centred * centred).mean(axis=-1, keepdims=True)
// [multiply, sum_1_lanes, sum_1] reads 1 KiB, writes 16 B, 764 operations
static void layer_norm_sum_1(const float *restrict centred, float *restrict sum_1) {
  for (long i = 0; i < 4; i++) {
    float sum_1_lanes[64];
    for (long l = 0; l < 64; l++) {
      float sum_1_lanes_acc = 0.0f;
      sum_1_lanes_acc += centred[64 * i + l] * centred[64 * i + l];
      sum_1_lanes[l] = sum_1_lanes_acc;
    }
    for (long l = 0; l < 32; l++)
      sum_1_lanes[l] += sum_1_lanes[l + 32];
    for (long l = 0; l < 16; l++)
      sum_1_lanes[l] += sum_1_lanes[l + 16];
    for (long l = 0; l < 8; l++)
      sum_1_lanes[l] += sum_1_lanes[l + 8];
    for (long l = 0; l < 4; l++)
      sum_1_lanes[l] += sum_1_lanes[l + 4];
    for (long l = 0; l < 2; l++)
      sum_1_lanes[l] += sum_1_lanes[l + 2];
    sum_1_lanes[0] += sum_1_lanes[1];
    sum_1[i] = sum_1_lanes[0];
  }
}

// variance = (centred * centred).mean(axis=-1, keepdims=True)
// return centred / np.sqrt(variance + np.float32(1e-5)) * weight + bias
// [variance, add, sqrt_1, divide, multiply_1, out] reads 1.52 KiB, writes 1 KiB, 1284 operations
static void layer_norm_out(const float *restrict sum_1, const float *restrict centred, const float *restrict weight, const float *restrict bias, float *restrict out) {
  for (long i = 0; i < 4; i++) {
    const float variance = sum_1[i] / 64.0f;
    for (long j = 0; j < 64; j++) {
      const float multiply_1 = centred[64 * i + j] / __builtin_sqrtf(variance + 1e-05f) * weight[j];
      out[64 * i + j] = multiply_1 + bias[j];
    }
  }
}

// arrays: x float32[256], weight float32[64], bias float32[64]; then the results: out float32[256]
// scratch: 1088 bytes; returns 0
int layer_norm(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)pool;
  float *x = arrays[0];
  float *weight = arrays[1];
  float *bias = arrays[2];
  float *out = arrays[3];
  float *sum = scratch;
  float *centred = (void *)((char *)scratch + 64);
  float *sum_1 = scratch;
  layer_norm_sum(x, sum);
  layer_norm_centred(sum, x, centred);
  layer_norm_sum_1(centred, sum_1);
  layer_norm_out(sum_1, centred, weight, bias, out);
  return 0;
}
