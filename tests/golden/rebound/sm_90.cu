#ifdef __CUDACC__
// What tells nvcc from the emulator, which runs the same text on the CPU.
#define TF_IN(T) const T *__restrict__
#define TF_OUT(T) T *__restrict__
#define TF_SHARED(T, name, size) __shared__ __align__(16) T name size
#define TF_LOAD(V, from) (*(const V *)(from))
#define TF_STORE(V, to, value) (*(V *)(to) = (value))
#define TF_RAW(array) (array)
#define __builtin_isunordered(a, b) ((a) != (a) || (b) != (b))
#endif

typedef __UINT32_TYPE__ uint32_t;

// The larger of a and b.
static __device__ inline uint32_t tf_maximum_uint32(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

// The smaller of a and b.
static __device__ inline uint32_t tf_minimum_uint32(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

// The bits of x.
static __device__ inline uint32_t tf_bits_float(float x) {
  union {
    float value;
    uint32_t bits;
  } pun = {.value = x};
  return pun.bits;
}

// The value that has these bits.
static __device__ inline float tf_from_bits_float(uint32_t bits) {
  union {
    uint32_t bits;
    float value;
  } pun = {.bits = bits};
  return pun.value;
}

// The place of x among all values: -0 before +0, and every NaN after infinity.
static __device__ inline uint32_t tf_rank_nan_last_float(float x) {
  const uint32_t bits = tf_bits_float(x), sign = (uint32_t)1 << (32 - 1);
  return bits & sign ? sign + 0x7f800000u - bits : bits + 0x7f800000u + 1;
}

// The place of x among all values: -0 before +0, and every NaN before negative infinity.
static __device__ inline uint32_t tf_rank_nan_first_float(float x) {
  const uint32_t bits = tf_bits_float(x), sign = (uint32_t)1 << (32 - 1);
  return bits & sign ? sign - 0x7f800000u - 2 - bits : bits - 0x7f800000u - 1;
}

// The value that has this place, where NaN comes last.
static __device__ inline float tf_of_rank_nan_last_float(uint32_t rank) {
  const uint32_t bits = rank - 0x7f800000u - 1, sign = (uint32_t)1 << (32 - 1);
  return tf_from_bits_float(bits & sign ? ~bits ^ sign : bits);
}

// The value that has this place, where NaN comes first.
static __device__ inline float tf_of_rank_nan_first_float(uint32_t rank) {
  const uint32_t bits = rank + 0x7f800000u + 1, sign = (uint32_t)1 << (32 - 1);
  return tf_from_bits_float(bits & sign ? ~bits ^ sign : bits);
}

// x = x - x.min()
// x = x / x.max()
// [min_rank, min, x_1, max_rank, max, x_2] reads 200 B, writes 200 B, 353 operations
// 1 block of 64 threads
extern "C" __global__ void __launch_bounds__(64) rebound_x_2(TF_IN(float) x, TF_OUT(float) x_2) {
  TF_SHARED(uint32_t, partial_uint32, [2]);
  uint32_t min_rank;
  uint32_t max_rank;
  min_rank = 4294967295u;
  {
    const int k = threadIdx.x;
    if (k < 50) {
      min_rank = tf_minimum_uint32(min_rank, tf_rank_nan_first_float(x[k]));
    }
  }
  for (int apart = 16; apart > 0; apart /= 2)
    min_rank = tf_minimum_uint32(min_rank, (uint32_t)__shfl_xor_sync(0xffffffffu, (uint32_t)min_rank, apart));
  if (threadIdx.x % 32 == 0)
    partial_uint32[threadIdx.x / 32] = min_rank;
  __syncthreads();
  for (int warp = 0; warp < 2; warp++)
    min_rank = tf_minimum_uint32(min_rank, (uint32_t)partial_uint32[warp]);
  max_rank = 0u;
  const float min = tf_of_rank_nan_first_float(min_rank);
  {
    const int k = threadIdx.x;
    if (k < 50) {
      const float x_1 = x[k] - min;
      max_rank = tf_maximum_uint32(max_rank, tf_rank_nan_last_float(x_1));
    }
  }
  __syncthreads();
  for (int apart = 16; apart > 0; apart /= 2)
    max_rank = tf_maximum_uint32(max_rank, (uint32_t)__shfl_xor_sync(0xffffffffu, (uint32_t)max_rank, apart));
  if (threadIdx.x % 32 == 0)
    partial_uint32[threadIdx.x / 32] = max_rank;
  __syncthreads();
  for (int warp = 0; warp < 2; warp++)
    max_rank = tf_maximum_uint32(max_rank, (uint32_t)partial_uint32[warp]);
  const float min_1 = tf_of_rank_nan_first_float(min_rank);
  const float max = tf_of_rank_nan_last_float(max_rank);
  {
    const int i = threadIdx.x;
    if (i < 50) {
      const float x_1 = x[i] - min_1;
      x_2[i] = x_1 / max;
    }
  }
}
