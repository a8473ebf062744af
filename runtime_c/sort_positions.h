// Positions in sorted order, of elements of at most four bytes: written for value_t as sort_values.h is. An
// element's key and its position are one integer. n is less than 2^32.

// Stores the positions of a row's n elements in ascending order. `scratch` has room for n.
static inline void tf_argsort_value(const value_t *row, int64_t *order, uint64_t *scratch, long n) {
  uint64_t *items = (uint64_t *)order;
  for (long i = 0; i < n; i++)
    items[i] = (uint64_t)tf_order_value(row[i]) << 32 | (uint64_t)i;
  tf_sort_items_uint64(items, scratch, n, 4, sizeof(value_t));
  for (long i = 0; i < n; i++)
    order[i] = (int64_t)(items[i] & 0xffffffff);
}
