// Sorting of a row in vectors: NaN comes last, -0 and +0 are equal, and what is equal stays in its
// order. Written for value_t and the shape of a block, `network`, of integers item_t.

// Stores a row of n elements in ascending order; `to` may be the row. `work` has room for
// 2 (n + ROWS * LANES).
static inline void tf_sort_value_network(const value_t *row, value_t *to, item_t *work, long n) {
  item_t *scratch = work + n + ROWS * LANES;
  int negative = tf_rank_row_value(row, work, n);
  item_t *ranks = tf_sort_items_network(work, scratch, n);
  tf_put_ranked_value(row, to, ranks, ranks == work ? scratch : work, n, negative);
}
