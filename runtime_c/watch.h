// What a watched entry is handed after its arrays, and tells of every moment between two kernels.
typedef struct tf_watch tf_watch;
struct tf_watch {
  void (*moment)(tf_watch *watch, long number);
};

static inline void tf_moment(tf_watch *watch, long number) { watch->moment(watch, number); }
