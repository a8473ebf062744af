typedef __UINT32_TYPE__ uint32_t;

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

// The larger of a and b; NaN where one is NaN; +0 is larger than -0.
static inline float tf_maximum_float(float a, float b) {
  float first = a > b ? a : b;
  float second = b > a ? b : a; // of two zeros, first is b and second is a
  float larger = tf_from_bits_float(tf_bits_float(first) & tf_bits_float(second));
  return __builtin_isunordered(a, b) ? a + b : larger;
}

// The smaller of a and b; NaN where one is NaN; -0 is smaller than +0.
static inline float tf_minimum_float(float a, float b) {
  float first = a < b ? a : b;
  float second = b < a ? b : a; // of two zeros, first is b and second is a
  float smaller = tf_from_bits_float(tf_bits_float(first) | tf_bits_float(second));
  return __builtin_isunordered(a, b) ? a + b : smaller;
}

typedef struct tf_pool tf_pool;

// x = x - x.min()
// [min] reads 200 B, writes 4 B, 50 operations
static void rebound_min(const float *restrict x, float *restrict min) {
  float min_acc = __builtin_inff();
  for (long k = 0; k < 50; k++)
    min_acc = tf_minimum_float(min_acc, x[k]);
  min[0] = min_acc;
}

// x = x - x.min()
// [x_1] reads 204 B, writes 200 B, 50 operations
static void rebound_x_1(const float *restrict x, const float *restrict min, float *restrict x_1) {
  for (long i = 0; i < 50; i++)
    x_1[i] = x[i] - min[0];
}

// x = x / x.max()
// [max] reads 200 B, writes 4 B, 50 operations
static void rebound_max(const float *restrict x_1, float *restrict max) {
  float max_acc = -__builtin_inff();
  for (long k = 0; k < 50; k++)
    max_acc = tf_maximum_float(max_acc, x_1[k]);
  max[0] = max_acc;
}

// x = x / x.max()
// [x_2] reads 204 B, writes 200 B, 50 operations
static void rebound_x_2(const float *restrict x_1, const float *restrict max, float *restrict x_2) {
  for (long i = 0; i < 50; i++)
    x_2[i] = x_1[i] / max[0];
}

// arrays: x float32[50]; then the results: x_2 float32[50]
// scratch: 320 bytes; returns 0
int rebound(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)pool;
  float *x = arrays[0];
  float *x_2 = arrays[1];
  float *min = scratch;
  float *x_1 = (void *)((char *)scratch + 64);
  float *max = scratch;
  rebound_min(x, min);
  rebound_x_1(x, min, x_1);
  rebound_max(x_1, max);
  rebound_x_2(x_1, max, x_2);
  return 0;
}
