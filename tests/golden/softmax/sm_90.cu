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

// e^x for x <= 0, or NaN: 2^n need not be split, as 2^(n + 64) is normal. All coefficients are those of
// e^r times 2^-64, which changes no rounding.
static __device__ inline float tf_exp_nonpositive_float(float x) {
  float t = __builtin_fmaf(x, 0x1.715476p+0f, 0x1.80017ep+23f); // n + 127 + 64 in its low bits
  float n = t - 0x1.80017ep+23f;
  float r = __builtin_fmaf(n, -0x1.7f7d1cp-20f, __builtin_fmaf(n, -0x1.62e4p-1f, x));
  float q = 0x1.6a5166p-74f;
  q = __builtin_fmaf(q, r, 0x1.123e52p-71f);
  q = __builtin_fmaf(q, r, 0x1.5558d6p-69f);
  q = __builtin_fmaf(q, r, 0x1.555494p-67f);
  q = __builtin_fmaf(q, r, 0x1.fffffcp-66f);
  q = __builtin_fmaf(q, r, 0x1p-64f);
  q = __builtin_fmaf(q, r, 0x1p-64f);
  float y = q * tf_from_bits_float(tf_bits_float(t) << 23);
  return x < -104.5f ? 0.0f : y;
}

// e = np.exp(x - x.max(axis=-1, keepdims=True))
// return e / e.sum(axis=-1, keepdims=True)
// [max_rank, max, subtract, e, sum_lanes, sum, out] reads 9.38 KiB, writes 9.38 KiB, 15072
//   operations
// 8 blocks of 256 threads
extern "C" __global__ void __launch_bounds__(256) softmax_out(TF_IN(float) x, TF_OUT(float) out) {
  TF_SHARED(uint32_t, partial_uint32, [8]);
  const int i = blockIdx.x;
  uint32_t max_rank;
  TF_SHARED(float, e, [300]);
  float sum;
  TF_SHARED(float, sum_lanes, [64]);
  max_rank = 0u;
  for (int k = threadIdx.x; k < 300; k += 256) {
    max_rank = tf_maximum_uint32(max_rank, tf_rank_nan_last_float(x[300 * i + k]));
  }
  for (int apart = 16; apart > 0; apart /= 2)
    max_rank = tf_maximum_uint32(max_rank, (uint32_t)__shfl_xor_sync(0xffffffffu, (uint32_t)max_rank, apart));
  if (threadIdx.x % 32 == 0)
    partial_uint32[threadIdx.x / 32] = max_rank;
  __syncthreads();
  for (int warp = 0; warp < 8; warp++)
    max_rank = tf_maximum_uint32(max_rank, (uint32_t)partial_uint32[warp]);
  const float max = tf_of_rank_nan_last_float(max_rank);
  for (int j = threadIdx.x; j < 300; j += 256) {
    e[j] = tf_exp_nonpositive_float(x[300 * i + j] - max);
  }
  __syncthreads();
  {
    const int l = threadIdx.x;
    if (l < 64) {
      sum_lanes[l] = 0.0f;
      for (int s = 0; s < 4; s++) {
        sum_lanes[l] += e[64 * s + l];
      }
      sum_lanes[l] = l < 44 ? sum_lanes[l] + e[l + 256] : sum_lanes[l];
    }
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    const int lane = threadIdx.x % 32;
    float sum_1 = sum_lanes[lane] + sum_lanes[lane + 32];
    for (int apart = 16; apart > 0; apart /= 2)
      sum_1 += __shfl_down_sync(0xffffffffu, sum_1, apart);
    if (lane == 0) {
      sum_lanes[0] = sum_1;
    }
  }
  __syncthreads();
  sum = sum_lanes[0];
  for (int j = threadIdx.x; j < 300; j += 256) {
    out[300 * i + j] = e[j] / sum;
  }
}
