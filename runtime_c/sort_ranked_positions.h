// Positions in sorted order, of elements of at most four bytes: written as sort_ranked.h is. An
// element's rank and its position are one integer, of eight bytes. n is less than 2^32.

// Stores the positions of a row's n elements in ascending order. `work` has room for
// 2 (n + ROWS * LANES).
static inline void tf_argsort_value_network(const value_t *row, int64_t *order, int64_t *work, long n) {
  for (long i = 0; i < n; i++)
    work[i] = (int64_t)((uint64_t)tf_rank_value(row[i]) << 32 | (uint64_t)i);
  int64_t *items = tf_sort_items_network(work, work + n + ROWS * LANES, n);
  for (long i = 0; i < n; i++)
    order[i] = items[i] & 0xffffffff;
}
