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
// [matmul_lanes, matmul] reads 1.56 KiB, writes 8 B, 319 operations
static void cosine_matmul(const double *restrict x, const double *restrict y, double *restrict matmul) {
  double matmul_lanes[64];
  for (long l = 0; l < 64; l++)
    matmul_lanes[l] = 0.0;
  for (long l = 0; l < 64; l++)
    matmul_lanes[l] = __builtin_fma(x[l], y[l], matmul_lanes[l]);
  for (long l = 0; l < 64; l++)
    matmul_lanes[l] = l < 36 ? __builtin_fma(x[l + 64], y[l + 64], matmul_lanes[l]) : matmul_lanes[l];
  tf_halve_64_double(matmul_lanes);
  matmul[0] = matmul_lanes[0];
}

// return x @ y / np.sqrt((x * x).sum() * (y * y).sum())
// [multiply, sum_lanes, sum] reads 800 B, writes 8 B, 319 operations
static void cosine_sum(const double *restrict x, double *restrict sum) {
  double sum_lanes[64];
  for (long l = 0; l < 64; l++)
    sum_lanes[l] = 0.0;
  for (long l = 0; l < 64; l++)
    sum_lanes[l] += x[l] * x[l];
  for (long l = 0; l < 64; l++)
    sum_lanes[l] = l < 36 ? sum_lanes[l] + x[l + 64] * x[l + 64] : sum_lanes[l];
  tf_halve_64_double(sum_lanes);
  sum[0] = sum_lanes[0];
}

// return x @ y / np.sqrt((x * x).sum() * (y * y).sum())
// [multiply_1, sum_1_lanes, sum_1] reads 800 B, writes 8 B, 319 operations
static void cosine_sum_1(const double *restrict y, double *restrict sum_1) {
  double sum_1_lanes[64];
  for (long l = 0; l < 64; l++)
    sum_1_lanes[l] = 0.0;
  for (long l = 0; l < 64; l++)
    sum_1_lanes[l] += y[l] * y[l];
  for (long l = 0; l < 64; l++)
    sum_1_lanes[l] = l < 36 ? sum_1_lanes[l] + y[l + 64] * y[l + 64] : sum_1_lanes[l];
  tf_halve_64_double(sum_1_lanes);
  sum_1[0] = sum_1_lanes[0];
}

// return x @ y / np.sqrt((x * x).sum() * (y * y).sum())
// [multiply_2, sqrt_1, out] reads 24 B, writes 8 B, 3 operations
static void cosine_out(const double *restrict matmul, const double *restrict sum, const double *restrict sum_1, double *restrict out) {
  out[0] = matmul[0] / __builtin_sqrt(sum[0] * sum_1[0]);
}

// arrays: x float64[100], y float64[100]; then the results: out float64[1]
// scratch: 192 bytes; returns 0
int cosine(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)pool;
  double *x = arrays[0];
  double *y = arrays[1];
  double *out = arrays[2];
  double *matmul = scratch;
  double *sum = (void *)((char *)scratch + 64);
  double *sum_1 = (void *)((char *)scratch + 128);
  cosine_matmul(x, y, matmul);
  cosine_sum(x, sum);
  cosine_sum_1(y, sum_1);
  cosine_out(matmul, sum, sum_1, out);
  return 0;
}
