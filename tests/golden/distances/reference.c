typedef __UINT32_TYPE__ uint32_t;
typedef float float_x16 __attribute__((vector_size(64), aligned(4), may_alias));

// to[to_step * r + c] = from[from_step * c + r] for r, c < 16. When the rows of the two halves
// have been interleaved as often as 16 can be halved, they are columns.
static inline void tf_transpose_block_16_uint32(uint32_t *to, long to_step, const uint32_t *from, long from_step) {
  typedef uint32_t vector_t __attribute__((vector_size(16 * sizeof(uint32_t)), aligned(sizeof(uint32_t)), may_alias));
  vector_t rows[16], mixed[16];
  for (long r = 0; r < 16; r++)
    rows[r] = *(const vector_t *)(from + from_step * r);
  for (long round = 1; round < 16; round *= 2) {
    for (long r = 0; r < 16 / 2; r++) {
#if defined(__clang__)
      mixed[2 * r] = __builtin_shufflevector(rows[r], rows[r + 16 / 2], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      mixed[2 * r + 1] = __builtin_shufflevector(rows[r], rows[r + 16 / 2], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#else
      mixed[2 * r] = __builtin_shuffle(rows[r], rows[r + 16 / 2], (vector_t){0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23});
      mixed[2 * r + 1] = __builtin_shuffle(rows[r], rows[r + 16 / 2], (vector_t){8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31});
#endif
    }
    for (long r = 0; r < 16; r++)
      rows[r] = mixed[r];
  }
  for (long r = 0; r < 16; r++)
    *(vector_t *)(to + to_step * r) = rows[r];
}

// The same for r < rows and c < columns, 16 or more each. The last blocks begin earlier where
// that is no multiple, and store some elements a second time.
static inline void tf_transpose_16_uint32(void *to, long to_step, const void *from, long from_step, long rows, long columns) {
  for (long c = 0; c < columns; c += 16) {
    long column = c + 16 <= columns ? c : columns - 16;
    for (long r = 0; r < rows; r += 16) {
      long row = r + 16 <= rows ? r : rows - 16;
      uint32_t *block = (uint32_t *)to + to_step * row + column;
      tf_transpose_block_16_uint32(block, to_step, (const uint32_t *)from + from_step * column + row, from_step);
    }
  }
}

// The same in every lane.
static inline float_x16 tf_splat_float_x16(float value) {
  return value - (float_x16){0};
}

// Multiplied by itself in every lane.
static inline float_x16 tf_square_float_x16(float_x16 value) {
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

// [centres_copy] reads 3.12 KiB, writes 3.75 KiB, 0 operations
static __attribute__((noinline)) void distances_centres_copy(const float *restrict centres, float *restrict centres_copy) {
  tf_transpose_16_uint32(centres_copy, 48, centres, 20, 20, 40);
  for (long i = 40; i < 48; i++)
    for (long j = 0; j < 20; j++)
      centres_copy[48 * j + i] = 0.0f;
}

// return np.sqrt(((points[:, None] - centres) ** 2).sum(axis=-1))
// [subtract, square, sum_local, sum, out] reads 5.39 KiB, writes 3.28 KiB, 61320 operations
static __attribute__((noinline)) void distances_out(const float *restrict points, const float *restrict centres_copy, float *restrict out, long begin, long end) {
  for (long i_outer = begin; i_outer < end; i_outer++) {
    float sum[336];
    float_x16 sum_local[21];
    sum_local[0] = tf_splat_float_x16(0.0f);
    sum_local[1] = tf_splat_float_x16(0.0f);
    sum_local[2] = tf_splat_float_x16(0.0f);
    sum_local[3] = tf_splat_float_x16(0.0f);
    sum_local[4] = tf_splat_float_x16(0.0f);
    sum_local[5] = tf_splat_float_x16(0.0f);
    sum_local[6] = tf_splat_float_x16(0.0f);
    sum_local[7] = tf_splat_float_x16(0.0f);
    sum_local[8] = tf_splat_float_x16(0.0f);
    sum_local[9] = tf_splat_float_x16(0.0f);
    sum_local[10] = tf_splat_float_x16(0.0f);
    sum_local[11] = tf_splat_float_x16(0.0f);
    sum_local[12] = tf_splat_float_x16(0.0f);
    sum_local[13] = tf_splat_float_x16(0.0f);
    sum_local[14] = tf_splat_float_x16(0.0f);
    sum_local[15] = tf_splat_float_x16(0.0f);
    sum_local[16] = tf_splat_float_x16(0.0f);
    sum_local[17] = tf_splat_float_x16(0.0f);
    sum_local[18] = tf_splat_float_x16(0.0f);
    sum_local[19] = tf_splat_float_x16(0.0f);
    sum_local[20] = tf_splat_float_x16(0.0f);
    for (long k = 0; k < 20; k++) {
      sum_local[0] = sum_local[0] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k]) - *(const float_x16 *)&centres_copy[48 * k]);
      sum_local[1] = sum_local[1] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k]) - *(const float_x16 *)&centres_copy[48 * k + 16]);
      sum_local[2] = sum_local[2] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k]) - *(const float_x16 *)&centres_copy[48 * k + 32]);
      sum_local[3] = sum_local[3] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 20]) - *(const float_x16 *)&centres_copy[48 * k]);
      sum_local[4] = sum_local[4] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 20]) - *(const float_x16 *)&centres_copy[48 * k + 16]);
      sum_local[5] = sum_local[5] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 20]) - *(const float_x16 *)&centres_copy[48 * k + 32]);
      sum_local[6] = sum_local[6] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 40]) - *(const float_x16 *)&centres_copy[48 * k]);
      sum_local[7] = sum_local[7] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 40]) - *(const float_x16 *)&centres_copy[48 * k + 16]);
      sum_local[8] = sum_local[8] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 40]) - *(const float_x16 *)&centres_copy[48 * k + 32]);
      sum_local[9] = sum_local[9] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 60]) - *(const float_x16 *)&centres_copy[48 * k]);
      sum_local[10] = sum_local[10] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 60]) - *(const float_x16 *)&centres_copy[48 * k + 16]);
      sum_local[11] = sum_local[11] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 60]) - *(const float_x16 *)&centres_copy[48 * k + 32]);
      sum_local[12] = sum_local[12] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 80]) - *(const float_x16 *)&centres_copy[48 * k]);
      sum_local[13] = sum_local[13] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 80]) - *(const float_x16 *)&centres_copy[48 * k + 16]);
      sum_local[14] = sum_local[14] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 80]) - *(const float_x16 *)&centres_copy[48 * k + 32]);
      sum_local[15] = sum_local[15] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 100]) - *(const float_x16 *)&centres_copy[48 * k]);
      sum_local[16] = sum_local[16] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 100]) - *(const float_x16 *)&centres_copy[48 * k + 16]);
      sum_local[17] = sum_local[17] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 100]) - *(const float_x16 *)&centres_copy[48 * k + 32]);
      sum_local[18] = sum_local[18] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 120]) - *(const float_x16 *)&centres_copy[48 * k]);
      sum_local[19] = sum_local[19] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 120]) - *(const float_x16 *)&centres_copy[48 * k + 16]);
      sum_local[20] = sum_local[20] + tf_square_float_x16(tf_splat_float_x16(points[140 * i_outer + k + 120]) - *(const float_x16 *)&centres_copy[48 * k + 32]);
    }
    *(float_x16 *)&sum[0] = sum_local[0];
    *(float_x16 *)&sum[16] = sum_local[1];
    *(float_x16 *)&sum[32] = sum_local[2];
    *(float_x16 *)&sum[48] = sum_local[3];
    *(float_x16 *)&sum[64] = sum_local[4];
    *(float_x16 *)&sum[80] = sum_local[5];
    *(float_x16 *)&sum[96] = sum_local[6];
    *(float_x16 *)&sum[112] = sum_local[7];
    *(float_x16 *)&sum[128] = sum_local[8];
    *(float_x16 *)&sum[144] = sum_local[9];
    *(float_x16 *)&sum[160] = sum_local[10];
    *(float_x16 *)&sum[176] = sum_local[11];
    *(float_x16 *)&sum[192] = sum_local[12];
    *(float_x16 *)&sum[208] = sum_local[13];
    *(float_x16 *)&sum[224] = sum_local[14];
    *(float_x16 *)&sum[240] = sum_local[15];
    *(float_x16 *)&sum[256] = sum_local[16];
    *(float_x16 *)&sum[272] = sum_local[17];
    *(float_x16 *)&sum[288] = sum_local[18];
    *(float_x16 *)&sum[304] = sum_local[19];
    *(float_x16 *)&sum[320] = sum_local[20];
    for (long i = 0; i < 7; i++)
      for (long j = 0; j < 40; j++)
        out[280 * i_outer + 40 * i + j] = __builtin_sqrtf(sum[48 * i + j]);
  }
}

static void distances_out_task(void *const *buffers, long begin, long end) {
  distances_out(buffers[0], buffers[1], buffers[2], begin, end);
}

// arrays: points float32[420], centres float32[800]; then the results: out float32[840]
// scratch: 3840 bytes; returns 0
int distances(void *const *arrays, void *scratch, const tf_pool *pool) {
  float *points = arrays[0];
  float *centres = arrays[1];
  float *out = arrays[2];
  float *centres_copy = scratch;
  distances_centres_copy(centres, centres_copy);
  tf_run(pool, distances_out_task, (void *[]){points, centres_copy, out}, 3, 3);
  return 0;
}
