typedef struct tf_pool tf_pool;

// rows = image[:-2] + image[1:-1] + image[2:]
// [add, rows] reads 1.56 KiB, writes 1.25 KiB, 320 operations
static void blur_rows(const double *restrict image, double *restrict rows) {
  for (long i = 0; i < 160; i++)
    rows[i] = image[i] + image[i + 20] + image[i + 40];
}

// return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 9
// [add_1, add_2, out] reads 1.25 KiB, writes 1.12 KiB, 432 operations
static void blur_out(const double *restrict rows, double *restrict out) {
  for (long i = 0; i < 8; i++)
    for (long j = 0; j < 18; j++)
      out[18 * i + j] = (rows[20 * i + j] + rows[20 * i + j + 1] + rows[20 * i + j + 2]) / 9.0;
}

// arrays: image float64[200]; then the results: out float64[144]
// scratch: 1280 bytes; returns 0
int blur(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)pool;
  double *image = arrays[0];
  double *out = arrays[1];
  double *rows = scratch;
  blur_rows(image, rows);
  blur_out(rows, out);
  return 0;
}
