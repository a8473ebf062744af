// The sum of 32 lanes, in the first: lanes[l] += lanes[l + half] for half = 16, 8, 4, 2, 1.
static inline void tf_halve_32_double(double *lanes) {
  typedef double eight_t __attribute__((vector_size(8 * sizeof(double)), aligned(sizeof(double)), may_alias));
  typedef double four_t __attribute__((vector_size(4 * sizeof(double)), aligned(sizeof(double)), may_alias));
  typedef double two_t __attribute__((vector_size(2 * sizeof(double)), aligned(sizeof(double)), may_alias));
  for (long l = 0; l < 16; l++)
    lanes[l] += lanes[l + 16];
  *(eight_t *)lanes += *(eight_t *)(lanes + 8);
  *(four_t *)lanes += *(four_t *)(lanes + 4);
  *(two_t *)lanes += *(two_t *)(lanes + 2);
  lanes[0] += lanes[1];
}

// The sum of 64 lanes, in the first.
static inline void tf_halve_64_double(double *lanes) {
  for (long l = 0; l < 32; l++)
    lanes[l] += lanes[l + 32];
  tf_halve_32_double(lanes);
}

typedef struct tf_pool tf_pool;

// return x @ y / np.sqrt((x * x).sum() * (y * y).sum())
// [matmul_lanes, matmul, multiply, sum_lanes, sum, multiply_1, sum_1_lanes, sum_1, ... and 3 more]
//   reads 1.56 KiB, writes 8 B, 960 operations
static void cosine_out(const double *restrict x, const double *restrict y, double *restrict out) {
  double matmul;
  double sum;
  double sum_1;
  double matmul_lanes[64];
  for (long l = 0; l < 64; l++)
    matmul_lanes[l] = 0.0;
  for (long l = 0; l < 64; l++)
    matmul_lanes[l] = __builtin_fma(x[l], y[l], matmul_lanes[l]);
  for (long l = 0; l < 64; l++)
    matmul_lanes[l] = l < 36 ? __builtin_fma(x[l + 64], y[l + 64], matmul_lanes[l]) : matmul_lanes[l];
  tf_halve_64_double(matmul_lanes);
  matmul = matmul_lanes[0];
  double sum_lanes[64];
  for (long l = 0; l < 64; l++)
    sum_lanes[l] = 0.0;
  for (long l = 0; l < 64; l++)
    sum_lanes[l] += x[l] * x[l];
  for (long l = 0; l < 64; l++)
    sum_lanes[l] = l < 36 ? sum_lanes[l] + x[l + 64] * x[l + 64] : sum_lanes[l];
  tf_halve_64_double(sum_lanes);
  sum = sum_lanes[0];
  double sum_1_lanes[64];
  for (long l = 0; l < 64; l++)
    sum_1_lanes[l] = 0.0;
  for (long l = 0; l < 64; l++)
    sum_1_lanes[l] += y[l] * y[l];
  for (long l = 0; l < 64; l++)
    sum_1_lanes[l] = l < 36 ? sum_1_lanes[l] + y[l + 64] * y[l + 64] : sum_1_lanes[l];
  tf_halve_64_double(sum_1_lanes);
  sum_1 = sum_1_lanes[0];
  out[0] = matmul / __builtin_sqrt(sum * sum_1);
}

// arrays: x float64[100], y float64[100]; then the results: out float64[1]
// scratch: 0 bytes; returns 0
int cosine(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  double *x = arrays[0];
  double *y = arrays[1];
  double *out = arrays[2];
  cosine_out(x, y, out);
  return 0;
}
