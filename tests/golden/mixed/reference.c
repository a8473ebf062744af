typedef __UINT32_TYPE__ uint32_t;

// to[to_step * r + c] = from[from_step * c + r] for r, c < 4. When the rows of the two halves
// have been interleaved as often as 4 can be halved, they are columns.
static inline void tf_transpose_block_4_uint32(uint32_t *to, long to_step, const uint32_t *from, long from_step) {
  typedef uint32_t vector_t __attribute__((vector_size(4 * sizeof(uint32_t)), aligned(sizeof(uint32_t)), may_alias));
  vector_t rows[4], mixed[4];
  for (long r = 0; r < 4; r++)
    rows[r] = *(const vector_t *)(from + from_step * r);
  for (long round = 1; round < 4; round *= 2) {
    for (long r = 0; r < 4 / 2; r++) {
#if defined(__clang__)
      mixed[2 * r] = __builtin_shufflevector(rows[r], rows[r + 4 / 2], 0, 4, 1, 5);
      mixed[2 * r + 1] = __builtin_shufflevector(rows[r], rows[r + 4 / 2], 2, 6, 3, 7);
#else
      mixed[2 * r] = __builtin_shuffle(rows[r], rows[r + 4 / 2], (vector_t){0, 4, 1, 5});
      mixed[2 * r + 1] = __builtin_shuffle(rows[r], rows[r + 4 / 2], (vector_t){2, 6, 3, 7});
#endif
    }
    for (long r = 0; r < 4; r++)
      rows[r] = mixed[r];
  }
  for (long r = 0; r < 4; r++)
    *(vector_t *)(to + to_step * r) = rows[r];
}

// The same for r < rows and c < columns, 4 or more each. The last blocks begin earlier where
// that is no multiple, and store some elements a second time.
static inline void tf_transpose_4_uint32(void *to, long to_step, const void *from, long from_step, long rows, long columns) {
  for (long c = 0; c < columns; c += 4) {
    long column = c + 4 <= columns ? c : columns - 4;
    for (long r = 0; r < rows; r += 4) {
      long row = r + 4 <= rows ? r : rows - 4;
      uint32_t *block = (uint32_t *)to + to_step * row + column;
      tf_transpose_block_4_uint32(block, to_step, (const uint32_t *)from + from_step * column + row, from_step);
    }
  }
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

typedef struct tf_pool tf_pool;

// return image.T * weights - image.mean()
// [image_copy, multiply, sum_lanes, sum_blocks, sum, divide, out] reads 21.9 KiB, writes 10.9 KiB,
//   8613 operations
static void mixed_out(const float *restrict image, const float *restrict weights, float *restrict out) {
  float sum;
  float sum_blocks[3];
  for (long b = 0; b < 3; b++) {
    float sum_lanes[64];
    if (b < 2) {
      for (long l = 0; l < 64; l++)
        sum_lanes[l] = 0.0f;
      for (long s = 0; s < 16; s++)
        for (long l = 0; l < 64; l++)
          sum_lanes[l] += image[1024 * b + 64 * s + l];
    } else {
      for (long l = 0; l < 64; l++)
        sum_lanes[l] = 0.0f;
      for (long s = 0; s < 11; s++)
        for (long l = 0; l < 64; l++)
          sum_lanes[l] += image[64 * s + l + 2048];
      for (long l = 0; l < 64; l++)
        sum_lanes[l] = l < 48 ? sum_lanes[l] + image[l + 2752] : sum_lanes[l];
    }
    tf_halve_64_float(sum_lanes);
    sum_blocks[b] = sum_lanes[0];
  }
  sum_blocks[0] += sum_blocks[1];
  sum_blocks[0] += sum_blocks[2];
  sum = sum_blocks[0];
  for (long i_outer = 0; i_outer < 2; i_outer++) {
    {
      float image_copy[1024];
      tf_transpose_16_uint32(image_copy, 32, image + 32 * i_outer, 70, 32, 32);
      const float divide = sum / 2800.0f;
      for (long i = 0; i < 32; i++)
        for (long j = 0; j < 32; j++)
          out[1280 * i_outer + 40 * i + j] = image_copy[32 * i + j] * weights[1280 * i_outer + 40 * i + j] - divide;
    }
    {
      float image_copy[256];
      tf_transpose_8_uint32(image_copy, 8, image + 32 * i_outer + 2240, 70, 32, 8);
      const float divide = sum / 2800.0f;
      for (long i = 0; i < 32; i++)
        for (long j = 32; j < 40; j++)
          out[1280 * i_outer + 40 * i + j] = image_copy[8 * i + j - 32] * weights[1280 * i_outer + 40 * i + j] - divide;
    }
  }
  {
    float image_copy[192];
    tf_transpose_4_uint32(image_copy, 32, image + 64, 70, 6, 32);
    const float divide = sum / 2800.0f;
    for (long i = 64; i < 70; i++)
      for (long j = 0; j < 32; j++)
        out[40 * i + j] = image_copy[32 * i + j - 2048] * weights[40 * i + j] - divide;
  }
  {
    float image_copy[48];
    tf_transpose_4_uint32(image_copy, 8, image + 2304, 70, 6, 8);
    const float divide = sum / 2800.0f;
    for (long i = 64; i < 70; i++)
      for (long j = 32; j < 40; j++)
        out[40 * i + j] = image_copy[8 * i + j - 544] * weights[40 * i + j] - divide;
  }
}

// arrays: image float32[2800], weights float32[2800]; then the results: out float32[2800]
// scratch: 0 bytes; returns 0
int mixed(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  float *image = arrays[0];
  float *weights = arrays[1];
  float *out = arrays[2];
  mixed_out(image, weights, out);
  return 0;
}
