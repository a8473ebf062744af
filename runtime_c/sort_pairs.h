// Pairs of a key and a position, which are sorted by the key.

// What a pair is sorted by.
static inline uint64_t tf_key_pair(pair_t item) {
  return item.key;
}
