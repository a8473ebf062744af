// x * x.
static inline double tf_square_double(double x) {
  return x * x;
}

typedef struct tf_pool tf_pool;

// mean = x.mean(axis=0)
// [sum_blocks] reads 3.09 KiB, writes 48 B, 390 operations
static void moments_sum_blocks(const double *restrict x, double *restrict sum_blocks) {
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
}

// mean = x.mean(axis=0)
// [sum] reads 48 B, writes 48 B, 3 operations
static void moments_sum(double *restrict sum_blocks, double *restrict sum) {
  for (long i = 0; i < 3; i++)
    sum_blocks[i] += sum_blocks[i + 3];
  for (long i = 0; i < 3; i++)
    sum[i] = sum_blocks[i];
}

// mean = x.mean(axis=0)
// [mean] reads 24 B, writes 24 B, 3 operations
static void moments_mean(const double *restrict sum, double *restrict mean) {
  for (long i = 0; i < 3; i++)
    mean[i] = sum[i] / 130.0;
}

// variance = ((x - mean) ** 2).mean(axis=0)
// [subtract, square, sum_1_blocks] reads 3.12 KiB, writes 48 B, 1170 operations
static void moments_sum_1_blocks(const double *restrict x, const double *restrict mean, double *restrict sum_1_blocks) {
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
}

// variance = ((x - mean) ** 2).mean(axis=0)
// [sum_1] reads 48 B, writes 48 B, 3 operations
static void moments_sum_1(double *restrict sum_1_blocks, double *restrict sum_1) {
  for (long i = 0; i < 3; i++)
    sum_1_blocks[i] += sum_1_blocks[i + 3];
  for (long i = 0; i < 3; i++)
    sum_1[i] = sum_1_blocks[i];
}

// variance = ((x - mean) ** 2).mean(axis=0)
// [variance] reads 24 B, writes 24 B, 3 operations
static void moments_variance(const double *restrict sum_1, double *restrict variance) {
  for (long i = 0; i < 3; i++)
    variance[i] = sum_1[i] / 130.0;
}

// arrays: x float64[390]; then the results: mean float64[3], variance float64[3]
// scratch: 128 bytes; returns 0
int moments(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)pool;
  double *x = arrays[0];
  double *mean = arrays[1];
  double *variance = arrays[2];
  double *sum_blocks = scratch;
  double *sum = (void *)((char *)scratch + 64);
  double *sum_1_blocks = scratch;
  double *sum_1 = (void *)((char *)scratch + 64);
  moments_sum_blocks(x, sum_blocks);
  moments_sum(sum_blocks, sum);
  moments_mean(sum, mean);
  moments_sum_1_blocks(x, mean, sum_1_blocks);
  moments_sum_1(sum_1_blocks, sum_1);
  moments_variance(sum_1, variance);
  return 0;
}
