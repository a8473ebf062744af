// Rows of 64 or 32 lanes, halved to one element, written for real_t. The shorter halves are vectors,
// since gcc would combine those of an array one element at a time.

// The sum of 32 lanes, in the first: lanes[l] += lanes[l + half] for half = 16, 8, 4, 2, 1.
static inline void tf_halve_32_real(real_t *lanes) {
  typedef real_t eight_t __attribute__((vector_size(8 * sizeof(real_t)), aligned(sizeof(real_t)), may_alias));
  typedef real_t four_t __attribute__((vector_size(4 * sizeof(real_t)), aligned(sizeof(real_t)), may_alias));
  typedef real_t two_t __attribute__((vector_size(2 * sizeof(real_t)), aligned(sizeof(real_t)), may_alias));
  for (long l = 0; l < 16; l++)
    lanes[l] += lanes[l + 16];
  *(eight_t *)lanes += *(eight_t *)(lanes + 8);
  *(four_t *)lanes += *(four_t *)(lanes + 4);
  *(two_t *)lanes += *(two_t *)(lanes + 2);
  lanes[0] += lanes[1];
}

// The sum of 64 lanes, in the first.
static inline void tf_halve_64_real(real_t *lanes) {
  for (long l = 0; l < 32; l++)
    lanes[l] += lanes[l + 32];
  tf_halve_32_real(lanes);
}
