// Stable sorting of items, each with an unsigned key: of unsigned integers, which are their own
// keys, and of pairs. Written for item_t; tinyfuse pastes what a program uses, with uint32_t, pair_t
// or another type for item_t and the type of the keys for key_t. Items are sorted in runs of 32,
// which are merged; many items with short keys by one byte after the other (D. E. Knuth, The Art of
// Computer Programming, volume 3, 5.2, 5.2.4 and 5.2.5).

// Sorts at most `most` items, 16 or 32: each goes where the number of those before it says.
static inline void tf_sort_run_item(const item_t *row, item_t *to, key_t n, key_t most) {
  item_t items[32];
  key_t keys[32], places[32];
  for (key_t i = 0; i < n; i++)
    items[i] = row[i];
  for (key_t i = 0; i < most; i++) {
    keys[i] = i < n ? tf_key_item(items[i]) : (key_t)-1;
    places[i] = 0;
  }
  for (key_t j = 0; j < most; j++)
    for (key_t i = 0; i < most; i++)
      places[i] += (keys[j] < keys[i]) | ((keys[j] == keys[i]) & (j < i));
  for (key_t i = 0; i < n; i++)
    to[places[i]] = items[i];
}

// Merges two sorted runs that lie one after the other: `width` items, and the others of n. Goes on
// from both ends at once, as far as no run can end on the way. Places are computed, not chosen: a
// processor cannot guess which run is next.
static inline void tf_merge_item(const item_t *restrict row, item_t *restrict to, long width, long n) {
  long a = 0, b = width, a_last = width - 1, b_last = n - 1, first = 0, last = n - 1;
  while (a <= a_last && b <= b_last) {
    long steps = a_last - a < b_last - b ? a_last - a : b_last - b;
    for (long i = 0; i <= steps; i++) {
      long takes_b = tf_key_item(row[b]) < tf_key_item(row[a]);
      long takes_a = tf_key_item(row[b_last]) < tf_key_item(row[a_last]);
      to[first++] = row[a + (b - a) * takes_b];
      to[last--] = row[b_last + (a_last - b_last) * takes_a];
      a += 1 - takes_b;
      b += takes_b;
      a_last -= takes_a;
      b_last -= 1 - takes_a;
    }
  }
  for (; a <= a_last; a++)
    to[first++] = row[a];
  for (; b <= b_last; b++)
    to[first++] = row[b];
}

// Merges four runs of `width` items, the first with the second and the third with the fourth, side by
// side: a processor works on both at once.
static inline void tf_merge_two_item(const item_t *restrict row, item_t *restrict to, long width) {
  long a = 0, b = width, a_last = width - 1, b_last = 2 * width - 1;
  long c = 2 * width, d = 3 * width, c_last = 3 * width - 1, d_last = 4 * width - 1;
  for (long i = 0; i < width; i++) {
    long takes_b = tf_key_item(row[b]) < tf_key_item(row[a]);
    long takes_a = tf_key_item(row[b_last]) < tf_key_item(row[a_last]);
    long takes_d = tf_key_item(row[d]) < tf_key_item(row[c]);
    long takes_c = tf_key_item(row[d_last]) < tf_key_item(row[c_last]);
    to[i] = row[a + (b - a) * takes_b];
    to[2 * width - 1 - i] = row[b_last + (a_last - b_last) * takes_a];
    to[2 * width + i] = row[c + (d - c) * takes_d];
    to[4 * width - 1 - i] = row[d_last + (c_last - d_last) * takes_c];
    a += 1 - takes_b;
    b += takes_b;
    a_last -= takes_a;
    b_last -= 1 - takes_a;
    c += 1 - takes_d;
    d += takes_d;
    c_last -= takes_c;
    d_last -= 1 - takes_c;
  }
}

// Sorts in runs of 32, then merges pairs of runs, back and forth between the row and `scratch`.
static inline void tf_merge_sort_item(item_t *restrict row, item_t *restrict scratch, long n) {
  if (n <= 16) {
    tf_sort_run_item(row, row, (key_t)n, 16);
    return;
  }
  long rounds = 0, whole = n - n % 32;
  for (long width = 32; width < n; width *= 2)
    rounds++;
  item_t *from = rounds % 2 ? scratch : row, *to = rounds % 2 ? row : scratch;
  for (long i = 0; i < whole; i += 32)
    tf_sort_run_item(row + i, from + i, 32, 32);
  if (whole < n) tf_sort_run_item(row + whole, from + whole, (key_t)(n - whole), 32);
  for (long width = 32; width < n; width *= 2) {
    long i = 0;
    for (; n - i >= 4 * width; i += 4 * width)
      tf_merge_two_item(from + i, to + i, width);
    for (; i < n; i += 2 * width) {
      long rest = n - i < 2 * width ? n - i : 2 * width;
      tf_merge_item(from + i, to + i, rest < width ? rest : width, rest);
    }
    item_t *last = from;
    from = to;
    to = last;
  }
}

// Sorts by so many bytes of the keys, from `byte` on, the lowest first; what is equal in all keys is
// left out.
static inline void tf_radix_sort_item(item_t *restrict row, item_t *restrict scratch, long n, long byte, long bytes) {
  item_t *from = row, *to = scratch;
  for (long shift = 8 * byte; shift < 8 * (byte + bytes); shift += 8) {
    long places[256] = {0}, total = 0;
    for (long i = 0; i < n; i++)
      places[tf_key_item(from[i]) >> shift & 255]++;
    if (places[tf_key_item(from[0]) >> shift & 255] == n) continue;
    for (long digit = 0; digit < 256; digit++) {
      long count = places[digit];
      places[digit] = total;
      total += count;
    }
    for (long i = 0; i < n; i++) {
      item_t item = from[i];
      to[places[tf_key_item(item) >> shift & 255]++] = item;
    }
    item_t *last = from;
    from = to;
    to = last;
  }
  for (long i = 0; i < n && from != row; i++)
    row[i] = from[i];
}

// Sorts n items by so many bytes of their keys from `byte` on; those below count in ties only.
// `scratch` has room for as many.
static inline void tf_sort_items_item(item_t *restrict row, item_t *restrict scratch, long n, long byte, long bytes) {
  if (bytes <= 4 && n >= 256)
    tf_radix_sort_item(row, scratch, n, byte, bytes);
  else
    tf_merge_sort_item(row, scratch, n);
}
