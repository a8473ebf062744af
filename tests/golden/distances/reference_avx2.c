// x * x.
static inline float tf_square_float(float x) {
  return x * x;
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

// [centres_copy] reads 3.12 KiB, writes 5 KiB, 0 operations
static __attribute__((noinline)) void distances_centres_copy(const float *restrict centres, float *restrict centres_copy) {
  for (long i = 0; i < 32; i++)
    for (long j = 0; j < 20; j++)
      centres_copy[32 * j + i] = centres[20 * i + j];
  for (long i = 32; i < 40; i++)
    for (long j = 0; j < 20; j++)
      centres_copy[32 * j + i + 608] = centres[20 * i + j];
  for (long i = 40; i < 64; i++)
    for (long j = 0; j < 20; j++)
      centres_copy[32 * j + i + 608] = 0.0f;
}

// return np.sqrt(((points[:, None] - centres) ** 2).sum(axis=-1))
// [subtract, square, sum, out_local, out] reads 6.64 KiB, writes 3.28 KiB, 81984 operations
static __attribute__((noinline)) void distances_out(const float *restrict points, const float *restrict centres_copy, float *restrict out, long begin, long end) {
  for (long i_outer = begin; i_outer < end; i_outer++) {
    if (i_outer < 10) {
      {
        float sum[64];
        float out_local[64];
        for (long i = 0; i < 64; i++)
          sum[i] = 0.0f;
        for (long k = 0; k < 20; k++) {
          for (long j = 0; j < 32; j++)
            sum[j] += tf_square_float(points[40 * i_outer + k] - centres_copy[32 * k + j]);
          for (long j = 0; j < 32; j++)
            sum[j + 32] += tf_square_float(points[40 * i_outer + k + 20] - centres_copy[32 * k + j]);
        }
        for (long i = 0; i < 64; i++)
          out_local[i] = __builtin_sqrtf(sum[i]);
        for (long i = 0; i < 2; i++)
          for (long j = 0; j < 32; j++)
            out[80 * i_outer + 40 * i + j] = out_local[32 * i + j];
      }
      {
        float sum[64];
        float out_local[64];
        for (long i = 0; i < 2; i++)
          for (long j = 32; j < 64; j++)
            sum[32 * i + j - 32] = 0.0f;
        for (long k = 0; k < 20; k++) {
          for (long j = 32; j < 64; j++)
            sum[j - 32] += tf_square_float(points[40 * i_outer + k] - centres_copy[32 * k + j + 608]);
          for (long j = 32; j < 64; j++)
            sum[j] += tf_square_float(points[40 * i_outer + k + 20] - centres_copy[32 * k + j + 608]);
        }
        for (long i = 0; i < 2; i++)
          for (long j = 32; j < 64; j++)
            out_local[32 * i + j - 32] = __builtin_sqrtf(sum[32 * i + j - 32]);
        for (long i = 0; i < 2; i++)
          for (long j = 32; j < 40; j++)
            out[80 * i_outer + 40 * i + j] = out_local[32 * i + j - 32];
      }
    } else {
      {
        float sum[32];
        float out_local[32];
        for (long j = 0; j < 32; j++)
          sum[j] = 0.0f;
        for (long k = 0; k < 20; k++)
          for (long j = 0; j < 32; j++)
            sum[j] += tf_square_float(points[k + 400] - centres_copy[32 * k + j]);
        for (long j = 0; j < 32; j++)
          out_local[j] = __builtin_sqrtf(sum[j]);
        for (long j = 0; j < 32; j++)
          out[j + 800] = out_local[j];
      }
      {
        float sum[32];
        float out_local[32];
        for (long j = 32; j < 64; j++)
          sum[j - 32] = 0.0f;
        for (long k = 0; k < 20; k++)
          for (long j = 32; j < 64; j++)
            sum[j - 32] += tf_square_float(points[k + 400] - centres_copy[32 * k + j + 608]);
        for (long j = 32; j < 64; j++)
          out_local[j - 32] = __builtin_sqrtf(sum[j - 32]);
        for (long j = 32; j < 40; j++)
          out[j + 800] = out_local[j - 32];
      }
    }
  }
}

static void distances_out_task(void *const *buffers, long begin, long end) {
  distances_out(buffers[0], buffers[1], buffers[2], begin, end);
}

// arrays: points float32[420], centres float32[800]; then the results: out float32[840]
// scratch: 5120 bytes; returns 0
int distances(void *const *arrays, void *scratch, const tf_pool *pool) {
  float *points = arrays[0];
  float *centres = arrays[1];
  float *out = arrays[2];
  float *centres_copy = scratch;
  distances_centres_copy(centres, centres_copy);
  tf_run(pool, distances_out_task, (void *[]){points, centres_copy, out}, 11, 5);
  return 0;
}
