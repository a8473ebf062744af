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

typedef __INT8_TYPE__ int8_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT32_TYPE__ uint32_t;

// The larger of a and b.
static __device__ inline uint32_t tf_maximum_uint32(uint32_t a, uint32_t b) {
  return a > b ? a : b;
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

// The value that has this place, where NaN comes last.
static __device__ inline float tf_of_rank_nan_last_float(uint32_t rank) {
  const uint32_t bits = rank - 0x7f800000u - 1, sign = (uint32_t)1 << (32 - 1);
  return tf_from_bits_float(bits & sign ? ~bits ^ sign : bits);
}

// x, but +0 where its integer part is 0. gcc 12 makes trunc(x) of an integer that is converted
// back to the type of x, which has a sign where that integer is 0.
static __device__ inline float tf_zero_if_fraction_float(float x) {
  return __builtin_fabsf(x) >= 1.0f ? x : 0.0f;
}

// x as an int32_t; the smallest int32_t where it does not fit, and for NaN.
static __device__ inline int32_t tf_int32_float(float x) {
  return __builtin_fabsf(x) < 2147483648.0f ? (int32_t)tf_zero_if_fraction_float(x) : -2147483647 - 1;
}

// scale = np.abs(x).max() / 127
// return np.rint(x / scale).astype(np.int8), scale
// [absolute, max_rank, max, scale, divide, rint_1, out] reads 532 B, writes 136 B, 662 operations
// 1 block of 160 threads
extern "C" __global__ void __launch_bounds__(160) quantize_out(TF_IN(float) x, TF_OUT(float) scale, TF_OUT(int8_t) out) {
  TF_SHARED(uint32_t, partial_uint32, [5]);
  uint32_t max_rank = 0u;
  {
    const int k = threadIdx.x;
    if (k < 132) {
      max_rank = tf_maximum_uint32(max_rank, tf_rank_nan_last_float(__builtin_fabsf(x[k])));
    }
  }
  for (int apart = 16; apart > 0; apart /= 2)
    max_rank = tf_maximum_uint32(max_rank, (uint32_t)__shfl_xor_sync(0xffffffffu, (uint32_t)max_rank, apart));
  if (threadIdx.x % 32 == 0)
    partial_uint32[threadIdx.x / 32] = max_rank;
  __syncthreads();
  for (int warp = 0; warp < 5; warp++)
    max_rank = tf_maximum_uint32(max_rank, (uint32_t)partial_uint32[warp]);
  if (threadIdx.x == 0) {
    scale[0] = tf_of_rank_nan_last_float(max_rank) / 127.0f;
  }
  __syncthreads();
  {
    const int i = threadIdx.x;
    if (i < 132) {
      out[i] = (int8_t)tf_int32_float(__builtin_rintf(x[i] / scale[0]));
    }
  }
}
