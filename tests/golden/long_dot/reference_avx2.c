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

// return np.dot(x, y)
// [out_lanes, out_blocks, out] reads 70.3 KiB, writes 4 B, 18623 operations
static void long_dot_out(const float *restrict x, const float *restrict y, float *restrict out) {
  float out_blocks[9];
  for (long b = 0; b < 9; b++) {
    float out_lanes[64];
    if (b < 8) {
      for (long l = 0; l < 64; l++)
        out_lanes[l] = 0.0f;
      for (long s = 0; s < 16; s++)
        for (long l = 0; l < 64; l++)
          out_lanes[l] = __builtin_fmaf(x[1024 * b + 64 * s + l], y[1024 * b + 64 * s + l], out_lanes[l]);
    } else {
      for (long l = 0; l < 64; l++)
        out_lanes[l] = 0.0f;
      for (long s = 0; s < 12; s++)
        for (long l = 0; l < 64; l++)
          out_lanes[l] = __builtin_fmaf(x[64 * s + l + 8192], y[64 * s + l + 8192], out_lanes[l]);
      for (long l = 0; l < 64; l++)
        out_lanes[l] = l < 40 ? __builtin_fmaf(x[l + 8960], y[l + 8960], out_lanes[l]) : out_lanes[l];
    }
    tf_halve_64_float(out_lanes);
    out_blocks[b] = out_lanes[0];
  }
  for (long b = 0; b < 4; b++)
    out_blocks[2 * b] += out_blocks[2 * b + 1];
  for (long b = 0; b < 2; b++)
    out_blocks[4 * b] += out_blocks[4 * b + 2];
  out_blocks[0] += out_blocks[4];
  out_blocks[0] += out_blocks[8];
  out[0] = out_blocks[0];
}

// arrays: x float32[9000], y float32[9000]; then the results: out float32[1]
// scratch: 0 bytes; returns 0
int long_dot(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  float *x = arrays[0];
  float *y = arrays[1];
  float *out = arrays[2];
  long_dot_out(x, y, out);
  return 0;
}
