typedef struct tf_pool tf_pool;

// windows = sliding_window_view(np.pad(image, 1), kernel.shape)
// return (windows * kernel).sum(axis=(-2, -1))
// [pad, multiply, out] reads 252 B, writes 216 B, 972 operations
static void convolution_out(const float *restrict kernel, const float *restrict image, float *restrict out) {
  {
    float out_acc = 0.0f;
    for (long l = 0; l < 3; l++)
      out_acc += 0.0f * kernel[l];
    for (long k = 1; k < 3; k++) {
      out_acc += 0.0f * kernel[3 * k];
      for (long l = 1; l < 3; l++)
        out_acc += image[9 * k + l - 10] * kernel[3 * k + l];
    }
    out[0] = out_acc;
  }
  for (long j = 1; j < 8; j++) {
    float out_acc_1 = 0.0f;
    for (long l = 0; l < 3; l++)
      out_acc_1 += 0.0f * kernel[l];
    for (long k = 1; k < 3; k++)
      for (long l = 0; l < 3; l++)
        out_acc_1 += image[9 * k + j + l - 10] * kernel[3 * k + l];
    out[j] = out_acc_1;
  }
  {
    float out_acc_2 = 0.0f;
    for (long l = 0; l < 3; l++)
      out_acc_2 += 0.0f * kernel[l];
    for (long k = 1; k < 3; k++) {
      for (long l = 0; l < 2; l++)
        out_acc_2 += image[9 * k + l - 2] * kernel[3 * k + l];
      out_acc_2 += 0.0f * kernel[3 * k + 2];
    }
    out[8] = out_acc_2;
  }
  for (long i = 1; i < 5; i++) {
    {
      float out_acc = 0.0f;
      for (long k = 0; k < 3; k++) {
        out_acc += 0.0f * kernel[3 * k];
        for (long l = 1; l < 3; l++)
          out_acc += image[9 * i + 9 * k + l - 10] * kernel[3 * k + l];
      }
      out[9 * i] = out_acc;
    }
    for (long j = 1; j < 8; j++) {
      float out_acc_1 = 0.0f;
      for (long k = 0; k < 3; k++)
        for (long l = 0; l < 3; l++)
          out_acc_1 += image[9 * i + 9 * k + j + l - 10] * kernel[3 * k + l];
      out[9 * i + j] = out_acc_1;
    }
    {
      float out_acc_2 = 0.0f;
      for (long k = 0; k < 3; k++) {
        for (long l = 0; l < 2; l++)
          out_acc_2 += image[9 * i + 9 * k + l - 2] * kernel[3 * k + l];
        out_acc_2 += 0.0f * kernel[3 * k + 2];
      }
      out[9 * i + 8] = out_acc_2;
    }
  }
  {
    float out_acc = 0.0f;
    for (long k = 0; k < 2; k++) {
      out_acc += 0.0f * kernel[3 * k];
      for (long l = 1; l < 3; l++)
        out_acc += image[9 * k + l + 35] * kernel[3 * k + l];
    }
    for (long l = 0; l < 3; l++)
      out_acc += 0.0f * kernel[l + 6];
    out[45] = out_acc;
  }
  for (long j = 1; j < 8; j++) {
    float out_acc_1 = 0.0f;
    for (long k = 0; k < 2; k++)
      for (long l = 0; l < 3; l++)
        out_acc_1 += image[9 * k + j + l + 35] * kernel[3 * k + l];
    for (long l = 0; l < 3; l++)
      out_acc_1 += 0.0f * kernel[l + 6];
    out[j + 45] = out_acc_1;
  }
  {
    float out_acc_2 = 0.0f;
    for (long k = 0; k < 2; k++) {
      for (long l = 0; l < 2; l++)
        out_acc_2 += image[9 * k + l + 43] * kernel[3 * k + l];
      out_acc_2 += 0.0f * kernel[3 * k + 2];
    }
    for (long l = 0; l < 3; l++)
      out_acc_2 += 0.0f * kernel[l + 6];
    out[53] = out_acc_2;
  }
}

int convolution(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  float *image = arrays[0];
  float *kernel = arrays[1];
  float *out = arrays[2];
  convolution_out(kernel, image, out);
  return 0;
}
