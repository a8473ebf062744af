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

typedef __UINT8_TYPE__ bool8_t; // 0 or 1
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

// chosen where the condition holds, else other: by their bits. Both are loaded before, since gcc 12
// mixes up loads behind several conditions, in one sum or in steps of a loop that it writes out.
static __device__ inline float tf_select_float(bool8_t condition, float chosen, float other) {
  uint32_t mask = -(uint32_t)condition;
  return tf_from_bits_float((tf_bits_float(chosen) & mask) | (tf_bits_float(other) & ~mask));
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

// scores = query @ np.swapaxes(key, -1, -2) * np.float32(0.25)
// return weights / weights.sum(axis=-1, keepdims=True) @ value
// [query_copy, matmul_local, matmul, scores, out_tops, out_before, out_base, out_scale, ... and 6
//   more] reads 96 KiB, writes 32 KiB, 10184704 operations
// 8 blocks of 256 threads
extern "C" __global__ void __launch_bounds__(256) causal_attention_out(TF_IN(float) query, TF_IN(float) key, TF_IN(float) value, TF_OUT(float) out) {
  const int j_outer = blockIdx.x / 2;
  const int i = blockIdx.x % 2;
  TF_SHARED(float, matmul_and_out_weights, [4096]);
  TF_SHARED(uint32_t, out_tops, [64]);
  TF_SHARED(float, out_base, [64]);
  TF_SHARED(float, out_scale, [64]);
  TF_SHARED(float, matmul_local, [512]);
  TF_SHARED(float, out_products, [512]);
  TF_SHARED(float, query_copy, [1024]);
  TF_SHARED(float, out_total, [64]);
  TF_SHARED(float, out_weighted, [1024]);
  TF_SHARED(uint32_t, out_before, [64]);
  for (int step = threadIdx.x; step < 1024; step += 256) {
    const int j = step / 16;
    const int k = step % 16;
    query_copy[64 * k + j] = query[4096 * i + 1024 * j_outer + 16 * j + k];
  }
  {
    const int j = threadIdx.x;
    if (j < 64) {
      out_total[j] = 0.0f;
      out_before[j] = 0u;
    }
  }
  for (int step = threadIdx.x; step < 1024; step += 256) {
    const int k_outer = step / 512;
    const int j_outer_1 = step / 8 % 64;
    const int k = step % 8;
    out_weighted[16 * j_outer_1 + 8 * k_outer + k] = 0.0f;
  }
  for (int b = 0; b < 4; b++) {
    if (j_outer - b >= 0) {
      for (int j_outer_1 = 0; j_outer_1 < 8; j_outer_1++) {
        for (int step = threadIdx.x; step < 512; step += 256) {
          const int k_outer = step / 64;
          const int k = step % 64;
          matmul_local[k + 64 * k_outer] = 0.0f;
        }
        __syncthreads();
        {
          const int step = threadIdx.x;
          if (step < 64) {
            const int k_outer = step / 8;
            const int j = step % 8;
            for (int l = 0; l < 16; l++) {
              matmul_local[j + 64 * k_outer] = __builtin_fmaf(query_copy[64 * l + 8 * j_outer_1 + j], key[4096 * i + 1024 * b + 128 * k_outer + l], matmul_local[j + 64 * k_outer]);
              matmul_local[j + 64 * k_outer + 8] = __builtin_fmaf(query_copy[64 * l + 8 * j_outer_1 + j], key[4096 * i + 1024 * b + 128 * k_outer + l + 16], matmul_local[j + 64 * k_outer + 8]);
              matmul_local[j + 64 * k_outer + 16] = __builtin_fmaf(query_copy[64 * l + 8 * j_outer_1 + j], key[4096 * i + 1024 * b + 128 * k_outer + l + 32], matmul_local[j + 64 * k_outer + 16]);
              matmul_local[j + 64 * k_outer + 24] = __builtin_fmaf(query_copy[64 * l + 8 * j_outer_1 + j], key[4096 * i + 1024 * b + 128 * k_outer + l + 48], matmul_local[j + 64 * k_outer + 24]);
              matmul_local[j + 64 * k_outer + 32] = __builtin_fmaf(query_copy[64 * l + 8 * j_outer_1 + j], key[4096 * i + 1024 * b + 128 * k_outer + l + 64], matmul_local[j + 64 * k_outer + 32]);
              matmul_local[j + 64 * k_outer + 40] = __builtin_fmaf(query_copy[64 * l + 8 * j_outer_1 + j], key[4096 * i + 1024 * b + 128 * k_outer + l + 80], matmul_local[j + 64 * k_outer + 40]);
              matmul_local[j + 64 * k_outer + 48] = __builtin_fmaf(query_copy[64 * l + 8 * j_outer_1 + j], key[4096 * i + 1024 * b + 128 * k_outer + l + 96], matmul_local[j + 64 * k_outer + 48]);
              matmul_local[j + 64 * k_outer + 56] = __builtin_fmaf(query_copy[64 * l + 8 * j_outer_1 + j], key[4096 * i + 1024 * b + 128 * k_outer + l + 112], matmul_local[j + 64 * k_outer + 56]);
            }
          }
        }
        __syncthreads();
        for (int step = threadIdx.x; step < 512; step += 256) {
          const int k_outer = step / 64;
          const int k = step / 8 % 8;
          const int j = step % 8;
          matmul_and_out_weights[512 * k_outer + 64 * k + 8 * j_outer_1 + j] = matmul_local[8 * k + j + 64 * k_outer];
        }
      }
      if (j_outer - b >= 1) {
        __syncthreads();
        {
          const int j = threadIdx.x;
          if (j < 64) {
            out_tops[j] = 0u;
            for (int e = 0; e < 64; e++) {
              const float scores = matmul_and_out_weights[64 * e + j] * 0.25f;
              out_tops[j] = tf_maximum_uint32(out_tops[j], tf_rank_nan_last_float(scores));
            }
          }
        }
      } else {
        __syncthreads();
        {
          const int j = threadIdx.x;
          if (j < 64) {
            out_tops[j] = 0u;
            for (int e = 0; e < 64; e++) {
              out_tops[j] = tf_maximum_uint32(out_tops[j], tf_rank_nan_last_float(64 * j_outer + j - 64 * b - e >= 0 ? matmul_and_out_weights[64 * e + j] * 0.25f : -__builtin_inff()));
            }
          }
        }
      }
      {
        const int j = threadIdx.x;
        if (j < 64) {
          out_base[j] = tf_select_float(tf_of_rank_nan_last_float(tf_maximum_uint32(out_before[j], out_tops[j])) == (-__builtin_inff()), 0.0f, tf_of_rank_nan_last_float(tf_maximum_uint32(out_before[j], out_tops[j])));
          out_scale[j] = tf_exp_nonpositive_float(tf_of_rank_nan_last_float(out_before[j]) - out_base[j]);
        }
      }
      if (j_outer - b >= 1) {
        __syncthreads();
        for (int step = threadIdx.x; step < 4096; step += 256) {
          const int e = step / 64;
          const int j = step % 64;
          const float scores = matmul_and_out_weights[64 * e + j] * 0.25f;
          matmul_and_out_weights[64 * e + j] = tf_exp_nonpositive_float(scores - out_base[j]);
        }
      } else {
        __syncthreads();
        for (int step = threadIdx.x; step < 4096; step += 256) {
          const int e = step / 64;
          const int j = step % 64;
          matmul_and_out_weights[64 * e + j] = tf_exp_nonpositive_float((64 * j_outer + j - 64 * b - e >= 0 ? matmul_and_out_weights[64 * e + j] * 0.25f : -__builtin_inff()) - out_base[j]);
        }
      }
      __syncthreads();
      {
        const int j = threadIdx.x;
        if (j < 64) {
          float out_sums = 0.0f;
          for (int e = 0; e < 64; e++) {
            out_sums += matmul_and_out_weights[64 * e + j];
          }
          out_total[j] = __builtin_fmaf(out_total[j], out_scale[j], out_sums);
        }
      }
      for (int k_outer = 0; k_outer < 2; k_outer++) {
        __syncthreads();
        for (int step = threadIdx.x; step < 512; step += 256) {
          const int j_outer_1 = step / 64;
          const int j = step % 64;
          out_products[j + 64 * j_outer_1] = 0.0f;
        }
        __syncthreads();
        {
          const int step = threadIdx.x;
          if (step < 64) {
            const int j_outer_1 = step / 8;
            const int k = step % 8;
            for (int g = 0; g < 8; g++) {
              for (int e = 0; e < 8; e++) {
                out_products[k + 64 * j_outer_1] = 64 * j_outer + 8 * j_outer_1 - 64 * b - 8 * g >= 0 ? __builtin_fmaf(matmul_and_out_weights[64 * e + 512 * g + 8 * j_outer_1], value[4096 * i + 1024 * b + 16 * e + 128 * g + 8 * k_outer + k], out_products[k + 64 * j_outer_1]) : out_products[k + 64 * j_outer_1];
                out_products[k + 64 * j_outer_1 + 8] = 64 * j_outer + 8 * j_outer_1 - 64 * b - 8 * g >= -1 ? __builtin_fmaf(matmul_and_out_weights[64 * e + 512 * g + 8 * j_outer_1 + 1], value[4096 * i + 1024 * b + 16 * e + 128 * g + 8 * k_outer + k], out_products[k + 64 * j_outer_1 + 8]) : out_products[k + 64 * j_outer_1 + 8];
                out_products[k + 64 * j_outer_1 + 16] = 64 * j_outer + 8 * j_outer_1 - 64 * b - 8 * g >= -2 ? __builtin_fmaf(matmul_and_out_weights[64 * e + 512 * g + 8 * j_outer_1 + 2], value[4096 * i + 1024 * b + 16 * e + 128 * g + 8 * k_outer + k], out_products[k + 64 * j_outer_1 + 16]) : out_products[k + 64 * j_outer_1 + 16];
                out_products[k + 64 * j_outer_1 + 24] = 64 * j_outer + 8 * j_outer_1 - 64 * b - 8 * g >= -3 ? __builtin_fmaf(matmul_and_out_weights[64 * e + 512 * g + 8 * j_outer_1 + 3], value[4096 * i + 1024 * b + 16 * e + 128 * g + 8 * k_outer + k], out_products[k + 64 * j_outer_1 + 24]) : out_products[k + 64 * j_outer_1 + 24];
                out_products[k + 64 * j_outer_1 + 32] = 64 * j_outer + 8 * j_outer_1 - 64 * b - 8 * g >= -4 ? __builtin_fmaf(matmul_and_out_weights[64 * e + 512 * g + 8 * j_outer_1 + 4], value[4096 * i + 1024 * b + 16 * e + 128 * g + 8 * k_outer + k], out_products[k + 64 * j_outer_1 + 32]) : out_products[k + 64 * j_outer_1 + 32];
                out_products[k + 64 * j_outer_1 + 40] = 64 * j_outer + 8 * j_outer_1 - 64 * b - 8 * g >= -5 ? __builtin_fmaf(matmul_and_out_weights[64 * e + 512 * g + 8 * j_outer_1 + 5], value[4096 * i + 1024 * b + 16 * e + 128 * g + 8 * k_outer + k], out_products[k + 64 * j_outer_1 + 40]) : out_products[k + 64 * j_outer_1 + 40];
                out_products[k + 64 * j_outer_1 + 48] = 64 * j_outer + 8 * j_outer_1 - 64 * b - 8 * g >= -6 ? __builtin_fmaf(matmul_and_out_weights[64 * e + 512 * g + 8 * j_outer_1 + 6], value[4096 * i + 1024 * b + 16 * e + 128 * g + 8 * k_outer + k], out_products[k + 64 * j_outer_1 + 48]) : out_products[k + 64 * j_outer_1 + 48];
                out_products[k + 64 * j_outer_1 + 56] = 64 * j_outer + 8 * j_outer_1 - 64 * b - 8 * g >= -7 ? __builtin_fmaf(matmul_and_out_weights[64 * e + 512 * g + 8 * j_outer_1 + 7], value[4096 * i + 1024 * b + 16 * e + 128 * g + 8 * k_outer + k], out_products[k + 64 * j_outer_1 + 56]) : out_products[k + 64 * j_outer_1 + 56];
              }
            }
            out_weighted[128 * j_outer_1 + 8 * k_outer + k] = __builtin_fmaf(out_weighted[128 * j_outer_1 + 8 * k_outer + k], out_scale[8 * j_outer_1], out_products[k + 64 * j_outer_1]);
            out_weighted[128 * j_outer_1 + 8 * k_outer + k + 16] = __builtin_fmaf(out_weighted[128 * j_outer_1 + 8 * k_outer + k + 16], out_scale[8 * j_outer_1 + 1], out_products[k + 64 * j_outer_1 + 8]);
            out_weighted[128 * j_outer_1 + 8 * k_outer + k + 32] = __builtin_fmaf(out_weighted[128 * j_outer_1 + 8 * k_outer + k + 32], out_scale[8 * j_outer_1 + 2], out_products[k + 64 * j_outer_1 + 16]);
            out_weighted[128 * j_outer_1 + 8 * k_outer + k + 48] = __builtin_fmaf(out_weighted[128 * j_outer_1 + 8 * k_outer + k + 48], out_scale[8 * j_outer_1 + 3], out_products[k + 64 * j_outer_1 + 24]);
            out_weighted[128 * j_outer_1 + 8 * k_outer + k + 64] = __builtin_fmaf(out_weighted[128 * j_outer_1 + 8 * k_outer + k + 64], out_scale[8 * j_outer_1 + 4], out_products[k + 64 * j_outer_1 + 32]);
            out_weighted[128 * j_outer_1 + 8 * k_outer + k + 80] = __builtin_fmaf(out_weighted[128 * j_outer_1 + 8 * k_outer + k + 80], out_scale[8 * j_outer_1 + 5], out_products[k + 64 * j_outer_1 + 40]);
            out_weighted[128 * j_outer_1 + 8 * k_outer + k + 96] = __builtin_fmaf(out_weighted[128 * j_outer_1 + 8 * k_outer + k + 96], out_scale[8 * j_outer_1 + 6], out_products[k + 64 * j_outer_1 + 48]);
            out_weighted[128 * j_outer_1 + 8 * k_outer + k + 112] = __builtin_fmaf(out_weighted[128 * j_outer_1 + 8 * k_outer + k + 112], out_scale[8 * j_outer_1 + 7], out_products[k + 64 * j_outer_1 + 56]);
          }
        }
      }
      {
        const int j = threadIdx.x;
        if (j < 64) {
          out_before[j] = tf_maximum_uint32(out_before[j], out_tops[j]);
        }
      }
    }
  }
  __syncthreads();
  for (int step = threadIdx.x; step < 1024; step += 256) {
    const int j = step / 16;
    const int k = step % 16;
    out[4096 * i + 1024 * j_outer + 16 * j + k] = out_weighted[16 * j + k] / out_total[j];
  }
}
