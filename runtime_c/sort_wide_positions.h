// Positions in sorted order, of elements of eight bytes: written for value_t as sort_values.h is.

// Stores the positions of a row's n elements in ascending order. `scratch` has room for 4 n: for n
// pairs, and for as many to sort them with.
static inline void tf_argsort_value(const value_t *row, int64_t *order, uint64_t *scratch, long n) {
  pair_t *pairs = (pair_t *)scratch;
  for (long i = 0; i < n; i++)
    pairs[i] = (pair_t){tf_order_value(row[i]), (uint64_t)i};
  tf_sort_items_pair(pairs, pairs + n, n, 0, sizeof(uint64_t));
  for (long i = 0; i < n; i++)
    order[i] = (int64_t)pairs[i].position;
}
