// Comparisons of int64_t with uint64_t by value, and places of elements.

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

// The same place, out of sight of what it is made of: if that is whether a condition holds, gcc 12
// makes vectors that load at -1 in place of 1.
static inline int64_t tf_place(int64_t place) {
  __asm__("" : "+r"(place));
  return place;
}
