typedef __UINT8_TYPE__ bool8_t; // 0 or 1

typedef struct tf_pool tf_pool;

// return (x < 0).any(axis=1), np.isfinite(x).all()
// [less, out_lanes, out] reads 4.92 KiB, writes 7 B, 1701 operations
static void any_negative_out(const double *restrict x, bool8_t *restrict out) {
  for (long i = 0; i < 7; i++) {
    bool8_t out_lanes[64];
    for (long l = 0; l < 64; l++)
      out_lanes[l] = 0;
    for (long l = 0; l < 64; l++)
      out_lanes[l] = out_lanes[l] | (x[90 * i + l] < 0.0);
    for (long l = 0; l < 26; l++)
      out_lanes[l] = out_lanes[l] | (x[90 * i + l + 64] < 0.0);
    for (long l = 0; l < 32; l++)
      out_lanes[l] = out_lanes[l] | out_lanes[l + 32];
    for (long l = 0; l < 16; l++)
      out_lanes[l] = out_lanes[l] | out_lanes[l + 16];
    for (long l = 0; l < 8; l++)
      out_lanes[l] = out_lanes[l] | out_lanes[l + 8];
    for (long l = 0; l < 4; l++)
      out_lanes[l] = out_lanes[l] | out_lanes[l + 4];
    for (long l = 0; l < 2; l++)
      out_lanes[l] = out_lanes[l] | out_lanes[l + 2];
    out_lanes[0] = out_lanes[0] | out_lanes[1];
    out[i] = out_lanes[0];
  }
}

// return (x < 0).any(axis=1), np.isfinite(x).all()
// [isfinite_1, out_1_lanes, out_1] reads 4.92 KiB, writes 1 B, 1323 operations
static void any_negative_out_1(const double *restrict x, bool8_t *restrict out_1) {
  bool8_t out_1_lanes[64];
  for (long l = 0; l < 64; l++)
    out_1_lanes[l] = 1;
  for (long s = 0; s < 9; s++)
    for (long l = 0; l < 64; l++)
      out_1_lanes[l] = out_1_lanes[l] & (__builtin_fabs(x[64 * s + l]) < __builtin_inf());
  for (long l = 0; l < 54; l++)
    out_1_lanes[l] = out_1_lanes[l] & (__builtin_fabs(x[l + 576]) < __builtin_inf());
  for (long l = 0; l < 32; l++)
    out_1_lanes[l] = out_1_lanes[l] & out_1_lanes[l + 32];
  for (long l = 0; l < 16; l++)
    out_1_lanes[l] = out_1_lanes[l] & out_1_lanes[l + 16];
  for (long l = 0; l < 8; l++)
    out_1_lanes[l] = out_1_lanes[l] & out_1_lanes[l + 8];
  for (long l = 0; l < 4; l++)
    out_1_lanes[l] = out_1_lanes[l] & out_1_lanes[l + 4];
  for (long l = 0; l < 2; l++)
    out_1_lanes[l] = out_1_lanes[l] & out_1_lanes[l + 2];
  out_1_lanes[0] = out_1_lanes[0] & out_1_lanes[1];
  out_1[0] = out_1_lanes[0];
}

// arrays: x float64[630]; then the results: out bool[7], out_1 bool[1]
// scratch: 0 bytes; returns 0
int any_negative(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  double *x = arrays[0];
  bool8_t *out = arrays[1];
  bool8_t *out_1 = arrays[2];
  any_negative_out(x, out);
  any_negative_out_1(x, out_1);
  return 0;
}
