typedef struct tf_pool tf_pool;

// return alpha * x + beta * y
// [cast, multiply, cast_1, multiply_1, out] reads 816 B, writes 400 B, 300 operations
static void scaled_sum_out(const double *restrict alpha, const double *restrict beta, const float *restrict x, const float *restrict y, float *restrict out) {
  const float cast = (float)alpha[0];
  const float cast_1 = (float)beta[0];
  for (long i = 0; i < 100; i++)
    out[i] = cast * x[i] + cast_1 * y[i];
}

// arrays: x float32[100], y float32[100], alpha float64[1], beta float64[1]; then the results:
//   out float32[100]
// scratch: 0 bytes; returns 0
int scaled_sum(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  float *x = arrays[0];
  float *y = arrays[1];
  double *alpha = arrays[2];
  double *beta = arrays[3];
  float *out = arrays[4];
  scaled_sum_out(alpha, beta, x, y, out);
  return 0;
}
