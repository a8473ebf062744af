// Asks for what lies in memory before it is needed.

// Asks for the lines that hold so many bytes from an offset on, which may lie outside of the array.
static inline void tf_prefetch(const void *array, long offset, long bytes) {
  __UINTPTR_TYPE__ first = (__UINTPTR_TYPE__)array + (__UINTPTR_TYPE__)offset;
  for (long done = 0; done < bytes; done += 64)
    __builtin_prefetch((const void *)(first + (__UINTPTR_TYPE__)done));
}
