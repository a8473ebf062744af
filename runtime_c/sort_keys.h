// Items that are sorted by themselves, and integers as such items: written for int_t and uint_t.
// tinyfuse pastes what a program uses, with integers of one of the widths, of BITS, in their place.

// What an unsigned integer is sorted by.
static inline uint_t tf_key_uint(uint_t item) {
  return item;
}

// A key that is in the same order.
static inline uint_t tf_order_uint(uint_t x) {
  return x;
}

// A key that is in the same order.
static inline uint_t tf_order_int(int_t x) {
  return (uint_t)x ^ (uint_t)1 << (BITS - 1);
}

// Stores the values that the sorted keys of a row stand for.
static inline void tf_put_sorted_uint(const uint_t *row, uint_t *to, uint_t *keys, long n) {
  (void)row;
  for (long i = 0; i < n; i++)
    to[i] = keys[i];
}

// Stores the values that the sorted keys of a row stand for.
static inline void tf_put_sorted_int(const int_t *row, int_t *to, uint_t *keys, long n) {
  (void)row;
  for (long i = 0; i < n; i++)
    to[i] = (int_t)(keys[i] ^ (uint_t)1 << (BITS - 1));
}
