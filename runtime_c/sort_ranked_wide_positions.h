// Positions in sorted order, of elements of eight bytes: written as sort_ranked.h is. As many of the
// highest bits of a rank, counted from the least one, as a position leaves room for are one integer
// with it; where these are equal, the bits below decide. n is less than 2^32.

// Puts n items in order whose ranks, counted from `least`, differ in their lowest `low` bits alone;
// they are in the order of their positions. `work` and `scratch` have room for ROWS * LANES more.
static inline void tf_sort_ties_value_network(const value_t *row, int64_t *items, int64_t *work, int64_t *scratch, long n, int64_t least, long low, long places) {
  const uint64_t place = ((uint64_t)1 << places) - 1, rank = ((uint64_t)1 << low) - 1;
  for (long i = 1; i < n && n <= 16; i++) {
    int64_t item = items[i];
    long to = i;
    for (; to && tf_rank_value(row[items[to - 1] & place]) > tf_rank_value(row[item & place]); to--)
      items[to] = items[to - 1];
    items[to] = item;
  }
  if (n <= 16) return;
  for (long i = 0; i < n; i++) {
    uint64_t at = (uint64_t)items[i] & place;
    work[i] = (int64_t)((((uint64_t)tf_rank_value(row[at]) - (uint64_t)least) & rank) << places | at);
  }
  int64_t *sorted = tf_sort_items_network(work, scratch, n);
  for (long i = 0; i < n; i++)
    items[i] = sorted[i];
}

// Stores the positions of a row's n elements in ascending order. `work` has room for
// 3 (n + ROWS * LANES).
static inline void tf_argsort_value_network(const value_t *row, int64_t *order, int64_t *work, long n) {
  const long room = n + ROWS * LANES;
  int64_t least = tf_rank_value(row[0]), greatest = least;
  for (long i = 1; i < n; i++) {
    int64_t rank = tf_rank_value(row[i]);
    least = rank < least ? rank : least;
    greatest = rank > greatest ? rank : greatest;
  }
  long equal = __builtin_clzll((uint64_t)greatest - (uint64_t)least | 1), places = 1;
  while (n > (long)1 << places)
    places++;
  const uint64_t place = ((uint64_t)1 << places) - 1;
  for (long i = 0; i < n; i++) {
    uint64_t rank = (uint64_t)tf_rank_value(row[i]) - (uint64_t)least;
    work[i] = (int64_t)(((rank << equal & ~place) | (uint64_t)i) ^ (uint64_t)1 << 63);
  }
  int64_t *items = tf_sort_items_network(work, work + room, n);
  int64_t *free = items == work ? work + room : work;
  for (long start = 0, end = 1; equal < places && start < n; start = end++) {
    while (end < n && !((uint64_t)(items[end] ^ items[start]) & ~place))
      end++;
    tf_sort_ties_value_network(row, items + start, free, work + 2 * room, end - start, least, places - equal, places);
  }
  for (long i = 0; i < n; i++)
    order[i] = (int64_t)((uint64_t)items[i] & place);
}
