typedef struct tf_pool tf_pool;

// return (x.T + y).reshape(2, -1)[:, ::-3]
// [add, out] reads 128 B, writes 64 B, 8 operations
static void transposed_sum_out(const double *restrict x, const double *restrict y, double *restrict out) {
  for (long i = 0; i < 2; i++)
    for (long j = 0; j < 4; j++)
      out[4 * i + j] = x[12 * ((-j + 3) % 2) + 2 * i + (-j + 3) / 2 + 8] + y[12 * i - 3 * j + 11];
}

// arrays: x float64[24], y float64[24]; then the results: out float64[8]
// scratch: 0 bytes; returns 0
int transposed_sum(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  double *x = arrays[0];
  double *y = arrays[1];
  double *out = arrays[2];
  transposed_sum_out(x, y, out);
  return 0;
}
