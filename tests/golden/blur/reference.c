typedef struct tf_pool tf_pool;

// rows = image[:-2] + image[1:-1] + image[2:]
// return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 9
// [add, rows, add_1, add_2, out] reads 1.56 KiB, writes 1.12 KiB, 1296 operations
static void blur_out(const double *restrict image, double *restrict out) {
  for (long i = 0; i < 8; i++)
    for (long j = 0; j < 18; j++) {
      const double rows = image[20 * i + j] + image[20 * i + j + 20] + image[20 * i + j + 40];
      const double rows_1 = image[20 * i + j + 1] + image[20 * i + j + 21] + image[20 * i + j + 41];
      const double rows_2 = image[20 * i + j + 2] + image[20 * i + j + 22] + image[20 * i + j + 42];
      out[18 * i + j] = (rows + rows_1 + rows_2) / 9.0;
    }
}

int blur(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  double *image = arrays[0];
  double *out = arrays[1];
  blur_out(image, out);
  return 0;
}
