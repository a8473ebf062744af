// Comparisons of int64_t with uint64_t by value.

// a == b.
static inline bool8_t tf_equal_int64_uint64(int64_t a, uint64_t b) {
  return (a >= 0) & ((uint64_t)a == b);
}

// a < b.
static inline bool8_t tf_less_int64_uint64(int64_t a, uint64_t b) {
  return (a < 0) | ((uint64_t)a < b);
}

// a <= b.
static inline bool8_t tf_less_equal_int64_uint64(int64_t a, uint64_t b) {
  return (a < 0) | ((uint64_t)a <= b);
}
