typedef struct tf_pool tf_pool;

// return np.abs(x[:, None] - y)
// [subtract, out] reads 120 B, writes 432 B, 108 operations
static void outer_difference_out(const double *restrict x, const double *restrict y, double *restrict out) {
  for (long i = 0; i < 6; i++)
    for (long j = 0; j < 9; j++)
      out[9 * i + j] = __builtin_fabs(x[i] - y[j]);
}

// arrays: x float64[6], y float64[9]; then the results: out float64[54]
// scratch: 0 bytes; returns 0
int outer_difference(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  double *x = arrays[0];
  double *y = arrays[1];
  double *out = arrays[2];
  outer_difference_out(x, y, out);
  return 0;
}
