typedef struct tf_pool tf_pool;

// return (x + x.T) / 2
// [add, out] reads 200 B, writes 200 B, 50 operations
static void symmetric_out(const double *restrict x, double *restrict out) {
  for (long i = 0; i < 5; i++)
    for (long j = 0; j < 5; j++)
      out[5 * i + j] = (x[5 * i + j] + x[5 * j + i]) / 2.0;
}

// arrays: x float64[25]; then the results: out float64[25]
// scratch: 0 bytes; returns 0
int symmetric(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  double *x = arrays[0];
  double *out = arrays[1];
  symmetric_out(x, out);
  return 0;
}
