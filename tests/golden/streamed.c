// Stores a line of memory, 64 bytes, at a multiple of 64.
static inline void tf_stream_line(void *to, const void *from) {
#if defined(__clang__)
  typedef float line_t __attribute__((vector_size(64), aligned(1), may_alias));
  typedef float target_t __attribute__((vector_size(64), may_alias));
  __builtin_nontemporal_store(*(const line_t *)from, (target_t *)to);
#elif defined(__AVX512F__)
  typedef float line_t __attribute__((vector_size(64), aligned(1), may_alias));
  __builtin_ia32_movntps512(to, *(const line_t *)from);
#elif defined(__AVX__)
  typedef float half_t __attribute__((vector_size(32), aligned(1), may_alias));
  for (long half = 0; half < 2; half++)
    __builtin_ia32_movntps256((float *)to + 8 * half, ((const half_t *)from)[half]);
#elif defined(__SSE__)
  typedef float quarter_t __attribute__((vector_size(16), aligned(1), may_alias));
  for (long quarter = 0; quarter < 4; quarter++)
    __builtin_ia32_movntps((float *)to + 4 * quarter, ((const quarter_t *)from)[quarter]);
#else
  __builtin_memcpy(to, from, 64);
#endif
}

// Stores bytes: whole lines past the caches, what is before and after them as usual.
static inline void tf_stream(void *to, const void *from, long bytes) {
  char *target = to;
  const char *source = from;
  long done = -(unsigned long)to % 64;
  done = done < bytes ? done : bytes;
  __builtin_memcpy(target, source, done);
  for (; done + 64 <= bytes; done += 64)
    tf_stream_line(target + done, source + done);
  __builtin_memcpy(target + done, source + done, bytes - done);
}

// How many elements, of `size` bytes each, to compute and stream next: 1 KiB, less what takes the
// ones after them to the start of a line.
static inline long tf_stream_length(const void *to, long left, long size) {
  long length = (1024 - (long)((unsigned long)to % 64)) / size;
  return length < left ? length : left;
}

// After this other threads see what was streamed before, as they do what was stored.
static inline void tf_stream_end(void) {
#if defined(__SSE__)
  __builtin_ia32_sfence();
#endif
}

typedef struct tf_pool tf_pool;

// [multiply, out] reads 39.1 KiB, writes 19.5 KiB, 10000 operations
static void scaled_out(const float *restrict x, const float *restrict y, float *restrict out) {
  for (long i_first = 0, i_next; i_first < 5000; i_first = i_next) {
    float out_block[256];
    i_next = i_first + tf_stream_length(out + i_first, 5000 - i_first, 4);
    for (long i = i_first; i < i_next; i++)
      out_block[i - i_first] = x[i] * y[i] + y[i];
    tf_stream(out + i_first, out_block, 4 * (i_next - i_first));
  }
  tf_stream_end();
}

// arrays: x float32[5000], y float32[5000]; then the results: out float32[5000]
// scratch: 0 bytes; returns 0
int scaled(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  float *x = arrays[0];
  float *y = arrays[1];
  float *out = arrays[2];
  scaled_out(x, y, out);
  return 0;
}
