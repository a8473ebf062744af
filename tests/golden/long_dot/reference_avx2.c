typedef struct tf_pool tf_pool;

// return np.dot(x, y)
// [out_lanes, out_blocks] reads 70.3 KiB, writes 36 B, 18615 operations
static void long_dot_out_blocks(const float *restrict x, const float *restrict y, float *restrict out_blocks) {
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
    for (long l = 0; l < 32; l++)
      out_lanes[l] += out_lanes[l + 32];
    for (long l = 0; l < 16; l++)
      out_lanes[l] += out_lanes[l + 16];
    for (long l = 0; l < 8; l++)
      out_lanes[l] += out_lanes[l + 8];
    for (long l = 0; l < 4; l++)
      out_lanes[l] += out_lanes[l + 4];
    for (long l = 0; l < 2; l++)
      out_lanes[l] += out_lanes[l + 2];
    out_lanes[0] += out_lanes[1];
    out_blocks[b] = out_lanes[0];
  }
}

// return np.dot(x, y)
// [out] reads 36 B, writes 36 B, 8 operations
static void long_dot_out(float *restrict out_blocks, float *restrict out) {
  for (long b = 0; b < 4; b++)
    out_blocks[2 * b] += out_blocks[2 * b + 1];
  for (long b = 0; b < 2; b++)
    out_blocks[4 * b] += out_blocks[4 * b + 2];
  out_blocks[0] += out_blocks[4];
  out_blocks[0] += out_blocks[8];
  out[0] = out_blocks[0];
}

// arrays: x float32[9000], y float32[9000]; then the results: out float32[1]
// scratch: 64 bytes; returns 0
int long_dot(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)pool;
  float *x = arrays[0];
  float *y = arrays[1];
  float *out = arrays[2];
  float *out_blocks = scratch;
  long_dot_out_blocks(x, y, out_blocks);
  long_dot_out(out_blocks, out);
  return 0;
}
