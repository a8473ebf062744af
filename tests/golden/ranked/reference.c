typedef __UINT8_TYPE__ bool8_t; // 0 or 1
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef int32_t int32_x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int64_t int64_x8 __attribute__((vector_size(64), aligned(8), may_alias));

// The bits of x.
static inline uint32_t tf_bits_float(float x) {
  union {
    float value;
    uint32_t bits;
  } pun = {.value = x};
  return pun.bits;
}

// The value that has these bits.
static inline float tf_from_bits_float(uint32_t bits) {
  union {
    uint32_t bits;
    float value;
  } pun = {.bits = bits};
  return pun.value;
}

// Whether x is NaN.
static inline bool8_t tf_isnan_float(float x) {
  return x != x;
}

// chosen where the condition holds, else other: by their bits. Both are loaded before, since gcc 12
// mixes up loads behind several conditions, in one sum or in steps of a loop that it writes out.
static inline float tf_select_float(bool8_t condition, float chosen, float other) {
  uint32_t mask = -(uint32_t)condition;
  return tf_from_bits_float((tf_bits_float(chosen) & mask) | (tf_bits_float(other) & ~mask));
}

// An integer in the same order: one for both zeros, and the greatest for every NaN.
static inline int32_t tf_rank_float(float x) {
  int32_t bits = (int32_t)tf_bits_float(x + 0.0f), greatest = (int32_t)(~(uint32_t)0 >> 1);
  return x != x ? greatest : bits ^ (bits >> (32 - 1) & greatest);
}

// The ranks of n elements. Returns whether there is a -0.
static inline int tf_rank_row_float(const float *row, int32_t *ranks, long n) {
  uint32_t negative = 0;
  for (long i = 0; i < n; i++) {
    negative |= tf_bits_float(row[i]) == (uint32_t)1 << (32 - 1);
    ranks[i] = tf_rank_float(row[i]);
  }
  return negative != 0;
}

// Stores the values that the sorted ranks of a row stand for; `to` may be the row. `zeros` has room
// for as many: for the zeros of the row where there is a -0, for their signs stay in their order.
static inline void tf_put_ranked_float(const float *row, float *to, const int32_t *ranks, int32_t *zeros, long n, int negative) {
  int32_t greatest = (int32_t)(~(uint32_t)0 >> 1);
  long count = 0;
  if (negative)
    for (long i = 0; i < n; i++)
      if (row[i] == 0) zeros[count++] = (int32_t)tf_bits_float(row[i]);
  for (long i = 0; i < n; i++)
    to[i] = tf_from_bits_float((uint32_t)(ranks[i] ^ (ranks[i] >> (32 - 1) & greatest)));
  if (negative)
    for (long i = 0, zero = 0; zero < count; i++)
      if (ranks[i] == 0) to[i] = tf_from_bits_float((uint32_t)zeros[zero++]);
}

// The lesser of each two lanes.
static inline int32_x4 tf_least_int32_4x4(int32_x4 a, int32_x4 b) {
#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_min)
  return __builtin_elementwise_min(a, b);
#endif
#elif defined(__SSE4_1__)
  typedef int lanes_t __attribute__((vector_size(4 * sizeof(int32_t))));
  return (int32_x4)__builtin_ia32_pminsd128((lanes_t)a, (lanes_t)b);
#endif
  int32_x4 less = a < b;
  return (a & less) | (b & ~less);
}

// The greater of each two lanes.
static inline int32_x4 tf_greatest_int32_4x4(int32_x4 a, int32_x4 b) {
#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_max)
  return __builtin_elementwise_max(a, b);
#endif
#elif defined(__SSE4_1__)
  typedef int lanes_t __attribute__((vector_size(4 * sizeof(int32_t))));
  return (int32_x4)__builtin_ia32_pmaxsd128((lanes_t)a, (lanes_t)b);
#endif
  int32_x4 less = a < b;
  return (b & less) | (a & ~less);
}

// Puts each two lanes in order.
static inline void tf_exchange_int32_4x4(int32_x4 *a, int32_x4 *b) {
  int32_x4 least = tf_least_int32_4x4(*a, *b);
  *b = tf_greatest_int32_4x4(*a, *b);
  *a = least;
}

// The last lane first.
static inline int32_x4 tf_reverse_int32_4x4(int32_x4 v) {
#if defined(__clang__)
  return __builtin_shufflevector(v, v, 3, 2, 1, 0);
#else
  return __builtin_shuffle(v, (int32_x4){3, 2, 1, 0});
#endif
}

// The lanes of both by turns.
static inline void tf_shuffle_int32_4x4(int32_x4 *a, int32_x4 *b) {
#if defined(__clang__)
  int32_x4 first = __builtin_shufflevector(*a, *b, 0, 4, 1, 5);
  *b = __builtin_shufflevector(*a, *b, 2, 6, 3, 7);
#else
  int32_x4 first = __builtin_shuffle(*a, *b, (int32_x4){0, 4, 1, 5});
  *b = __builtin_shuffle(*a, *b, (int32_x4){2, 6, 3, 7});
#endif
  *a = first;
}

// Sorts two vectors whose lanes ascend, then descend; or are such turned round.
static inline void tf_merge_two_int32_4x4(int32_x4 *a, int32_x4 *b) {
#pragma GCC unroll 8
  for (long distance = 4; distance; distance /= 2) {
    tf_exchange_int32_4x4(a, b);
    tf_shuffle_int32_4x4(a, b);
  }
}

// Sorts so many vectors, the halves of which are sorted: 2 or more, a power of two.
static inline void tf_merge_halves_int32_4x4(int32_x4 *v, long count) {
  int32_x4 second[4];
#pragma GCC unroll 16
  for (long r = 0; r < count / 2; r++)
    second[r] = tf_reverse_int32_4x4(v[count - 1 - r]);
#pragma GCC unroll 16
  for (long r = 0; r < count / 2; r++)
    v[count / 2 + r] = second[r];
#pragma GCC unroll 4
  for (long distance = count / 2; distance > 1; distance /= 2)
#pragma GCC unroll 16
    for (long r = 0; r < count; r++)
      if (!(r & distance)) tf_exchange_int32_4x4(v + r, v + r + distance);
#pragma GCC unroll 16
  for (long r = 0; r < count; r += 2)
    tf_merge_two_int32_4x4(v + r, v + r + 1);
}

// Makes runs of so many vectors, where 4 are as many and such runs are longer than columns.
static inline void tf_merge_all_int32_4x4(int32_x4 *v, long count) {
#pragma GCC unroll 8
  for (long r = 0; r < 4; r += count)
    if (count <= 4 && count * 4 > 4) tf_merge_halves_int32_4x4(v + r, count);
}

// Sorts 4 vectors. Much code, which compilers are not to repeat.
static __attribute__((noinline)) void tf_sort_block_int32_4x4(const int32_t *row, int32_t *to) {
  static const uint8_t pairs[][2] = {{0, 2}, {1, 3}, {0, 1}, {2, 3}, {1, 2}};
  int32_x4 v[4], runs[4];
#pragma GCC unroll 16
  for (long r = 0; r < 4; r++)
    v[r] = *(const int32_x4 *)(row + 4 * r);
#pragma GCC unroll 64
  for (unsigned long i = 0; i < sizeof pairs / 2; i++)
    tf_exchange_int32_4x4(v + pairs[i][0], v + pairs[i][1]);
#pragma GCC unroll 4
  for (long round = 1; round < 4; round *= 2) {
#pragma GCC unroll 8
    for (long r = 0; r < 4 / 2; r++) {
      runs[2 * r] = v[r];
      runs[2 * r + 1] = v[r + 4 / 2];
      tf_shuffle_int32_4x4(runs + 2 * r, runs + 2 * r + 1);
    }
#pragma GCC unroll 16
    for (long r = 0; r < 4; r++)
      v[r] = runs[r];
  }
  tf_merge_all_int32_4x4(v, 2);
  tf_merge_all_int32_4x4(v, 4);
  tf_merge_all_int32_4x4(v, 8);
  tf_merge_all_int32_4x4(v, 16);
#pragma GCC unroll 16
  for (long r = 0; r < 4; r++)
    *(int32_x4 *)(to + 4 * r) = v[r];
}

// Two sorted vectors in order with the next two at `row`: the lower two go to `to`, the others stay.
static inline void tf_merge_next_int32_4x4(int32_x4 *v, const int32_t *row, int32_t *to) {
  int32_x4 next[] = {*(const int32_x4 *)(row + 4), *(const int32_x4 *)row};
  for (long r = 0; r < 2; r++) {
    next[r] = tf_reverse_int32_4x4(next[r]);
    tf_exchange_int32_4x4(v + r, next + r);
  }
  tf_merge_two_int32_4x4(v, v + 1);
  tf_merge_two_int32_4x4(next, next + 1);
  for (long r = 0; r < 2; r++) {
    *(int32_x4 *)(to + 4 * r) = v[r];
    v[r] = next[r];
  }
}

// The same with the two before, for merging from the end: the upper two go to `to`.
static inline void tf_merge_last_int32_4x4(int32_x4 *v, const int32_t *row, int32_t *to) {
  int32_x4 last[] = {*(const int32_x4 *)row, *(const int32_x4 *)(row + 4)};
  int32_x4 turned[] = {tf_reverse_int32_4x4(v[1]), tf_reverse_int32_4x4(v[0])};
  for (long r = 0; r < 2; r++)
    tf_exchange_int32_4x4(last + r, turned + r);
  tf_merge_two_int32_4x4(last, last + 1);
  tf_merge_two_int32_4x4(turned, turned + 1);
  for (long r = 0; r < 2; r++) {
    *(int32_x4 *)(to + 4 * r) = turned[r];
    v[r] = last[r];
  }
}

// Merges a sorted run of `width` items and that of the others of n, multiples of 2 4, from both
// ends at once. Which run is next is computed, for a processor cannot guess it.
static __attribute__((noinline)) void tf_merge_runs_int32_4x4(const int32_t *restrict row, int32_t *restrict to, long width, long n) {
  const long step = 2 * 4;
  long a = step, b = width, a_last = width - step, b_last = n - 2 * step;
  int32_t *end = to + n - step;
  int32_x4 low[] = {*(const int32_x4 *)row, *(const int32_x4 *)(row + 4)};
  int32_x4 high[] = {*(const int32_x4 *)(row + n - step), *(const int32_x4 *)(row + n - 4)};
  for (long left = n / step; left > 0; left -= 2) {
    long takes_a = (b == n) | ((a < width) & (row[a] < row[b - (b == n)]));
    tf_merge_next_int32_4x4(low, row + b + (a - b) * takes_a, to);
    a += step * takes_a;
    b += step * (1 - takes_a);
    to += step;
    if (left == 1) break;
    long before_a = a_last < 0, takes_b = before_a | ((b_last >= width) & (row[b_last + step - 1] > row[a_last + step - 1 + before_a]));
    tf_merge_last_int32_4x4(high, row + a_last + (b_last - a_last) * takes_b, end);
    a_last -= step * (1 - takes_b);
    b_last -= step * takes_b;
    end -= step;
  }
}

// Sorts n items, and returns where they are then: in the row or in `scratch`. Either has room for
// 4 * 4 more.
static inline int32_t *tf_sort_items_int32_4x4(int32_t *row, int32_t *scratch, long n) {
  const int32_t greatest = (int32_t)((uint32_t)-1 >> 1);
  const long block = 4 * 4;
  long padded = n <= block ? block : (n + 2 * 4 - 1) / (2 * 4) * (2 * 4);
  for (long i = n; i < padded; i++)
    row[i] = greatest;
  long whole = padded / block * block;
  for (long i = 0; i < whole; i += block)
    tf_sort_block_int32_4x4(row + i, row + i);
  if (whole < padded) {
    for (long i = 0; i < block; i++)
      scratch[i] = i < padded - whole ? row[whole + i] : greatest;
    tf_sort_block_int32_4x4(scratch, scratch);
    for (long i = whole; i < padded; i++)
      row[i] = scratch[i - whole];
  }
  for (long width = block; width < padded; width *= 2) {
    long i = 0;
    for (; padded - i > width; i += 2 * width)
      tf_merge_runs_int32_4x4(row + i, scratch + i, width, padded - i < 2 * width ? padded - i : 2 * width);
    for (; i < padded; i++)
      scratch[i] = row[i];
    int32_t *sorted = scratch;
    scratch = row;
    row = sorted;
  }
  return row;
}

// The lesser of each two lanes.
static inline int64_x8 tf_least_int64_8x8(int64_x8 a, int64_x8 b) {
#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_min)
  return __builtin_elementwise_min(a, b);
#endif
#elif defined(__AVX512F__)
  typedef long long lanes_t __attribute__((vector_size(8 * sizeof(int64_t))));
  return (int64_x8)__builtin_ia32_pminsq512_mask((lanes_t)a, (lanes_t)b, (lanes_t)a, -1);
#endif
  int64_x8 less = a < b;
  return (a & less) | (b & ~less);
}

// The greater of each two lanes.
static inline int64_x8 tf_greatest_int64_8x8(int64_x8 a, int64_x8 b) {
#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_max)
  return __builtin_elementwise_max(a, b);
#endif
#elif defined(__AVX512F__)
  typedef long long lanes_t __attribute__((vector_size(8 * sizeof(int64_t))));
  return (int64_x8)__builtin_ia32_pmaxsq512_mask((lanes_t)a, (lanes_t)b, (lanes_t)a, -1);
#endif
  int64_x8 less = a < b;
  return (b & less) | (a & ~less);
}

// Puts each two lanes in order.
static inline void tf_exchange_int64_8x8(int64_x8 *a, int64_x8 *b) {
  int64_x8 least = tf_least_int64_8x8(*a, *b);
  *b = tf_greatest_int64_8x8(*a, *b);
  *a = least;
}

// The last lane first.
static inline int64_x8 tf_reverse_int64_8x8(int64_x8 v) {
#if defined(__clang__)
  return __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);
#else
  return __builtin_shuffle(v, (int64_x8){7, 6, 5, 4, 3, 2, 1, 0});
#endif
}

// The lanes of both by turns.
static inline void tf_shuffle_int64_8x8(int64_x8 *a, int64_x8 *b) {
#if defined(__clang__)
  int64_x8 first = __builtin_shufflevector(*a, *b, 0, 8, 1, 9, 2, 10, 3, 11);
  *b = __builtin_shufflevector(*a, *b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  int64_x8 first = __builtin_shuffle(*a, *b, (int64_x8){0, 8, 1, 9, 2, 10, 3, 11});
  *b = __builtin_shuffle(*a, *b, (int64_x8){4, 12, 5, 13, 6, 14, 7, 15});
#endif
  *a = first;
}

// Sorts two vectors whose lanes ascend, then descend; or are such turned round.
static inline void tf_merge_two_int64_8x8(int64_x8 *a, int64_x8 *b) {
#pragma GCC unroll 8
  for (long distance = 8; distance; distance /= 2) {
    tf_exchange_int64_8x8(a, b);
    tf_shuffle_int64_8x8(a, b);
  }
}

// Sorts so many vectors, the halves of which are sorted: 2 or more, a power of two.
static inline void tf_merge_halves_int64_8x8(int64_x8 *v, long count) {
  int64_x8 second[8];
#pragma GCC unroll 16
  for (long r = 0; r < count / 2; r++)
    second[r] = tf_reverse_int64_8x8(v[count - 1 - r]);
#pragma GCC unroll 16
  for (long r = 0; r < count / 2; r++)
    v[count / 2 + r] = second[r];
#pragma GCC unroll 4
  for (long distance = count / 2; distance > 1; distance /= 2)
#pragma GCC unroll 16
    for (long r = 0; r < count; r++)
      if (!(r & distance)) tf_exchange_int64_8x8(v + r, v + r + distance);
#pragma GCC unroll 16
  for (long r = 0; r < count; r += 2)
    tf_merge_two_int64_8x8(v + r, v + r + 1);
}

// Makes runs of so many vectors, where 8 are as many and such runs are longer than columns.
static inline void tf_merge_all_int64_8x8(int64_x8 *v, long count) {
#pragma GCC unroll 8
  for (long r = 0; r < 8; r += count)
    if (count <= 8 && count * 8 > 8) tf_merge_halves_int64_8x8(v + r, count);
}

// Sorts 8 vectors. Much code, which compilers are not to repeat.
static __attribute__((noinline)) void tf_sort_block_int64_8x8(const int64_t *row, int64_t *to) {
  static const uint8_t pairs[][2] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {0, 4}, {1, 5}, {2, 6}, {3, 7}, {0, 1}, {2, 3}, {4, 5}, {6, 7}, {2, 4}, {3, 5}, {1, 4}, {3, 6}, {1, 2}, {3, 4}, {5, 6}};
  int64_x8 v[8], runs[8];
#pragma GCC unroll 16
  for (long r = 0; r < 8; r++)
    v[r] = *(const int64_x8 *)(row + 8 * r);
#pragma GCC unroll 64
  for (unsigned long i = 0; i < sizeof pairs / 2; i++)
    tf_exchange_int64_8x8(v + pairs[i][0], v + pairs[i][1]);
#pragma GCC unroll 4
  for (long round = 1; round < 8; round *= 2) {
#pragma GCC unroll 8
    for (long r = 0; r < 8 / 2; r++) {
      runs[2 * r] = v[r];
      runs[2 * r + 1] = v[r + 8 / 2];
      tf_shuffle_int64_8x8(runs + 2 * r, runs + 2 * r + 1);
    }
#pragma GCC unroll 16
    for (long r = 0; r < 8; r++)
      v[r] = runs[r];
  }
  tf_merge_all_int64_8x8(v, 2);
  tf_merge_all_int64_8x8(v, 4);
  tf_merge_all_int64_8x8(v, 8);
  tf_merge_all_int64_8x8(v, 16);
#pragma GCC unroll 16
  for (long r = 0; r < 8; r++)
    *(int64_x8 *)(to + 8 * r) = v[r];
}

// Two sorted vectors in order with the next two at `row`: the lower two go to `to`, the others stay.
static inline void tf_merge_next_int64_8x8(int64_x8 *v, const int64_t *row, int64_t *to) {
  int64_x8 next[] = {*(const int64_x8 *)(row + 8), *(const int64_x8 *)row};
  for (long r = 0; r < 2; r++) {
    next[r] = tf_reverse_int64_8x8(next[r]);
    tf_exchange_int64_8x8(v + r, next + r);
  }
  tf_merge_two_int64_8x8(v, v + 1);
  tf_merge_two_int64_8x8(next, next + 1);
  for (long r = 0; r < 2; r++) {
    *(int64_x8 *)(to + 8 * r) = v[r];
    v[r] = next[r];
  }
}

// The same with the two before, for merging from the end: the upper two go to `to`.
static inline void tf_merge_last_int64_8x8(int64_x8 *v, const int64_t *row, int64_t *to) {
  int64_x8 last[] = {*(const int64_x8 *)row, *(const int64_x8 *)(row + 8)};
  int64_x8 turned[] = {tf_reverse_int64_8x8(v[1]), tf_reverse_int64_8x8(v[0])};
  for (long r = 0; r < 2; r++)
    tf_exchange_int64_8x8(last + r, turned + r);
  tf_merge_two_int64_8x8(last, last + 1);
  tf_merge_two_int64_8x8(turned, turned + 1);
  for (long r = 0; r < 2; r++) {
    *(int64_x8 *)(to + 8 * r) = turned[r];
    v[r] = last[r];
  }
}

// Merges a sorted run of `width` items and that of the others of n, multiples of 2 8, from both
// ends at once. Which run is next is computed, for a processor cannot guess it.
static __attribute__((noinline)) void tf_merge_runs_int64_8x8(const int64_t *restrict row, int64_t *restrict to, long width, long n) {
  const long step = 2 * 8;
  long a = step, b = width, a_last = width - step, b_last = n - 2 * step;
  int64_t *end = to + n - step;
  int64_x8 low[] = {*(const int64_x8 *)row, *(const int64_x8 *)(row + 8)};
  int64_x8 high[] = {*(const int64_x8 *)(row + n - step), *(const int64_x8 *)(row + n - 8)};
  for (long left = n / step; left > 0; left -= 2) {
    long takes_a = (b == n) | ((a < width) & (row[a] < row[b - (b == n)]));
    tf_merge_next_int64_8x8(low, row + b + (a - b) * takes_a, to);
    a += step * takes_a;
    b += step * (1 - takes_a);
    to += step;
    if (left == 1) break;
    long before_a = a_last < 0, takes_b = before_a | ((b_last >= width) & (row[b_last + step - 1] > row[a_last + step - 1 + before_a]));
    tf_merge_last_int64_8x8(high, row + a_last + (b_last - a_last) * takes_b, end);
    a_last -= step * (1 - takes_b);
    b_last -= step * takes_b;
    end -= step;
  }
}

// Sorts n items, and returns where they are then: in the row or in `scratch`. Either has room for
// 8 * 8 more.
static inline int64_t *tf_sort_items_int64_8x8(int64_t *row, int64_t *scratch, long n) {
  const int64_t greatest = (int64_t)((uint64_t)-1 >> 1);
  const long block = 8 * 8;
  long padded = n <= block ? block : (n + 2 * 8 - 1) / (2 * 8) * (2 * 8);
  for (long i = n; i < padded; i++)
    row[i] = greatest;
  long whole = padded / block * block;
  for (long i = 0; i < whole; i += block)
    tf_sort_block_int64_8x8(row + i, row + i);
  if (whole < padded) {
    for (long i = 0; i < block; i++)
      scratch[i] = i < padded - whole ? row[whole + i] : greatest;
    tf_sort_block_int64_8x8(scratch, scratch);
    for (long i = whole; i < padded; i++)
      row[i] = scratch[i - whole];
  }
  for (long width = block; width < padded; width *= 2) {
    long i = 0;
    for (; padded - i > width; i += 2 * width)
      tf_merge_runs_int64_8x8(row + i, scratch + i, width, padded - i < 2 * width ? padded - i : 2 * width);
    for (; i < padded; i++)
      scratch[i] = row[i];
    int64_t *sorted = scratch;
    scratch = row;
    row = sorted;
  }
  return row;
}

// Stores a row of n elements in ascending order; `to` may be the row. `work` has room for
// 2 (n + 4 * 4).
static inline void tf_sort_float_4x4(const float *row, float *to, int32_t *work, long n) {
  int32_t *scratch = work + n + 4 * 4;
  int negative = tf_rank_row_float(row, work, n);
  int32_t *ranks = tf_sort_items_int32_4x4(work, scratch, n);
  tf_put_ranked_float(row, to, ranks, ranks == work ? scratch : work, n, negative);
}

// Stores the positions of a row's n elements in ascending order. `work` has room for
// 2 (n + 8 * 8).
static inline void tf_argsort_float_8x8(const float *row, int64_t *order, int64_t *work, long n) {
  for (long i = 0; i < n; i++)
    work[i] = (int64_t)((uint64_t)tf_rank_float(row[i]) << 32 | (uint64_t)i);
  int64_t *items = tf_sort_items_int64_8x8(work, work + n + 8 * 8, n);
  for (long i = 0; i < n; i++)
    order[i] = items[i] & 0xffffffff;
}

typedef struct tf_pool tf_pool;

// order = np.argsort(x, axis=0)
// [order_rows] reads 1.41 KiB, writes 2.81 KiB, 2160 operations
static __attribute__((noinline)) void ranked_order_rows(const float *restrict x, int64_t *restrict order_rows) {
  for (long j = 0; j < 9; j++) {
    float order_rows_row[40];
    for (long i = 0; i < 40; i++)
      order_rows_row[i] = x[9 * i + j];
    int64_t order_rows_work[208];
    tf_argsort_float_8x8(order_rows_row, order_rows + 40 * j, order_rows_work, 40);
  }
}

// return np.take_along_axis(y, order, axis=0), np.sort(x - y), np.median(x, axis=1)
// [out, subtract, out_1, sort, sum, divide, isnan_1, out_2] reads 7.03 KiB, writes 2.97 KiB, 3720
//   operations
static __attribute__((noinline)) void ranked_out_2(const int64_t *restrict order_rows, const float *restrict y, const float *restrict x, float *restrict out_1, float *restrict out, float *restrict out_2) {
  for (long i = 0; i < 40; i++) {
    float sort[9];
    for (long j = 0; j < 9; j++)
      out[9 * i + j] = y[order_rows[40 * j + i] * 9 + j];
    for (long j = 0; j < 9; j++)
      out_1[9 * i + j] = x[9 * i + j] - y[9 * i + j];
    int32_t out_1_work[50];
    tf_sort_float_4x4(out_1 + 9 * i, out_1 + 9 * i, out_1_work, 9);
    int32_t sort_work[50];
    tf_sort_float_4x4(x + 9 * i, sort, sort_work, 9);
    const bool8_t isnan_1 = tf_isnan_float(sort[8]);
    const float sum = 0.0f + sort[4];
    const float divide = sum / 1.0f;
    out_2[i] = tf_select_float(isnan_1, sort[8], divide);
  }
}

// arrays: x float32[360], y float32[360]; then the results: out float32[360], out_1 float32[360],
//   out_2 float32[40]
// scratch: 2880 bytes; returns 0
int ranked(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)pool;
  float *x = arrays[0];
  float *y = arrays[1];
  float *out = arrays[2];
  float *out_1 = arrays[3];
  float *out_2 = arrays[4];
  int64_t *order_rows = scratch;
  ranked_order_rows(x, order_rows);
  ranked_out_2(order_rows, y, x, out_1, out, out_2);
  return 0;
}
