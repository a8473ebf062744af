// Conversions of rows of floats from and to float16_t, a vector at a time where processors have that,
// with the results of one by one but for the payloads of NaN.

// to[k] = from[k] as a float.
static inline void tf_float_row_of_float16(float *restrict to, const float16_t *restrict from, long extent) {
  long k = 0;
#if defined(__AVX512F__)
  typedef float floats_t __attribute__((vector_size(64), aligned(4), may_alias));
  typedef short halves_t __attribute__((vector_size(32), aligned(2), may_alias));
  for (; k + 16 <= extent; k += 16) {
    const halves_t halves = *(const halves_t *)(from + k);
    *(floats_t *)(to + k) = (floats_t)__builtin_ia32_vcvtph2ps512_mask(halves, (floats_t){0}, -1, 4);
  }
#elif defined(__F16C__)
  typedef float floats_t __attribute__((vector_size(32), aligned(4), may_alias));
  typedef short halves_t __attribute__((vector_size(16), aligned(2), may_alias));
  for (; k + 8 <= extent; k += 8)
    *(floats_t *)(to + k) = (floats_t)__builtin_ia32_vcvtph2ps256(*(const halves_t *)(from + k));
#endif
  for (; k < extent; k++)
    to[k] = tf_float_of_float16(from[k]);
}

// to[k] = the nearest float16_t to from[k].
static inline void tf_float16_row_of_float(float16_t *restrict to, const float *restrict from, long extent) {
  long k = 0;
#if defined(__AVX512F__)
  typedef float floats_t __attribute__((vector_size(64), aligned(4), may_alias));
  typedef short halves_t __attribute__((vector_size(32), aligned(2), may_alias));
  for (; k + 16 <= extent; k += 16) {
    const floats_t floats = *(const floats_t *)(from + k);
    *(halves_t *)(to + k) = (halves_t)__builtin_ia32_vcvtps2ph512_mask(floats, 0, (halves_t){0}, -1);
  }
#elif defined(__F16C__)
  typedef float floats_t __attribute__((vector_size(32), aligned(4), may_alias));
  typedef short halves_t __attribute__((vector_size(16), aligned(2), may_alias));
  for (; k + 8 <= extent; k += 8)
    *(halves_t *)(to + k) = (halves_t)__builtin_ia32_vcvtps2ph256(*(const floats_t *)(from + k), 0);
#endif
  for (; k < extent; k++)
    to[k] = tf_float16_of_float(from[k]);
}
