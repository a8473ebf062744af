// What an entry is handed to share a loop among threads; null where there are none.
typedef struct tf_pool tf_pool;
typedef void (*tf_task)(void *const *buffers, long begin, long end);
struct tf_pool {
  void (*run)(const tf_pool *pool, tf_task task, void *const *buffers, long extent, long grain);
};

// Runs a task over [0, extent), in parts of at least `grain` where threads share it.
static inline void tf_run(const tf_pool *pool, tf_task task, void *const *buffers, long extent, long grain) {
  if (pool)
    pool->run(pool, task, buffers, extent, grain);
  else
    task(buffers, 0, extent);
}
