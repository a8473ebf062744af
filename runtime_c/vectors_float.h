// Vectors of LANES elements of real_t, with operations that only these have.

// a * b + c in every lane, rounded once. Of the loop compilers make as much, but gcc loads whole
// vectors of which it needs one element.
static inline vector_t tf_fma_vector(vector_t a, vector_t b, vector_t c) {
#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_fma)
  return __builtin_elementwise_fma(a, b, c);
#endif
#elif defined(HAS_FMA)
  return (vector_t)FMA;
#endif
  vector_t sum;
  for (long l = 0; l < LANES; l++)
    sum[l] = __builtin_fma_real(a[l], b[l], c[l]);
  return sum;
}
