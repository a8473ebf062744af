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

typedef __UINT8_TYPE__ uint8_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;

// a / 2^b; 0 for shifts by the width or more.
static __device__ inline uint32_t tf_right_shift_uint32(uint32_t a, uint32_t b) {
  return b < 32 ? (uint32_t)(a >> b) : 0;
}

// The number of ones in x.
static __device__ inline uint8_t tf_bitwise_count_uint32(uint32_t x) {
  uint32_t pairs = (uint32_t)(x - ((x >> 1) & ((uint32_t)-1 / 3)));
  uint32_t fours = (uint32_t)((pairs & ((uint32_t)-1 / 5)) + ((pairs >> 2) & ((uint32_t)-1 / 5)));
  uint32_t bytes = (uint32_t)((fours + (fours >> 4)) & ((uint32_t)-1 / 17));
  return (uint8_t)((uint32_t)(bytes * ((uint32_t)-1 / 255)) >> (32 - 8));
}

// a / b, rounded down; 0 for b = 0.
static __device__ inline uint32_t tf_floor_divide_uint32(uint32_t a, uint32_t b) {
  return b == 0 ? 0 : (uint32_t)(a / b);
}

// The remainder of a / b; 0 for b = 0.
static __device__ inline uint32_t tf_remainder_uint32(uint32_t a, uint32_t b) {
  return b == 0 ? 0 : (uint32_t)(a % b);
}

// mixed = (words ^ (words >> 7)) * np.uint32(2654435761)
// return np.bitwise_count(mixed & 0xFFFF), (mixed // 3 % 251).sum()
// [right_shift, bitwise_xor, mixed, bitwise_and, out, floor_divide, remainder_1, out_1] reads 320
//   B, writes 208 B, 360 operations
// 1 block of 64 threads
extern "C" __global__ void __launch_bounds__(64) checksum_out_1(TF_IN(uint32_t) words, TF_OUT(uint32_t) bitwise_xor, TF_OUT(uint8_t) out, TF_OUT(uint64_t) out_1) {
  uint64_t out_1_acc;
  {
    const int i = threadIdx.x;
    if (i < 40) {
      bitwise_xor[i] = words[i] ^ tf_right_shift_uint32(words[i], 7u);
      const uint32_t mixed = bitwise_xor[i] * 2654435761u;
      out[i] = tf_bitwise_count_uint32(mixed & 65535u);
    }
  }
  out_1_acc = 0u;
  __syncthreads();
  for (int k = 0; k < 40; k++) {
    const uint32_t mixed = bitwise_xor[k] * 2654435761u;
    out_1_acc += (uint64_t)tf_remainder_uint32(tf_floor_divide_uint32(mixed, 3u), 251u);
  }
  if (threadIdx.x == 0) {
    out_1[0] = out_1_acc;
  }
}
