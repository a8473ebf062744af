typedef __UINT8_TYPE__ bool8_t; // 0 or 1
typedef __UINT32_TYPE__ uint32_t;
typedef float float_x8 __attribute__((vector_size(32), aligned(4), may_alias));

// The larger of a and b.
static inline uint32_t tf_maximum_uint32(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

// The bits of x.
static inline uint32_t tf_bits_float(float x) {
  union {
    float value;
    uint32_t bits;
  } pun = {.value = x};
  return pun.bits;
}

// The value that has these bits.
static inline float tf_from_bits_float(uint32_t bits) {
  union {
    uint32_t bits;
    float value;
  } pun = {.bits = bits};
  return pun.value;
}

// The place of x among all values: -0 before +0, and every NaN after infinity.
static inline uint32_t tf_rank_nan_last_float(float x) {
  const uint32_t bits = tf_bits_float(x), sign = (uint32_t)1 << (32 - 1);
  return bits & sign ? sign + 0x7f800000u - bits : bits + 0x7f800000u + 1;
}

// The value that has this place, where NaN comes last.
static inline float tf_of_rank_nan_last_float(uint32_t rank) {
  const uint32_t bits = rank - 0x7f800000u - 1, sign = (uint32_t)1 << (32 - 1);
  return tf_from_bits_float(bits & sign ? ~bits ^ sign : bits);
}

// chosen where the condition holds, else other: by their bits. Both are loaded before, since gcc 12
// mixes up loads behind several conditions, in one sum or in steps of a loop that it writes out.
static inline float tf_select_float(bool8_t condition, float chosen, float other) {
  uint32_t mask = -(uint32_t)condition;
  return tf_from_bits_float((tf_bits_float(chosen) & mask) | (tf_bits_float(other) & ~mask));
}

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

// a * b + c in every lane, rounded once. Of the loop compilers make as much, but gcc loads whole
// vectors of which it needs one element.
static inline float_x8 tf_fma_float_x8(float_x8 a, float_x8 b, float_x8 c) {
#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_fma)
  return __builtin_elementwise_fma(a, b, c);
#endif
#elif defined(__FMA__)
  return (float_x8)__builtin_ia32_vfmaddps256(a, b, c);
#endif
  float_x8 sum;
  for (long l = 0; l < 8; l++)
    sum[l] = __builtin_fmaf(a[l], b[l], c[l]);
  return sum;
}

// e^x for x <= 0, or NaN: 2^n need not be split, as 2^(n + 64) is normal. All coefficients are those of
// e^r times 2^-64, which changes no rounding.
static inline float tf_exp_nonpositive_float(float x) {
  float t = __builtin_fmaf(x, 0x1.715476p+0f, 0x1.80017ep+23f); // n + 127 + 64 in its low bits
  float n = t - 0x1.80017ep+23f;
  float r = __builtin_fmaf(n, -0x1.7f7d1cp-20f, __builtin_fmaf(n, -0x1.62e4p-1f, x));
  float q = 0x1.6a5166p-74f;
  q = __builtin_fmaf(q, r, 0x1.123e52p-71f);
  q = __builtin_fmaf(q, r, 0x1.5558d6p-69f);
  q = __builtin_fmaf(q, r, 0x1.555494p-67f);
  q = __builtin_fmaf(q, r, 0x1.fffffcp-66f);
  q = __builtin_fmaf(q, r, 0x1p-64f);
  q = __builtin_fmaf(q, r, 0x1p-64f);
  float y = q * tf_from_bits_float(tf_bits_float(t) << 23);
  return x < -104.5f ? 0.0f : y;
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

// scores = query @ np.swapaxes(key, -1, -2) * np.float32(0.25)
// return weights / weights.sum(axis=-1, keepdims=True) @ value
// [query_copy, matmul, scores, out_tops, out_before, out_base, out_scale, out_weights, ... and 5
//   more] reads 96 KiB, writes 32 KiB, 9791488 operations
static void causal_attention_out(const float *restrict query, const float *restrict key, const float *restrict value, float *restrict out, long begin, long end) {
  for (long j_outer = begin; j_outer < end; j_outer++)
    for (long i = 0; i < 2; i++) {
      float query_copy[1024];
      float out_total[64];
      float out_weighted[1024];
      tf_transpose_8_uint32(query_copy, 64, query + 4096 * i + 1024 * j_outer, 16, 16, 64);
      uint32_t out_before[64];
      for (long j = 0; j < 64; j++)
        out_total[j] = 0.0f;
      for (long j = 0; j < 64; j++)
        out_before[j] = 0u;
      for (long j_outer_1 = 0; j_outer_1 < 1024; j_outer_1++)
        out_weighted[j_outer_1] = 0.0f;
      for (long b = 0; b < 4; b++) {
        if (j_outer - b >= 0) {
          float scores_and_out_weights[4096];
          uint32_t out_tops[64];
          float out_base[64];
          float out_scale[64];
          float_x8 out_sums[8];
          for (long j_outer_1 = 0; j_outer_1 < 4; j_outer_1++)
            for (long k_outer = 0; k_outer < 16; k_outer++) {
              if (16 * j_outer + 4 * j_outer_1 - 16 * b - k_outer >= -3) {
                float_x8 matmul[8];
                matmul[0] = tf_splat_float_x8(0.0f);
                matmul[1] = tf_splat_float_x8(0.0f);
                matmul[2] = tf_splat_float_x8(0.0f);
                matmul[3] = tf_splat_float_x8(0.0f);
                matmul[4] = tf_splat_float_x8(0.0f);
                matmul[5] = tf_splat_float_x8(0.0f);
                matmul[6] = tf_splat_float_x8(0.0f);
                matmul[7] = tf_splat_float_x8(0.0f);
                for (long l = 0; l < 16; l++) {
                  matmul[0] = tf_fma_float_x8(*(const float_x8 *)&query_copy[64 * l + 16 * j_outer_1], tf_splat_float_x8(key[4096 * i + 1024 * b + 64 * k_outer + l]), matmul[0]);
                  matmul[1] = tf_fma_float_x8(*(const float_x8 *)&query_copy[64 * l + 16 * j_outer_1 + 8], tf_splat_float_x8(key[4096 * i + 1024 * b + 64 * k_outer + l]), matmul[1]);
                  matmul[2] = tf_fma_float_x8(*(const float_x8 *)&query_copy[64 * l + 16 * j_outer_1], tf_splat_float_x8(key[4096 * i + 1024 * b + 64 * k_outer + l + 16]), matmul[2]);
                  matmul[3] = tf_fma_float_x8(*(const float_x8 *)&query_copy[64 * l + 16 * j_outer_1 + 8], tf_splat_float_x8(key[4096 * i + 1024 * b + 64 * k_outer + l + 16]), matmul[3]);
                  matmul[4] = tf_fma_float_x8(*(const float_x8 *)&query_copy[64 * l + 16 * j_outer_1], tf_splat_float_x8(key[4096 * i + 1024 * b + 64 * k_outer + l + 32]), matmul[4]);
                  matmul[5] = tf_fma_float_x8(*(const float_x8 *)&query_copy[64 * l + 16 * j_outer_1 + 8], tf_splat_float_x8(key[4096 * i + 1024 * b + 64 * k_outer + l + 32]), matmul[5]);
                  matmul[6] = tf_fma_float_x8(*(const float_x8 *)&query_copy[64 * l + 16 * j_outer_1], tf_splat_float_x8(key[4096 * i + 1024 * b + 64 * k_outer + l + 48]), matmul[6]);
                  matmul[7] = tf_fma_float_x8(*(const float_x8 *)&query_copy[64 * l + 16 * j_outer_1 + 8], tf_splat_float_x8(key[4096 * i + 1024 * b + 64 * k_outer + l + 48]), matmul[7]);
                }
                *(float_x8 *)&scores_and_out_weights[256 * k_outer + 16 * j_outer_1] = matmul[0] * tf_splat_float_x8(0.25f);
                *(float_x8 *)&scores_and_out_weights[256 * k_outer + 16 * j_outer_1 + 8] = matmul[1] * tf_splat_float_x8(0.25f);
                *(float_x8 *)&scores_and_out_weights[256 * k_outer + 16 * j_outer_1 + 64] = matmul[2] * tf_splat_float_x8(0.25f);
                *(float_x8 *)&scores_and_out_weights[256 * k_outer + 16 * j_outer_1 + 72] = matmul[3] * tf_splat_float_x8(0.25f);
                *(float_x8 *)&scores_and_out_weights[256 * k_outer + 16 * j_outer_1 + 128] = matmul[4] * tf_splat_float_x8(0.25f);
                *(float_x8 *)&scores_and_out_weights[256 * k_outer + 16 * j_outer_1 + 136] = matmul[5] * tf_splat_float_x8(0.25f);
                *(float_x8 *)&scores_and_out_weights[256 * k_outer + 16 * j_outer_1 + 192] = matmul[6] * tf_splat_float_x8(0.25f);
                *(float_x8 *)&scores_and_out_weights[256 * k_outer + 16 * j_outer_1 + 200] = matmul[7] * tf_splat_float_x8(0.25f);
              }
            }
          if (j_outer - b >= 1) {
            for (long j = 0; j < 64; j++)
              out_tops[j] = 0u;
            for (long e = 0; e < 64; e++)
              for (long j = 0; j < 64; j++)
                out_tops[j] = tf_maximum_uint32(out_tops[j], tf_rank_nan_last_float(scores_and_out_weights[64 * e + j]));
          } else {
            for (long j = 0; j < 64; j++)
              out_tops[j] = 0u;
            for (long e = 0; e < 64; e++)
              for (long j = 0; j < 64; j++)
                out_tops[j] = tf_maximum_uint32(out_tops[j], tf_rank_nan_last_float((int)j >= (int)(-64 * j_outer + 64 * b + e) ? scores_and_out_weights[64 * e + j] : -__builtin_inff()));
          }
          for (long j = 0; j < 64; j++)
            out_base[j] = tf_select_float(tf_of_rank_nan_last_float(tf_maximum_uint32(out_before[j], out_tops[j])) == (-__builtin_inff()), 0.0f, tf_of_rank_nan_last_float(tf_maximum_uint32(out_before[j], out_tops[j])));
          for (long j = 0; j < 64; j++)
            out_scale[j] = tf_exp_nonpositive_float(tf_of_rank_nan_last_float(out_before[j]) - out_base[j]);
          if (j_outer - b >= 1) {
            for (long e = 0; e < 64; e++)
              for (long j = 0; j < 64; j++)
                scores_and_out_weights[64 * e + j] = tf_exp_nonpositive_float(scores_and_out_weights[64 * e + j] - out_base[j]);
          } else {
            for (long e = 0; e < 64; e++)
              for (long j = 0; j < 64; j++)
                scores_and_out_weights[64 * e + j] = tf_exp_nonpositive_float(((int)j >= (int)(-64 * j_outer + 64 * b + e) ? scores_and_out_weights[64 * e + j] : -__builtin_inff()) - out_base[j]);
          }
          out_sums[0] = tf_splat_float_x8(0.0f);
          out_sums[1] = tf_splat_float_x8(0.0f);
          out_sums[2] = tf_splat_float_x8(0.0f);
          out_sums[3] = tf_splat_float_x8(0.0f);
          out_sums[4] = tf_splat_float_x8(0.0f);
          out_sums[5] = tf_splat_float_x8(0.0f);
          out_sums[6] = tf_splat_float_x8(0.0f);
          out_sums[7] = tf_splat_float_x8(0.0f);
          for (long e = 0; e < 64; e++) {
            out_sums[0] = out_sums[0] + *(const float_x8 *)&scores_and_out_weights[64 * e];
            out_sums[1] = out_sums[1] + *(const float_x8 *)&scores_and_out_weights[64 * e + 8];
            out_sums[2] = out_sums[2] + *(const float_x8 *)&scores_and_out_weights[64 * e + 16];
            out_sums[3] = out_sums[3] + *(const float_x8 *)&scores_and_out_weights[64 * e + 24];
            out_sums[4] = out_sums[4] + *(const float_x8 *)&scores_and_out_weights[64 * e + 32];
            out_sums[5] = out_sums[5] + *(const float_x8 *)&scores_and_out_weights[64 * e + 40];
            out_sums[6] = out_sums[6] + *(const float_x8 *)&scores_and_out_weights[64 * e + 48];
            out_sums[7] = out_sums[7] + *(const float_x8 *)&scores_and_out_weights[64 * e + 56];
          }
          *(float_x8 *)&out_total[0] = tf_fma_float_x8(*(float_x8 *)&out_total[0], *(const float_x8 *)&out_scale[0], out_sums[0]);
          *(float_x8 *)&out_total[8] = tf_fma_float_x8(*(float_x8 *)&out_total[8], *(const float_x8 *)&out_scale[8], out_sums[1]);
          *(float_x8 *)&out_total[16] = tf_fma_float_x8(*(float_x8 *)&out_total[16], *(const float_x8 *)&out_scale[16], out_sums[2]);
          *(float_x8 *)&out_total[24] = tf_fma_float_x8(*(float_x8 *)&out_total[24], *(const float_x8 *)&out_scale[24], out_sums[3]);
          *(float_x8 *)&out_total[32] = tf_fma_float_x8(*(float_x8 *)&out_total[32], *(const float_x8 *)&out_scale[32], out_sums[4]);
          *(float_x8 *)&out_total[40] = tf_fma_float_x8(*(float_x8 *)&out_total[40], *(const float_x8 *)&out_scale[40], out_sums[5]);
          *(float_x8 *)&out_total[48] = tf_fma_float_x8(*(float_x8 *)&out_total[48], *(const float_x8 *)&out_scale[48], out_sums[6]);
          *(float_x8 *)&out_total[56] = tf_fma_float_x8(*(float_x8 *)&out_total[56], *(const float_x8 *)&out_scale[56], out_sums[7]);
          for (long j_outer_1 = 0; j_outer_1 < 16; j_outer_1++) {
            float_x8 out_products[8];
            out_products[0] = tf_splat_float_x8(0.0f);
            out_products[1] = tf_splat_float_x8(0.0f);
            out_products[2] = tf_splat_float_x8(0.0f);
            out_products[3] = tf_splat_float_x8(0.0f);
            out_products[4] = tf_splat_float_x8(0.0f);
            out_products[5] = tf_splat_float_x8(0.0f);
            out_products[6] = tf_splat_float_x8(0.0f);
            out_products[7] = tf_splat_float_x8(0.0f);
            for (long g = 0; g < 8; g++) {
              if (16 * j_outer + j_outer_1 - 16 * b - 2 * g >= 0) {
                for (long e = 0; e < 8; e++) {
                  out_products[0] = tf_fma_float_x8(tf_splat_float_x8(scores_and_out_weights[64 * e + 512 * g + 4 * j_outer_1]), *(const float_x8 *)&value[4096 * i + 1024 * b + 16 * e + 128 * g], out_products[0]);
                  out_products[1] = tf_fma_float_x8(tf_splat_float_x8(scores_and_out_weights[64 * e + 512 * g + 4 * j_outer_1]), *(const float_x8 *)&value[4096 * i + 1024 * b + 16 * e + 128 * g + 8], out_products[1]);
                  out_products[2] = tf_fma_float_x8(tf_splat_float_x8(scores_and_out_weights[64 * e + 512 * g + 4 * j_outer_1 + 1]), *(const float_x8 *)&value[4096 * i + 1024 * b + 16 * e + 128 * g], out_products[2]);
                  out_products[3] = tf_fma_float_x8(tf_splat_float_x8(scores_and_out_weights[64 * e + 512 * g + 4 * j_outer_1 + 1]), *(const float_x8 *)&value[4096 * i + 1024 * b + 16 * e + 128 * g + 8], out_products[3]);
                  out_products[4] = tf_fma_float_x8(tf_splat_float_x8(scores_and_out_weights[64 * e + 512 * g + 4 * j_outer_1 + 2]), *(const float_x8 *)&value[4096 * i + 1024 * b + 16 * e + 128 * g], out_products[4]);
                  out_products[5] = tf_fma_float_x8(tf_splat_float_x8(scores_and_out_weights[64 * e + 512 * g + 4 * j_outer_1 + 2]), *(const float_x8 *)&value[4096 * i + 1024 * b + 16 * e + 128 * g + 8], out_products[5]);
                  out_products[6] = tf_fma_float_x8(tf_splat_float_x8(scores_and_out_weights[64 * e + 512 * g + 4 * j_outer_1 + 3]), *(const float_x8 *)&value[4096 * i + 1024 * b + 16 * e + 128 * g], out_products[6]);
                  out_products[7] = tf_fma_float_x8(tf_splat_float_x8(scores_and_out_weights[64 * e + 512 * g + 4 * j_outer_1 + 3]), *(const float_x8 *)&value[4096 * i + 1024 * b + 16 * e + 128 * g + 8], out_products[7]);
                }
              }
            }
            *(float_x8 *)&out_weighted[64 * j_outer_1] = tf_fma_float_x8(*(float_x8 *)&out_weighted[64 * j_outer_1], tf_splat_float_x8(out_scale[4 * j_outer_1]), out_products[0]);
            *(float_x8 *)&out_weighted[64 * j_outer_1 + 8] = tf_fma_float_x8(*(float_x8 *)&out_weighted[64 * j_outer_1 + 8], tf_splat_float_x8(out_scale[4 * j_outer_1]), out_products[1]);
            *(float_x8 *)&out_weighted[64 * j_outer_1 + 16] = tf_fma_float_x8(*(float_x8 *)&out_weighted[64 * j_outer_1 + 16], tf_splat_float_x8(out_scale[4 * j_outer_1 + 1]), out_products[2]);
            *(float_x8 *)&out_weighted[64 * j_outer_1 + 24] = tf_fma_float_x8(*(float_x8 *)&out_weighted[64 * j_outer_1 + 24], tf_splat_float_x8(out_scale[4 * j_outer_1 + 1]), out_products[3]);
            *(float_x8 *)&out_weighted[64 * j_outer_1 + 32] = tf_fma_float_x8(*(float_x8 *)&out_weighted[64 * j_outer_1 + 32], tf_splat_float_x8(out_scale[4 * j_outer_1 + 2]), out_products[4]);
            *(float_x8 *)&out_weighted[64 * j_outer_1 + 40] = tf_fma_float_x8(*(float_x8 *)&out_weighted[64 * j_outer_1 + 40], tf_splat_float_x8(out_scale[4 * j_outer_1 + 2]), out_products[5]);
            *(float_x8 *)&out_weighted[64 * j_outer_1 + 48] = tf_fma_float_x8(*(float_x8 *)&out_weighted[64 * j_outer_1 + 48], tf_splat_float_x8(out_scale[4 * j_outer_1 + 3]), out_products[6]);
            *(float_x8 *)&out_weighted[64 * j_outer_1 + 56] = tf_fma_float_x8(*(float_x8 *)&out_weighted[64 * j_outer_1 + 56], tf_splat_float_x8(out_scale[4 * j_outer_1 + 3]), out_products[7]);
          }
          for (long j = 0; j < 64; j++)
            out_before[j] = tf_maximum_uint32(out_before[j], out_tops[j]);
        }
      }
      for (long j = 0; j < 64; j++)
        for (long k = 0; k < 16; k++)
          out[4096 * i + 1024 * j_outer + 16 * j + k] = out_weighted[16 * j + k] / out_total[j];
    }
}

static void causal_attention_out_task(void *const *buffers, long begin, long end) {
  causal_attention_out(buffers[0], buffers[1], buffers[2], buffers[3], begin, end);
}

// arrays: query float32[8192], key float32[8192], value float32[8192]; then the results:
//   out float32[8192]
// scratch: 0 bytes; returns 0
int causal_attention(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  float *query = arrays[0];
  float *key = arrays[1];
  float *value = arrays[2];
  float *out = arrays[3];
  tf_run(pool, causal_attention_out_task, (void *[]){query, key, value, out}, 4, 1);
  return 0;
}
