// What `calibrate` times. Every entry does the same work `repeats` times over, on arrays whose first
// one holds {count, repeats, parts}. Above it stand entry.h and int64_t.

// Between repetitions, so that each of them loads and stores.
static void touch_memory(void) { __asm__ volatile("" ::: "memory"); }

// y = 2 x + 3 on parts of `count` elements, one for each thread, which repeats it by itself.
static void scale_parts(void *const *arrays, long begin, long end) {
  const int64_t count = ((const int64_t *)arrays[0])[0], repeats = ((const int64_t *)arrays[0])[1];
  for (long part = begin; part < end; part++) {
    const float *restrict x = (const float *)arrays[1] + part * count;
    float *restrict y = (float *)arrays[2] + part * count;
    for (int64_t r = 0; r < repeats; r++) {
      for (int64_t i = 0; i < count; i++)
        y[i] = x[i] * 2.0f + 3.0f;
      touch_memory();
    }
  }
}

int scale(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  tf_run(pool, scale_parts, arrays, ((const int64_t *)arrays[0])[2], 1);
  return 0;
}

// Sixteen additions to every element, which wait for each other, but not for those of other elements.
int add_float32(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch, (void)pool;
  const int64_t count = ((const int64_t *)arrays[0])[0], repeats = ((const int64_t *)arrays[0])[1];
  const float *restrict x = arrays[1];
  float *restrict y = arrays[2];
  for (int64_t r = 0; r < repeats; r++) {
    const float c = x[0];
    for (int64_t i = 0; i < count; i++) {
      float s = x[i];
      for (int k = 0; k < 16; k++)
        s += c;
      y[i] = s;
    }
    touch_memory();
  }
  return 0;
}

int add_float64(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch, (void)pool;
  const int64_t count = ((const int64_t *)arrays[0])[0], repeats = ((const int64_t *)arrays[0])[1];
  const double *restrict x = arrays[1];
  double *restrict y = arrays[2];
  for (int64_t r = 0; r < repeats; r++) {
    const double c = x[0];
    for (int64_t i = 0; i < count; i++) {
      double s = x[i];
      for (int k = 0; k < 16; k++)
        s += c;
      y[i] = s;
    }
    touch_memory();
  }
  return 0;
}

// A sum in one chain.
int chain(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch, (void)pool;
  const int64_t count = ((const int64_t *)arrays[0])[0], repeats = ((const int64_t *)arrays[0])[1];
  const float *restrict x = arrays[1];
  float *restrict y = arrays[2];
  for (int64_t r = 0; r < repeats; r++) {
    float s = 0.0f;
    for (int64_t i = 0; i < count; i++)
      s += x[i];
    y[0] = s;
    touch_memory();
  }
  return 0;
}

static __attribute__((noinline)) void small_kernel(const float *restrict x, float *restrict y) {
  for (long i = 0; i < 16; i++)
    y[i] = x[i] * 2.0f + 3.0f;
}

int call(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch, (void)pool;
  const int64_t repeats = ((const int64_t *)arrays[0])[1];
  for (int64_t r = 0; r < repeats; r++) {
    small_kernel(arrays[1], arrays[2]);
    touch_memory();
  }
  return 0;
}

enum { PATIENCE = 1 << 16 }; // turns that a thread waits for one that may never come

// Each of two parts waits until the other one has begun too.
static void meet(void *const *buffers, long begin, long end) {
  int64_t *begun = buffers[1];
  for (long part = begin; part < end; part++) {
    __atomic_add_fetch(begun, 1, __ATOMIC_SEQ_CST);
    for (int turn = 0; turn < PATIENCE && __atomic_load_n(begun, __ATOMIC_SEQ_CST) % 2; turn++)
      touch_memory();
  }
}

int share(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  const int64_t repeats = ((const int64_t *)arrays[0])[1];
  *(int64_t *)arrays[1] = 0;
  for (int64_t r = 0; r < repeats; r++)
    tf_run(pool, meet, arrays, 2, 1);
  return 0;
}
