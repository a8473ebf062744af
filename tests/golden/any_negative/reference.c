typedef __UINT8_TYPE__ bool8_t; // 0 or 1

typedef struct tf_pool tf_pool;

// return (x < 0).any(axis=1), np.isfinite(x).all()
// [less, out, isfinite_1, out_1] reads 4.92 KiB, writes 8 B, 2520 operations
static void any_negative_out_1(const double *restrict x, bool8_t *restrict out, bool8_t *restrict out_1) {
  for (long i = 0; i < 7; i++) {
    bool8_t out_acc = 0;
    for (long k = 0; k < 90; k++)
      out_acc = out_acc | (x[90 * i + k] < 0.0);
    out[i] = out_acc;
  }
  bool8_t out_1_acc = 1;
  for (long k = 0; k < 630; k++)
    out_1_acc = out_1_acc & (__builtin_fabs(x[k]) < __builtin_inf());
  out_1[0] = out_1_acc;
}

// arrays: x float64[630]; then the results: out bool[7], out_1 bool[1]
// scratch: 0 bytes; returns 0
int any_negative(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  double *x = arrays[0];
  bool8_t *out = arrays[1];
  bool8_t *out_1 = arrays[2];
  any_negative_out_1(x, out, out_1);
  return 0;
}
