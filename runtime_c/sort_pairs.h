// Pairs of a key and a position, which are sorted by the key.

// What a pair is sorted by.
typedef struct {
  uint64_t key, position;
} tf_pair;
static inline uint64_t tf_key_pair(tf_pair item) {
  return item.key;
}
