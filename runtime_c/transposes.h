// Transposes: the columns of a block of elements stored as rows, moved as bits through vectors of
// LANES elements item_t. FIRST_HALVES and SECOND_HALVES stand for the lanes of two vectors by turns.

// to[to_step * r + c] = from[from_step * c + r] for r, c < LANES. When the rows of the two halves
// have been interleaved as often as LANES can be halved, they are columns.
static inline void tf_transpose_block_lanes_item(item_t *to, long to_step, const item_t *from, long from_step) {
  typedef item_t vector_t __attribute__((vector_size(LANES * sizeof(item_t)), aligned(sizeof(item_t)), may_alias));
  vector_t rows[LANES], mixed[LANES];
  for (long r = 0; r < LANES; r++)
    rows[r] = *(const vector_t *)(from + from_step * r);
  for (long round = 1; round < LANES; round *= 2) {
    for (long r = 0; r < LANES / 2; r++) {
#if defined(__clang__)
      mixed[2 * r] = __builtin_shufflevector(rows[r], rows[r + LANES / 2], FIRST_HALVES);
      mixed[2 * r + 1] = __builtin_shufflevector(rows[r], rows[r + LANES / 2], SECOND_HALVES);
#else
      mixed[2 * r] = __builtin_shuffle(rows[r], rows[r + LANES / 2], (vector_t){FIRST_HALVES});
      mixed[2 * r + 1] = __builtin_shuffle(rows[r], rows[r + LANES / 2], (vector_t){SECOND_HALVES});
#endif
    }
    for (long r = 0; r < LANES; r++)
      rows[r] = mixed[r];
  }
  for (long r = 0; r < LANES; r++)
    *(vector_t *)(to + to_step * r) = rows[r];
}

// The same for r < rows and c < columns, LANES or more each. The last blocks begin earlier where
// that is no multiple, and store some elements a second time.
static inline void tf_transpose_lanes_item(void *to, long to_step, const void *from, long from_step, long rows, long columns) {
  for (long c = 0; c < columns; c += LANES) {
    long column = c + LANES <= columns ? c : columns - LANES;
    for (long r = 0; r < rows; r += LANES) {
      long row = r + LANES <= rows ? r : rows - LANES;
      item_t *block = (item_t *)to + to_step * row + column;
      tf_transpose_block_lanes_item(block, to_step, (const item_t *)from + from_step * column + row, from_step);
    }
  }
}
