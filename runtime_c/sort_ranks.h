// Integers as signed ones to sort by: written for int_t and uint_t, of BITS, and rank_t, of 16 or more.

// An integer in the same order.
static inline rank_t tf_rank_int(int_t x) {
  return x;
}

// An integer in the same order.
static inline rank_t tf_rank_uint(uint_t x) {
  return (rank_t)(x ^ TOP_BIT);
}

// The ranks of n elements. Returns whether there is a -0.
static inline int tf_rank_row_int(const int_t *row, rank_t *ranks, long n) {
  for (long i = 0; i < n; i++)
    ranks[i] = tf_rank_int(row[i]);
  return 0;
}

// Stores the values that the sorted ranks of a row stand for.
static inline void tf_put_ranked_int(const int_t *row, int_t *to, const rank_t *ranks, rank_t *zeros, long n, int negative) {
  (void)row, (void)zeros, (void)negative;
  for (long i = 0; i < n; i++)
    to[i] = (int_t)ranks[i];
}

// The ranks of n elements. Returns whether there is a -0.
static inline int tf_rank_row_uint(const uint_t *row, rank_t *ranks, long n) {
  for (long i = 0; i < n; i++)
    ranks[i] = tf_rank_uint(row[i]);
  return 0;
}

// Stores the values that the sorted ranks of a row stand for.
static inline void tf_put_ranked_uint(const uint_t *row, uint_t *to, const rank_t *ranks, rank_t *zeros, long n, int negative) {
  (void)row, (void)zeros, (void)negative;
  for (long i = 0; i < n; i++)
    to[i] = (uint_t)ranks[i] ^ TOP_BIT;
}
