typedef __UINT8_TYPE__ bool8_t; // 0 or 1
typedef __INT32_TYPE__ int32_t;
typedef __UINT32_TYPE__ uint32_t;

// -x. Where gcc 12 sees that x < 0 ? -x : x is |x|, it takes |x| <= 0 for x == 0: wrong for the
// smallest value, whose opposite is itself.
static inline int32_t tf_negative_int32(int32_t x) {
  return (int32_t)(-(uint32_t)x);
}

// chosen where the condition holds, else other. Both are loaded before, since gcc 12 mixes up loads
// behind several conditions, in steps of a loop that it writes out.
static inline int32_t tf_select_int32(bool8_t condition, int32_t chosen, int32_t other) {
  return condition ? chosen : other;
}

typedef struct tf_pool tf_pool;

// joined = np.concatenate([x, -x], axis=1)
// return np.where(joined < low, low, np.where(joined > high, high, joined))
// [negative, joined, less, greater, select, out] reads 92 B, writes 96 B, 60 operations
static void limited_out(const int32_t *restrict x, const int32_t *restrict low, const int32_t *restrict high, int32_t *restrict out) {
  for (long i = 0; i < 3; i++) {
    for (long j = 0; j < 4; j++) {
      const int32_t joined = x[4 * i + j];
      out[8 * i + j] = tf_select_int32(joined < low[i], low[i], tf_select_int32(joined > high[j], high[j], joined));
    }
    for (long j = 4; j < 8; j++) {
      const int32_t joined = tf_negative_int32(x[4 * i + j - 4]);
      out[8 * i + j] = tf_select_int32(joined < low[i], low[i], tf_select_int32(joined > high[j], high[j], joined));
    }
  }
}

// arrays: x int32[12], low int32[3], high int32[8]; then the results: out int32[24]
// scratch: 0 bytes; returns 0
int limited(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  int32_t *x = arrays[0];
  int32_t *low = arrays[1];
  int32_t *high = arrays[2];
  int32_t *out = arrays[3];
  limited_out(x, low, high, out);
  return 0;
}
