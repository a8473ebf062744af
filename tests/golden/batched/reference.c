typedef struct tf_pool tf_pool;

// return np.einsum("bij,bjk->bik", x, y)
// [out] reads 512 B, writes 240 B, 240 operations
static void batched_out(const double *restrict x, const double *restrict y, double *restrict out) {
  for (long i = 0; i < 2; i++)
    for (long j = 0; j < 3; j++)
      for (long k = 0; k < 5; k++) {
        double out_acc = 0.0;
        out_acc = __builtin_fma(x[12 * i + 4 * j], y[20 * i + k], out_acc);
        out_acc = __builtin_fma(x[12 * i + 4 * j + 1], y[20 * i + k + 5], out_acc);
        out_acc = __builtin_fma(x[12 * i + 4 * j + 2], y[20 * i + k + 10], out_acc);
        out_acc = __builtin_fma(x[12 * i + 4 * j + 3], y[20 * i + k + 15], out_acc);
        out[15 * i + 5 * j + k] = out_acc;
      }
}

// arrays: x float64[24], y float64[40]; then the results: out float64[30]
// scratch: 0 bytes; returns 0
int batched(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  double *x = arrays[0];
  double *y = arrays[1];
  double *out = arrays[2];
  batched_out(x, y, out);
  return 0;
}
