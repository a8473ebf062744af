// What the emulated GPU (cuda_machine.c, in C) and the kernels that it runs (cuda_on_cpu.h, in C++)
// tell each other. No header is included: kernels compile in a fraction of the time without.

typedef struct {
  unsigned x, y, z;
} tf_index;

// Memory with an end: an allocation, or a __shared__ variable.
typedef struct tf_shadow tf_shadow;
typedef struct {
  char *data;
  __SIZE_TYPE__ bytes;
  __SIZE_TYPE__ granule;  // bytes that one shadow watches
  tf_shadow *shadows;     // null until a kernel that may write it is launched
  unsigned char *written; // for each byte whether it has a value; null: all have
  int read_only, shared;
} tf_memory;

// An array within it: what a parameter points to, or a __shared__ variable.
typedef struct {
  const char *name;
  __SIZE_TYPE__ element;
  int rank; // of shared arrays; 0: a flat one
  long extents[4];
  char *data;
  tf_memory *memory;
  unsigned placed; // the launch in which a shared array was given its memory
} tf_array;

// TF_COPY: an asynchronous copy begins to write; it ends with a TF_WRITE.
enum { TF_READ,
       TF_WRITE,
       TF_ATOMIC,
       TF_COPY };

typedef struct {
  const char *name;
  __SIZE_TYPE__ element; // bytes of what it points to; 0: a number
  int constant;          // it points to what cannot be written
  __SIZE_TYPE__ bytes;   // of the number, or of the address
} tf_parameter;

typedef struct {
  const char *name;
  void (*run)(void *const *arguments, tf_array *const *arrays); // one thread of it
  int most_threads;                                             // its launch bound; 0: none
  int parameters;
  const tf_parameter *parameter;
} tf_kernel;

// The running thread, and what it can ask for. A function that finds a fault does not return.
typedef struct {
  tf_index thread, block, threads, blocks; // threadIdx, blockIdx, blockDim, gridDim
  int lane;
  unsigned block_turn; // tells this block from all others that have run
  tf_memory *dynamic;  // shared memory of the size that the launch says
  // __syncthreads(): how many of the block's threads have come with a true value.
  int (*barrier)(int line, int value);
  // __syncwarp(): orders what the lanes in `mask` do to memory, which shuffles and votes do not.
  void (*warp_barrier)(unsigned mask, int line);
  // The value of the lane `source`, for the lanes in `mask`.
  unsigned long (*shuffle)(unsigned mask, unsigned long value, int source, int line);
  // Which lanes in `mask` have come with a true value.
  unsigned (*ballot)(unsigned mask, int value, int line);
  // What each of the warp's 32 lanes gave, 64 bytes apart; valid until the lane's next but one.
  const char *(*exchange)(const void *given, int bytes, int line);
  // The memory of a __shared__ variable of this size.
  void *(*place)(tf_array *array, __SIZE_TYPE__ bytes);
  void (*access)(const tf_array *array, const void *address, int bytes, int kind, int line);
  void (*outside)(const tf_array *array, int axis, long index, int line);
  // From now on the array is reached by plain pointers: nothing is known of it any more.
  void (*release)(const tf_array *array);
  void (*fault)(int line, const char *what);
} tf_machine;

// What the library of a text exports: tf_open(machine).
typedef struct {
  const tf_kernel *kernels;
  int count;
} tf_library;
