typedef __INT32_TYPE__ int32_t;

typedef struct tf_pool tf_pool;

// joined = np.concatenate([x, -x], axis=1)
// [negative, joined] reads 48 B, writes 96 B, 12 operations
static void limited_joined(const int32_t *restrict x, int32_t *restrict joined) {
  for (long i = 0; i < 3; i++) {
    for (long j = 0; j < 4; j++)
      joined[8 * i + j] = x[4 * i + j];
    for (long j = 4; j < 8; j++)
      joined[8 * i + j] = -x[4 * i + j - 4];
  }
}

// return np.where(joined < low, low, np.where(joined > high, high, joined))
// [less, greater, select, out] reads 140 B, writes 96 B, 48 operations
static void limited_out(const int32_t *restrict joined, const int32_t *restrict low, const int32_t *restrict high, int32_t *restrict out) {
  for (long i = 0; i < 3; i++)
    for (long j = 0; j < 8; j++)
      out[8 * i + j] = joined[8 * i + j] < low[i] ? low[i] : joined[8 * i + j] > high[j] ? high[j] : joined[8 * i + j];
}

int limited(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)pool;
  int32_t *x = arrays[0];
  int32_t *low = arrays[1];
  int32_t *high = arrays[2];
  int32_t *out = arrays[3];
  int32_t *joined = scratch;
  limited_joined(x, joined);
  limited_out(joined, low, high, out);
  return 0;
}
