// Sorting of integers item_t in vectors of LANES of them, ROWS vectors at a time: written for the
// shape of such a block, `network`. The columns of a block are sorted by a network of comparisons
// (D. E. Knuth, The Art of Computer Programming, volume 3, 5.3.4) and become runs, which K. E.
// Batcher's bitonic mergers, wired as perfect shuffles (H. S. Stone, Parallel processing with the
// perfect shuffle, 1971), make one. Longer runs are merged in memory.

// The lesser of each two lanes.
static inline vector_t tf_least_network(vector_t a, vector_t b) {
#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_min)
  return __builtin_elementwise_min(a, b);
#endif
#elif defined(HAS_LEAST)
  typedef lane_t lanes_t __attribute__((vector_size(LANES * sizeof(item_t))));
  return (vector_t)LEAST;
#endif
  vector_t less = a < b;
  return (a & less) | (b & ~less);
}

// The greater of each two lanes.
static inline vector_t tf_greatest_network(vector_t a, vector_t b) {
#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_max)
  return __builtin_elementwise_max(a, b);
#endif
#elif defined(HAS_LEAST)
  typedef lane_t lanes_t __attribute__((vector_size(LANES * sizeof(item_t))));
  return (vector_t)GREATEST;
#endif
  vector_t less = a < b;
  return (b & less) | (a & ~less);
}

// Puts each two lanes in order.
static inline void tf_exchange_network(vector_t *a, vector_t *b) {
  vector_t least = tf_least_network(*a, *b);
  *b = tf_greatest_network(*a, *b);
  *a = least;
}

// The last lane first.
static inline vector_t tf_reverse_network(vector_t v) {
#if defined(__clang__)
  return __builtin_shufflevector(v, v, REVERSED);
#else
  return __builtin_shuffle(v, (vector_t){REVERSED});
#endif
}

// The lanes of both by turns.
static inline void tf_shuffle_network(vector_t *a, vector_t *b) {
#if defined(__clang__)
  vector_t first = __builtin_shufflevector(*a, *b, FIRST_HALVES);
  *b = __builtin_shufflevector(*a, *b, SECOND_HALVES);
#else
  vector_t first = __builtin_shuffle(*a, *b, (vector_t){FIRST_HALVES});
  *b = __builtin_shuffle(*a, *b, (vector_t){SECOND_HALVES});
#endif
  *a = first;
}

// Sorts two vectors whose lanes ascend, then descend; or are such turned round.
static inline void tf_merge_two_network(vector_t *a, vector_t *b) {
#pragma GCC unroll 8
  for (long distance = LANES; distance; distance /= 2) {
    tf_exchange_network(a, b);
    tf_shuffle_network(a, b);
  }
}

// Sorts so many vectors, the halves of which are sorted: 2 or more, a power of two.
static inline void tf_merge_halves_network(vector_t *v, long count) {
  vector_t second[ROWS];
#pragma GCC unroll 16
  for (long r = 0; r < count / 2; r++)
    second[r] = tf_reverse_network(v[count - 1 - r]);
#pragma GCC unroll 16
  for (long r = 0; r < count / 2; r++)
    v[count / 2 + r] = second[r];
#pragma GCC unroll 4
  for (long distance = count / 2; distance > 1; distance /= 2)
#pragma GCC unroll 16
    for (long r = 0; r < count; r++)
      if (!(r & distance)) tf_exchange_network(v + r, v + r + distance);
#pragma GCC unroll 16
  for (long r = 0; r < count; r += 2)
    tf_merge_two_network(v + r, v + r + 1);
}

// Makes runs of so many vectors, where ROWS are as many and such runs are longer than columns.
static inline void tf_merge_all_network(vector_t *v, long count) {
#pragma GCC unroll 8
  for (long r = 0; r < ROWS; r += count)
    if (count <= ROWS && count * LANES > ROWS) tf_merge_halves_network(v + r, count);
}

// Sorts ROWS vectors. Much code, which compilers are not to repeat.
static __attribute__((noinline)) void tf_sort_block_network(const item_t *row, item_t *to) {
  static const uint8_t pairs[][2] = {NETWORK};
  vector_t v[ROWS], runs[ROWS];
#pragma GCC unroll 16
  for (long r = 0; r < ROWS; r++)
    v[r] = *(const vector_t *)(row + LANES * r);
#pragma GCC unroll 64
  for (unsigned long i = 0; i < sizeof pairs / 2; i++)
    tf_exchange_network(v + pairs[i][0], v + pairs[i][1]);
#pragma GCC unroll 4
  for (long round = 1; round < ROWS; round *= 2) {
#pragma GCC unroll 8
    for (long r = 0; r < ROWS / 2; r++) {
      runs[2 * r] = v[r];
      runs[2 * r + 1] = v[r + ROWS / 2];
      tf_shuffle_network(runs + 2 * r, runs + 2 * r + 1);
    }
#pragma GCC unroll 16
    for (long r = 0; r < ROWS; r++)
      v[r] = runs[r];
  }
  tf_merge_all_network(v, 2);
  tf_merge_all_network(v, 4);
  tf_merge_all_network(v, 8);
  tf_merge_all_network(v, 16);
#pragma GCC unroll 16
  for (long r = 0; r < ROWS; r++)
    *(vector_t *)(to + LANES * r) = v[r];
}

// Two sorted vectors in order with the next two at `row`: the lower two go to `to`, the others stay.
static inline void tf_merge_next_network(vector_t *v, const item_t *row, item_t *to) {
  vector_t next[] = {*(const vector_t *)(row + LANES), *(const vector_t *)row};
  for (long r = 0; r < 2; r++) {
    next[r] = tf_reverse_network(next[r]);
    tf_exchange_network(v + r, next + r);
  }
  tf_merge_two_network(v, v + 1);
  tf_merge_two_network(next, next + 1);
  for (long r = 0; r < 2; r++) {
    *(vector_t *)(to + LANES * r) = v[r];
    v[r] = next[r];
  }
}

// The same with the two before, for merging from the end: the upper two go to `to`.
static inline void tf_merge_last_network(vector_t *v, const item_t *row, item_t *to) {
  vector_t last[] = {*(const vector_t *)row, *(const vector_t *)(row + LANES)};
  vector_t turned[] = {tf_reverse_network(v[1]), tf_reverse_network(v[0])};
  for (long r = 0; r < 2; r++)
    tf_exchange_network(last + r, turned + r);
  tf_merge_two_network(last, last + 1);
  tf_merge_two_network(turned, turned + 1);
  for (long r = 0; r < 2; r++) {
    *(vector_t *)(to + LANES * r) = turned[r];
    v[r] = last[r];
  }
}

// Merges a sorted run of `width` items and that of the others of n, multiples of 2 LANES, from both
// ends at once. Which run is next is computed, for a processor cannot guess it.
static __attribute__((noinline)) void tf_merge_runs_network(const item_t *restrict row, item_t *restrict to, long width, long n) {
  const long step = 2 * LANES;
  long a = step, b = width, a_last = width - step, b_last = n - 2 * step;
  item_t *end = to + n - step;
  vector_t low[] = {*(const vector_t *)row, *(const vector_t *)(row + LANES)};
  vector_t high[] = {*(const vector_t *)(row + n - step), *(const vector_t *)(row + n - LANES)};
  for (long left = n / step; left > 0; left -= 2) {
    long takes_a = (b == n) | ((a < width) & (row[a] < row[b - (b == n)]));
    tf_merge_next_network(low, row + b + (a - b) * takes_a, to);
    a += step * takes_a;
    b += step * (1 - takes_a);
    to += step;
    if (left == 1) break;
    long before_a = a_last < 0, takes_b = before_a | ((b_last >= width) & (row[b_last + step - 1] > row[a_last + step - 1 + before_a]));
    tf_merge_last_network(high, row + a_last + (b_last - a_last) * takes_b, end);
    a_last -= step * (1 - takes_b);
    b_last -= step * takes_b;
    end -= step;
  }
}

// Sorts n items, and returns where they are then: in the row or in `scratch`. Either has room for
// ROWS * LANES more.
static inline item_t *tf_sort_items_network(item_t *row, item_t *scratch, long n) {
  const item_t greatest = (item_t)((uitem_t)-1 >> 1);
  const long block = ROWS * LANES;
  long padded = n <= block ? block : (n + 2 * LANES - 1) / (2 * LANES) * (2 * LANES);
  for (long i = n; i < padded; i++)
    row[i] = greatest;
  long whole = padded / block * block;
  for (long i = 0; i < whole; i += block)
    tf_sort_block_network(row + i, row + i);
  if (whole < padded) {
    for (long i = 0; i < block; i++)
      scratch[i] = i < padded - whole ? row[whole + i] : greatest;
    tf_sort_block_network(scratch, scratch);
    for (long i = whole; i < padded; i++)
      row[i] = scratch[i - whole];
  }
  for (long width = block; width < padded; width *= 2) {
    long i = 0;
    for (; padded - i > width; i += 2 * width)
      tf_merge_runs_network(row + i, scratch + i, width, padded - i < 2 * width ? padded - i : 2 * width);
    for (; i < padded; i++)
      scratch[i] = row[i];
    item_t *sorted = scratch;
    scratch = row;
    row = sorted;
  }
  return row;
}
