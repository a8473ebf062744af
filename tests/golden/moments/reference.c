// for gcc, which takes some orders of eight doubles for others
#if defined(__AVX512F__) && !defined(__clang__)
#define tf_pieces __attribute__((noinline, target("prefer-vector-width=256")))
#else
#define tf_pieces
#endif

// x * x.
static inline double tf_square_double(double x) {
  return x * x;
}

typedef struct tf_pool tf_pool;

// mean = x.mean(axis=0)
// variance = ((x - mean) ** 2).mean(axis=0)
// [sum_blocks, sum, mean, subtract, square, sum_1_blocks, sum_1, variance] reads 3.07 KiB, writes
//   48 B, 1572 operations
static tf_pieces void moments_variance(const double *restrict x, double *restrict mean, double *restrict variance) {
  double sum_blocks[6];
  double sum[3];
  double sum_1_blocks[6];
  double sum_1[3];
  for (long i = 0; i < 3; i++)
    sum_blocks[i] = 0.0;
  for (long r_outer = 0; r_outer < 32; r_outer++)
    for (long i = 0; i < 3; i++) {
      sum_blocks[i] += x[12 * r_outer + i];
      sum_blocks[i] += x[12 * r_outer + i + 3];
      sum_blocks[i] += x[12 * r_outer + i + 6];
      sum_blocks[i] += x[12 * r_outer + i + 9];
    }
  for (long i = 0; i < 3; i++)
    sum_blocks[i + 3] = 0.0;
  for (long i = 0; i < 3; i++) {
    sum_blocks[i + 3] += x[i + 384];
    sum_blocks[i + 3] += x[i + 387];
  }
  for (long i = 0; i < 3; i++)
    sum_blocks[i] += sum_blocks[i + 3];
  for (long i = 0; i < 3; i++)
    sum[i] = sum_blocks[i];
  for (long i = 0; i < 3; i++)
    mean[i] = sum[i] / 130.0;
  for (long i = 0; i < 3; i++)
    sum_1_blocks[i] = 0.0;
  for (long r_outer = 0; r_outer < 32; r_outer++)
    for (long i = 0; i < 3; i++) {
      sum_1_blocks[i] += tf_square_double(x[12 * r_outer + i] - mean[i]);
      sum_1_blocks[i] += tf_square_double(x[12 * r_outer + i + 3] - mean[i]);
      sum_1_blocks[i] += tf_square_double(x[12 * r_outer + i + 6] - mean[i]);
      sum_1_blocks[i] += tf_square_double(x[12 * r_outer + i + 9] - mean[i]);
    }
  for (long i = 0; i < 3; i++)
    sum_1_blocks[i + 3] = 0.0;
  for (long i = 0; i < 3; i++) {
    sum_1_blocks[i + 3] += tf_square_double(x[i + 384] - mean[i]);
    sum_1_blocks[i + 3] += tf_square_double(x[i + 387] - mean[i]);
  }
  for (long i = 0; i < 3; i++)
    sum_1_blocks[i] += sum_1_blocks[i + 3];
  for (long i = 0; i < 3; i++)
    sum_1[i] = sum_1_blocks[i];
  for (long i = 0; i < 3; i++)
    variance[i] = sum_1[i] / 130.0;
}

// arrays: x float64[390]; then the results: mean float64[3], variance float64[3]
// scratch: 0 bytes; returns 0
int moments(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  double *x = arrays[0];
  double *mean = arrays[1];
  double *variance = arrays[2];
  moments_variance(x, mean, variance);
  return 0;
}
