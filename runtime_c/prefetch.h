// Memory that is asked for ahead of its use.

// Asks for so many bytes, line by line, so that they are in the caches when they are read.
static inline void tf_prefetch(const void *from, long bytes) {
  for (long at = 0; at < bytes; at += 64)
    __builtin_prefetch((const char *)from + at);
}

// The same, into the second cache.
static inline void tf_prefetch_far(const void *from, long bytes) {
  for (long at = 0; at < bytes; at += 64)
    __builtin_prefetch((const char *)from + at, 0, 2);
}
