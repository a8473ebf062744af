// The sum of 32 lanes, in the first: lanes[l] += lanes[l + half] for half = 16, 8, 4, 2, 1.
static inline void tf_halve_32_float(float *lanes) {
  typedef float eight_t __attribute__((vector_size(8 * sizeof(float)), aligned(sizeof(float)), may_alias));
  typedef float four_t __attribute__((vector_size(4 * sizeof(float)), aligned(sizeof(float)), may_alias));
  typedef float two_t __attribute__((vector_size(2 * sizeof(float)), aligned(sizeof(float)), may_alias));
  for (long l = 0; l < 16; l++)
    lanes[l] += lanes[l + 16];
  *(eight_t *)lanes += *(eight_t *)(lanes + 8);
  *(four_t *)lanes += *(four_t *)(lanes + 4);
  *(two_t *)lanes += *(two_t *)(lanes + 2);
  lanes[0] += lanes[1];
}

// The sum of 64 lanes, in the first.
static inline void tf_halve_64_float(float *lanes) {
  for (long l = 0; l < 32; l++)
    lanes[l] += lanes[l + 32];
  tf_halve_32_float(lanes);
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

// return x.sum(), x.sum(axis=0), x.sum(axis=1)
// [out_lanes, out_blocks] reads 2.4 MiB, writes 2.41 KiB, 668824 operations
static __attribute__((noinline)) void large_sums_out_blocks(const float *restrict x, float *restrict out_blocks, long begin, long end) {
  for (long b = begin; b < end; b++) {
    float out_lanes[64];
    if (b < 615) {
      for (long l = 0; l < 64; l++)
        out_lanes[l] = 0.0f;
      for (long s = 0; s < 16; s++)
        for (long l = 0; l < 64; l++)
          out_lanes[l] += x[1024 * b + 64 * s + l];
    } else {
      for (long l = 0; l < 64; l++)
        out_lanes[l] = 0.0f;
      for (long s = 0; s < 3; s++)
        for (long l = 0; l < 64; l++)
          out_lanes[l] += x[64 * s + l + 629760];
      for (long l = 0; l < 64; l++)
        out_lanes[l] = l < 48 ? out_lanes[l] + x[l + 629952] : out_lanes[l];
    }
    tf_halve_64_float(out_lanes);
    out_blocks[b] = out_lanes[0];
  }
}

static void large_sums_out_blocks_task(void *const *buffers, long begin, long end) {
  large_sums_out_blocks(buffers[0], buffers[1], begin, end);
}

// return x.sum(), x.sum(axis=0), x.sum(axis=1)
// [out_1_blocks] reads 2.43 MiB, writes 24.6 KiB, 630000 operations
static __attribute__((noinline)) void large_sums_out_1_blocks(const float *restrict x, float *restrict out_1_blocks, long begin, long end) {
  for (long i = begin; i < end; i++) {
    if (i < 1) {
      for (long b = 0; b < 2; b++) {
        for (long i_1 = 0; i_1 < 1056; i_1++)
          out_1_blocks[2100 * b + i_1] = 0.0f;
        for (long r_outer = 0; r_outer < 32; r_outer++)
          for (long i_1 = 0; i_1 < 1056; i_1++) {
            out_1_blocks[2100 * b + i_1] += x[268800 * b + 8400 * r_outer + i_1];
            out_1_blocks[2100 * b + i_1] += x[268800 * b + 8400 * r_outer + i_1 + 2100];
            out_1_blocks[2100 * b + i_1] += x[268800 * b + 8400 * r_outer + i_1 + 4200];
            out_1_blocks[2100 * b + i_1] += x[268800 * b + 8400 * r_outer + i_1 + 6300];
          }
      }
      for (long i_1 = 0; i_1 < 1056; i_1++)
        out_1_blocks[i_1 + 4200] = 0.0f;
      for (long r_outer = 0; r_outer < 11; r_outer++)
        for (long i_1 = 0; i_1 < 1056; i_1++) {
          out_1_blocks[i_1 + 4200] += x[8400 * r_outer + i_1 + 537600];
          out_1_blocks[i_1 + 4200] += x[8400 * r_outer + i_1 + 539700];
          out_1_blocks[i_1 + 4200] += x[8400 * r_outer + i_1 + 541800];
          out_1_blocks[i_1 + 4200] += x[8400 * r_outer + i_1 + 543900];
        }
    } else {
      for (long b = 0; b < 2; b++) {
        for (long i_1 = 1056; i_1 < 2100; i_1++)
          out_1_blocks[2100 * b + i_1] = 0.0f;
        for (long r_outer = 0; r_outer < 32; r_outer++)
          for (long i_1 = 1056; i_1 < 2100; i_1++) {
            out_1_blocks[2100 * b + i_1] += x[268800 * b + 8400 * r_outer + i_1];
            out_1_blocks[2100 * b + i_1] += x[268800 * b + 8400 * r_outer + i_1 + 2100];
            out_1_blocks[2100 * b + i_1] += x[268800 * b + 8400 * r_outer + i_1 + 4200];
            out_1_blocks[2100 * b + i_1] += x[268800 * b + 8400 * r_outer + i_1 + 6300];
          }
      }
      for (long i_1 = 1056; i_1 < 2100; i_1++)
        out_1_blocks[i_1 + 4200] = 0.0f;
      for (long r_outer = 0; r_outer < 11; r_outer++)
        for (long i_1 = 1056; i_1 < 2100; i_1++) {
          out_1_blocks[i_1 + 4200] += x[8400 * r_outer + i_1 + 537600];
          out_1_blocks[i_1 + 4200] += x[8400 * r_outer + i_1 + 539700];
          out_1_blocks[i_1 + 4200] += x[8400 * r_outer + i_1 + 541800];
          out_1_blocks[i_1 + 4200] += x[8400 * r_outer + i_1 + 543900];
        }
    }
  }
}

static void large_sums_out_1_blocks_task(void *const *buffers, long begin, long end) {
  large_sums_out_1_blocks(buffers[0], buffers[1], begin, end);
}

// return x.sum(), x.sum(axis=0), x.sum(axis=1)
// [out, out_1] reads 27 KiB, writes 27 KiB, 4815 operations
static __attribute__((noinline)) void large_sums_out_1(float *restrict out_blocks, float *restrict out_1_blocks, float *restrict out, float *restrict out_1) {
  for (long b = 0; b < 308; b++)
    out_blocks[2 * b] += out_blocks[2 * b + 1];
  for (long b = 0; b < 154; b++)
    out_blocks[4 * b] += out_blocks[4 * b + 2];
  for (long b = 0; b < 77; b++)
    out_blocks[8 * b] += out_blocks[8 * b + 4];
  for (long b = 0; b < 38; b++)
    out_blocks[16 * b] += out_blocks[16 * b + 8];
  for (long b = 0; b < 19; b++)
    out_blocks[32 * b] += out_blocks[32 * b + 16];
  for (long b = 0; b < 10; b++)
    out_blocks[64 * b] += out_blocks[64 * b + 32];
  for (long b = 0; b < 5; b++)
    out_blocks[128 * b] += out_blocks[128 * b + 64];
  for (long b = 0; b < 2; b++)
    out_blocks[256 * b] += out_blocks[256 * b + 128];
  out_blocks[0] += out_blocks[256];
  out_blocks[0] += out_blocks[512];
  out[0] = out_blocks[0];
  for (long i = 0; i < 2100; i++)
    out_1_blocks[i] += out_1_blocks[i + 2100];
  for (long i = 0; i < 2100; i++)
    out_1_blocks[i] += out_1_blocks[i + 4200];
  for (long i = 0; i < 2100; i++)
    out_1[i] = out_1_blocks[i];
}

// return x.sum(), x.sum(axis=0), x.sum(axis=1)
// [out_2_lanes, out_2_blocks, out_2] reads 2.4 MiB, writes 1.17 KiB, 690900 operations
static __attribute__((noinline)) void large_sums_out_2(const float *restrict x, float *restrict out_2, long begin, long end) {
  for (long i = begin; i < end; i++) {
    float out_2_blocks[3];
    for (long b = 0; b < 3; b++) {
      float out_2_lanes[64];
      if (b < 2) {
        for (long l = 0; l < 64; l++)
          out_2_lanes[l] = 0.0f;
        for (long s = 0; s < 16; s++)
          for (long l = 0; l < 64; l++)
            out_2_lanes[l] += x[2100 * i + 1024 * b + 64 * s + l];
      } else {
        for (long l = 0; l < 64; l++)
          out_2_lanes[l] = 0.0f;
        for (long l = 0; l < 64; l++)
          out_2_lanes[l] = l < 52 ? out_2_lanes[l] + x[2100 * i + l + 2048] : out_2_lanes[l];
      }
      tf_halve_64_float(out_2_lanes);
      out_2_blocks[b] = out_2_lanes[0];
    }
    out_2_blocks[0] += out_2_blocks[1];
    out_2_blocks[0] += out_2_blocks[2];
    out_2[i] = out_2_blocks[0];
  }
}

static void large_sums_out_2_task(void *const *buffers, long begin, long end) {
  large_sums_out_2(buffers[0], buffers[1], begin, end);
}

// arrays: x float32[630000]; then the results: out float32[1], out_1 float32[2100],
//   out_2 float32[300]
// scratch: 27712 bytes; returns 0
int large_sums(void *const *arrays, void *scratch, const tf_pool *pool) {
  float *x = arrays[0];
  float *out = arrays[1];
  float *out_1 = arrays[2];
  float *out_2 = arrays[3];
  float *out_blocks = scratch;
  float *out_1_blocks = (void *)((char *)scratch + 2496);
  tf_run(pool, large_sums_out_blocks_task, (void *[]){x, out_blocks}, 616, 15);
  tf_run(pool, large_sums_out_1_blocks_task, (void *[]){x, out_1_blocks}, 2, 1);
  large_sums_out_1(out_blocks, out_1_blocks, out, out_1);
  tf_run(pool, large_sums_out_2_task, (void *[]){x, out_2}, 300, 8);
  return 0;
}
