typedef struct tf_pool tf_pool;

// windows = sliding_window_view(np.pad(image, 1), kernel.shape)
// return (windows * kernel).sum(axis=(-2, -1))
// [pad, multiply, out] reads 252 B, writes 216 B, 972 operations
static void convolution_out(const float *restrict image, const float *restrict kernel, float *restrict out) {
  float pad[88];
  for (long j = 0; j < 11; j++)
    pad[j] = 0.0f;
  for (long i = 1; i < 7; i++) {
    pad[11 * i] = 0.0f;
    for (long j = 1; j < 10; j++)
      pad[11 * i + j] = image[9 * i + j - 10];
    pad[11 * i + 10] = 0.0f;
  }
  for (long j = 0; j < 11; j++)
    pad[j + 77] = 0.0f;
  for (long i = 0; i < 6; i++)
    for (long j = 0; j < 9; j++) {
      float out_acc = 0.0f;
      for (long k = 0; k < 3; k++)
        for (long l = 0; l < 3; l++)
          out_acc += pad[11 * i + 11 * k + j + l] * kernel[3 * k + l];
      out[9 * i + j] = out_acc;
    }
}

// arrays: image float32[54], kernel float32[9]; then the results: out float32[54]
// scratch: 0 bytes; returns 0
int convolution(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  float *image = arrays[0];
  float *kernel = arrays[1];
  float *out = arrays[2];
  convolution_out(image, kernel, out);
  return 0;
}
