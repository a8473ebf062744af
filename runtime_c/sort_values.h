// Sorting of a row: NaN comes last, -0 and +0 are equal, and what is equal stays in its order. Written
// for value_t: tinyfuse pastes what a program uses, with float, int32_t or another type in its place
// and the unsigned integer of its size for key_t.

// Stores a row of n elements in ascending order; `to` may be the row. `keys` has room for 2 n.
static inline void tf_sort_value(const value_t *row, value_t *to, key_t *keys, long n) {
  for (long i = 0; i < n; i++)
    keys[i] = tf_order_value(row[i]);
  tf_sort_items_key(keys, keys + n, n, 0, sizeof(key_t));
  tf_put_sorted_value(row, to, keys, n);
}
