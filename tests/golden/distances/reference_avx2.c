typedef __UINT32_TYPE__ uint32_t;
typedef float float_x8 __attribute__((vector_size(32), aligned(4), may_alias));

// to[to_step * r + c] = from[from_step * c + r] for r, c < 8. When the rows of the two halves
// have been interleaved as often as 8 can be halved, they are columns.
static inline void tf_transpose_block_8_uint32(uint32_t *to, long to_step, const uint32_t *from, long from_step) {
  typedef uint32_t vector_t __attribute__((vector_size(8 * sizeof(uint32_t)), aligned(sizeof(uint32_t)), may_alias));
  vector_t rows[8], mixed[8];
  for (long r = 0; r < 8; r++)
    rows[r] = *(const vector_t *)(from + from_step * r);
  for (long round = 1; round < 8; round *= 2) {
    for (long r = 0; r < 8 / 2; r++) {
#if defined(__clang__)
      mixed[2 * r] = __builtin_shufflevector(rows[r], rows[r + 8 / 2], 0, 8, 1, 9, 2, 10, 3, 11);
      mixed[2 * r + 1] = __builtin_shufflevector(rows[r], rows[r + 8 / 2], 4, 12, 5, 13, 6, 14, 7, 15);
#else
      mixed[2 * r] = __builtin_shuffle(rows[r], rows[r + 8 / 2], (vector_t){0, 8, 1, 9, 2, 10, 3, 11});
      mixed[2 * r + 1] = __builtin_shuffle(rows[r], rows[r + 8 / 2], (vector_t){4, 12, 5, 13, 6, 14, 7, 15});
#endif
    }
    for (long r = 0; r < 8; r++)
      rows[r] = mixed[r];
  }
  for (long r = 0; r < 8; r++)
    *(vector_t *)(to + to_step * r) = rows[r];
}

// The same for r < rows and c < columns, 8 or more each. The last blocks begin earlier where
// that is no multiple, and store some elements a second time.
static inline void tf_transpose_8_uint32(void *to, long to_step, const void *from, long from_step, long rows, long columns) {
  for (long c = 0; c < columns; c += 8) {
    long column = c + 8 <= columns ? c : columns - 8;
    for (long r = 0; r < rows; r += 8) {
      long row = r + 8 <= rows ? r : rows - 8;
      uint32_t *block = (uint32_t *)to + to_step * row + column;
      tf_transpose_block_8_uint32(block, to_step, (const uint32_t *)from + from_step * column + row, from_step);
    }
  }
}

// The same in every lane.
static inline float_x8 tf_splat_float_x8(float value) {
  return value - (float_x8){0};
}

// Multiplied by itself in every lane.
static inline float_x8 tf_square_float_x8(float_x8 value) {
  return value * value;
}

// What an entry is handed to share a loop among threads; null where there are none.
typedef struct tf_pool tf_pool;
typedef void (*tf_task)(void *const *buffers, long begin, long end);
struct tf_pool {
  void (*run)(const tf_pool *pool, tf_task task, void *const *buffers, long extent, long grain);
};

// Runs a task over [0, extent), in parts of at least `grain` where threads share it.
static inline void tf_run(const tf_pool *pool, tf_task task, void *const *buffers, long extent, long grain) {
  if (pool)
    pool->run(pool, task, buffers, extent, grain);
  else
    task(buffers, 0, extent);
}

// return np.sqrt(((points[:, None] - centres) ** 2).sum(axis=-1))
// [centres_copy, subtract, square, sum_local, sum, out] reads 4.77 KiB, writes 3.28 KiB, 58560
//   operations
static void distances_out(const float *restrict centres, const float *restrict points, float *restrict out, long begin, long end) {
  for (long j_outer = begin; j_outer < end; j_outer++) {
    float centres_copy[160];
    tf_transpose_8_uint32(centres_copy, 8, centres + 160 * j_outer, 20, 20, 8);
    {
      float sum[96];
      float_x8 sum_local[12];
      sum_local[0] = tf_splat_float_x8(0.0f);
      sum_local[1] = tf_splat_float_x8(0.0f);
      sum_local[2] = tf_splat_float_x8(0.0f);
      sum_local[3] = tf_splat_float_x8(0.0f);
      sum_local[4] = tf_splat_float_x8(0.0f);
      sum_local[5] = tf_splat_float_x8(0.0f);
      sum_local[6] = tf_splat_float_x8(0.0f);
      sum_local[7] = tf_splat_float_x8(0.0f);
      sum_local[8] = tf_splat_float_x8(0.0f);
      sum_local[9] = tf_splat_float_x8(0.0f);
      sum_local[10] = tf_splat_float_x8(0.0f);
      sum_local[11] = tf_splat_float_x8(0.0f);
      for (long k = 0; k < 20; k++) {
        sum_local[0] = sum_local[0] + tf_square_float_x8(tf_splat_float_x8(points[k]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[1] = sum_local[1] + tf_square_float_x8(tf_splat_float_x8(points[k + 20]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[2] = sum_local[2] + tf_square_float_x8(tf_splat_float_x8(points[k + 40]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[3] = sum_local[3] + tf_square_float_x8(tf_splat_float_x8(points[k + 60]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[4] = sum_local[4] + tf_square_float_x8(tf_splat_float_x8(points[k + 80]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[5] = sum_local[5] + tf_square_float_x8(tf_splat_float_x8(points[k + 100]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[6] = sum_local[6] + tf_square_float_x8(tf_splat_float_x8(points[k + 120]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[7] = sum_local[7] + tf_square_float_x8(tf_splat_float_x8(points[k + 140]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[8] = sum_local[8] + tf_square_float_x8(tf_splat_float_x8(points[k + 160]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[9] = sum_local[9] + tf_square_float_x8(tf_splat_float_x8(points[k + 180]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[10] = sum_local[10] + tf_square_float_x8(tf_splat_float_x8(points[k + 200]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[11] = sum_local[11] + tf_square_float_x8(tf_splat_float_x8(points[k + 220]) - *(const float_x8 *)&centres_copy[8 * k]);
      }
      *(float_x8 *)&sum[0] = sum_local[0];
      *(float_x8 *)&sum[8] = sum_local[1];
      *(float_x8 *)&sum[16] = sum_local[2];
      *(float_x8 *)&sum[24] = sum_local[3];
      *(float_x8 *)&sum[32] = sum_local[4];
      *(float_x8 *)&sum[40] = sum_local[5];
      *(float_x8 *)&sum[48] = sum_local[6];
      *(float_x8 *)&sum[56] = sum_local[7];
      *(float_x8 *)&sum[64] = sum_local[8];
      *(float_x8 *)&sum[72] = sum_local[9];
      *(float_x8 *)&sum[80] = sum_local[10];
      *(float_x8 *)&sum[88] = sum_local[11];
      for (long i = 0; i < 12; i++)
        for (long j = 0; j < 8; j++)
          out[40 * i + 8 * j_outer + j] = __builtin_sqrtf(sum[8 * i + j]);
    }
    {
      float sum[96];
      float_x8 sum_local[12];
      sum_local[0] = tf_splat_float_x8(0.0f);
      sum_local[1] = tf_splat_float_x8(0.0f);
      sum_local[2] = tf_splat_float_x8(0.0f);
      sum_local[3] = tf_splat_float_x8(0.0f);
      sum_local[4] = tf_splat_float_x8(0.0f);
      sum_local[5] = tf_splat_float_x8(0.0f);
      sum_local[6] = tf_splat_float_x8(0.0f);
      sum_local[7] = tf_splat_float_x8(0.0f);
      sum_local[8] = tf_splat_float_x8(0.0f);
      sum_local[9] = tf_splat_float_x8(0.0f);
      sum_local[10] = tf_splat_float_x8(0.0f);
      sum_local[11] = tf_splat_float_x8(0.0f);
      for (long k = 0; k < 20; k++) {
        sum_local[0] = sum_local[0] + tf_square_float_x8(tf_splat_float_x8(points[k + 180]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[1] = sum_local[1] + tf_square_float_x8(tf_splat_float_x8(points[k + 200]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[2] = sum_local[2] + tf_square_float_x8(tf_splat_float_x8(points[k + 220]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[3] = sum_local[3] + tf_square_float_x8(tf_splat_float_x8(points[k + 240]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[4] = sum_local[4] + tf_square_float_x8(tf_splat_float_x8(points[k + 260]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[5] = sum_local[5] + tf_square_float_x8(tf_splat_float_x8(points[k + 280]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[6] = sum_local[6] + tf_square_float_x8(tf_splat_float_x8(points[k + 300]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[7] = sum_local[7] + tf_square_float_x8(tf_splat_float_x8(points[k + 320]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[8] = sum_local[8] + tf_square_float_x8(tf_splat_float_x8(points[k + 340]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[9] = sum_local[9] + tf_square_float_x8(tf_splat_float_x8(points[k + 360]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[10] = sum_local[10] + tf_square_float_x8(tf_splat_float_x8(points[k + 380]) - *(const float_x8 *)&centres_copy[8 * k]);
        sum_local[11] = sum_local[11] + tf_square_float_x8(tf_splat_float_x8(points[k + 400]) - *(const float_x8 *)&centres_copy[8 * k]);
      }
      *(float_x8 *)&sum[0] = sum_local[0];
      *(float_x8 *)&sum[8] = sum_local[1];
      *(float_x8 *)&sum[16] = sum_local[2];
      *(float_x8 *)&sum[24] = sum_local[3];
      *(float_x8 *)&sum[32] = sum_local[4];
      *(float_x8 *)&sum[40] = sum_local[5];
      *(float_x8 *)&sum[48] = sum_local[6];
      *(float_x8 *)&sum[56] = sum_local[7];
      *(float_x8 *)&sum[64] = sum_local[8];
      *(float_x8 *)&sum[72] = sum_local[9];
      *(float_x8 *)&sum[80] = sum_local[10];
      *(float_x8 *)&sum[88] = sum_local[11];
      for (long i = 9; i < 21; i++)
        for (long j = 0; j < 8; j++)
          out[40 * i + 8 * j_outer + j] = __builtin_sqrtf(sum[8 * i + j - 72]);
    }
  }
}

static void distances_out_task(void *const *buffers, long begin, long end) {
  distances_out(buffers[0], buffers[1], buffers[2], begin, end);
}

// arrays: points float32[420], centres float32[800]; then the results: out float32[840]
// scratch: 0 bytes; returns 0
int distances(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  float *points = arrays[0];
  float *centres = arrays[1];
  float *out = arrays[2];
  tf_run(pool, distances_out_task, (void *[]){centres, points, out}, 5, 3);
  return 0;
}
