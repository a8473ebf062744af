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

// scores = query @ key.T / np.sqrt(np.float32(query.shape[-1]))
// weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
// return weights / weights.sum(axis=-1, keepdims=True) @ value
// [matmul, scores, max_rank, max, subtract, weights, sum, divide, ... and 1 more] reads 768 B,
//   writes 96 B, 1866 operations
// 1 block of 32 threads
extern "C" __global__ void __launch_bounds__(32) attention_out(TF_IN(float) query, TF_IN(float) key, TF_IN(float) value, TF_OUT(float) out) {
  {
    const int i = blockIdx.x * 32 + threadIdx.x;
    if (i < 6) {
      float scores[10];
      uint32_t max_rank;
      float weights[10];
      float sum;
      float divide[10];
      for (int j = 0; j < 10; j++) {
        float matmul;
        float matmul_acc = 0.0f;
        for (int k = 0; k < 8; k++) {
          matmul_acc = __builtin_fmaf(query[8 * i + k], key[8 * j + k], matmul_acc);
        }
        matmul = matmul_acc;
        scores[j] = matmul / 2.828427f;
      }
      max_rank = 0u;
      for (int k = 0; k < 10; k++) {
        max_rank = tf_maximum_uint32(max_rank, tf_rank_nan_last_float(scores[k]));
      }
      const float max = tf_of_rank_nan_last_float(max_rank);
      for (int j = 0; j < 10; j++) {
        weights[j] = tf_exp_nonpositive_float(scores[j] - max);
      }
      sum = 0.0f;
      for (int k = 0; k < 10; k++) {
        sum += weights[k];
      }
      for (int j = 0; j < 10; j++) {
        divide[j] = weights[j] / sum;
      }
      for (int j = 0; j < 4; j++) {
        out[4 * i + j] = 0.0f;
        for (int k = 0; k < 10; k++) {
          out[4 * i + j] = __builtin_fmaf(divide[k], value[4 * k + j], out[4 * i + j]);
        }
      }
    }
  }
}
