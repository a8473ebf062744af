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

// e^r - 1 for |r| <= log(2) / 2, off by 2^-27.5.
static __device__ inline float tf_exp_core_float(float r) {
  float q = 0x1.6a5166p-10f;
  q = __builtin_fmaf(q, r, 0x1.123e52p-7f);
  q = __builtin_fmaf(q, r, 0x1.5558d6p-5f);
  q = __builtin_fmaf(q, r, 0x1.555494p-3f);
  q = __builtin_fmaf(q, r, 0x1.fffffcp-2f);
  return __builtin_fmaf(r * r, q, r);
}

// e^x for x <= 0, or NaN: 2^n need not be split, as 2^(n + 64) is normal.
static __device__ inline float tf_exp_nonpositive_float(float x) {
  float t = __builtin_fmaf(x, 0x1.715476p+0f, 0x1.80017ep+23f); // n + 127 + 64 in its low bits
  float n = t - 0x1.80017ep+23f;
  float r = __builtin_fmaf(n, -0x1.7f7d1cp-20f, __builtin_fmaf(n, -0x1.62e4p-1f, x));
  float scale = tf_from_bits_float(tf_bits_float(t) << 23);
  float y = __builtin_fmaf(tf_exp_core_float(r), scale, scale) * 0x1p-64f;
  return x < -104.5f ? 0.0f : y;
}

// scores = query @ np.swapaxes(key, -1, -2) * np.float32(0.25)
// [matmul] reads 64 KiB, writes 512 KiB, 4194304 operations
// 8 blocks of 256 threads
extern "C" __global__ void __launch_bounds__(256) causal_attention_matmul(TF_IN(float) query, TF_IN(float) key, TF_OUT(float) matmul) {
  const int i = blockIdx.x / 4;
  const int j_block = blockIdx.x / 2 % 2;
  const int k_block = blockIdx.x % 2;
  float matmul_acc[64];
  TF_SHARED(float, tile_0, [1056]);
  TF_SHARED(float, tile_1, [1024]);
  {
    const int step_1 = threadIdx.x;
    const int ty = step_1 / 16;
    const int tx = step_1 % 16;
    #pragma unroll
    for (int row = 0; row < 8; row++) {
      #pragma unroll
      for (int column = 0; column < 8; column++) {
        matmul_acc[8 * row + column] = 0.0f;
      }
    }
  }
  for (int l_outer = 0; l_outer < 2; l_outer++) {
    __syncthreads();
    for (int step_1 = threadIdx.x; step_1 < 1024; step_1 += 256) {
      const int place = step_1 / 8;
      const int step = step_1 % 8;
      tile_0[132 * step + place] = query[4096 * i + 2048 * j_block + 16 * place + 8 * l_outer + step];
    }
    for (int step_1 = threadIdx.x; step_1 < 1024; step_1 += 256) {
      const int place = step_1 / 8;
      const int step = step_1 % 8;
      tile_1[128 * step + place] = key[4096 * i + 2048 * k_block + 16 * place + 8 * l_outer + step];
    }
    __syncthreads();
    {
      const int step_1 = threadIdx.x;
      const int ty = step_1 / 16;
      const int tx = step_1 % 16;
      for (int l = 0; l < 8; l++) {
        #pragma unroll
        for (int row = 0; row < 8; row++) {
          #pragma unroll
          for (int column = 0; column < 8; column++) {
            matmul_acc[8 * row + column] = __builtin_fmaf(tile_0[132 * l + 16 * row + ty], tile_1[128 * l + 16 * column + tx], matmul_acc[8 * row + column]);
          }
        }
      }
    }
  }
  {
    const int step_1 = threadIdx.x;
    const int ty = step_1 / 16;
    const int tx = step_1 % 16;
    #pragma unroll
    for (int row = 0; row < 8; row++) {
      #pragma unroll
      for (int column = 0; column < 8; column++) {
        matmul[65536 * i + 32768 * j_block + 4096 * row + 256 * ty + 128 * k_block + 16 * column + tx] = matmul_acc[8 * row + column];
      }
    }
  }
}

// scores = query @ np.swapaxes(key, -1, -2) * np.float32(0.25)
// return weights / weights.sum(axis=-1, keepdims=True) @ value
// [scores, out_tops] reads 512 KiB, writes 8 KiB, 393216 operations
// 8 blocks of 256 threads
extern "C" __global__ void __launch_bounds__(256) causal_attention_out_tops(TF_IN(float) matmul, TF_OUT(uint32_t) out_tops) {
  TF_SHARED(uint32_t, partial_uint32, [8]);
  const int b = blockIdx.x / 2;
  const int i = blockIdx.x % 2;
  TF_SHARED(uint32_t, out_tops_acc, [255]);
  {
    const int j = threadIdx.x;
    if (j < 255) {
      out_tops_acc[j] = 0u;
    }
  }
  {
    const int j = threadIdx.x;
    if (j < 255) {
      for (int e = 0; e < 64; e++) {
        out_tops_acc[j] = tf_maximum_uint32(out_tops_acc[j], tf_rank_nan_last_float(j - 64 * b - e >= 0 ? matmul[65536 * i + 256 * j + 64 * b + e] * 0.25f : -__builtin_inff()));
      }
    }
  }
  {
    const int j = threadIdx.x;
    if (j < 255) {
      out_tops[512 * b + 256 * i + j] = out_tops_acc[j];
    }
  }
  {
    uint32_t out_tops_acc_1 = 0u;
    {
      const int e = threadIdx.x;
      if (e < 64) {
        const float scores = matmul[65536 * i + 64 * b + e + 65280] * 0.25f;
        out_tops_acc_1 = tf_maximum_uint32(out_tops_acc_1, tf_rank_nan_last_float(scores));
      }
    }
    for (int apart = 16; apart > 0; apart /= 2)
      out_tops_acc_1 = tf_maximum_uint32(out_tops_acc_1, (uint32_t)__shfl_xor_sync(0xffffffffu, (uint32_t)out_tops_acc_1, apart));
    if (threadIdx.x % 32 == 0)
      partial_uint32[threadIdx.x / 32] = out_tops_acc_1;
    __syncthreads();
    for (int warp = 0; warp < 8; warp++)
      out_tops_acc_1 = tf_maximum_uint32(out_tops_acc_1, (uint32_t)partial_uint32[warp]);
    if (threadIdx.x == 0) {
      out_tops[512 * b + 256 * i + 255] = out_tops_acc_1;
    }
  }
}

// return weights / weights.sum(axis=-1, keepdims=True) @ value
// [out_before, out_base, out_scale] reads 16 KiB, writes 16 KiB, 13568 operations
// 1 block of 256 threads
extern "C" __global__ void __launch_bounds__(256) causal_attention_out_scale(TF_IN(uint32_t) out_tops, TF_OUT(float) out_base, TF_OUT(float) out_scale) {
  TF_SHARED(uint32_t, out_before, [2048]);
  for (int i = threadIdx.x; i < 512; i += 256) {
    out_before[i] = 0u;
    out_before[i + 512] = tf_maximum_uint32(out_before[i], out_tops[i]);
  }
  for (int b = 2; b < 4; b++) {
    __syncthreads();
    {
      const int step = threadIdx.x;
      if (step < 128) {
        const int i = step / 64;
        const int j = step % 64;
        out_before[512 * b + 256 * i + j] = out_before[512 * b + 256 * i + j - 512];
      }
    }
    {
      const int step = threadIdx.x;
      if (step < 128) {
        const int i = step / 64;
        const int j = step % 64 + 64;
        out_before[512 * b + 256 * i + j] = j - 64 * b >= -64 ? tf_maximum_uint32(out_before[512 * b + 256 * i + j - 512], out_tops[512 * b + 256 * i + j - 512]) : out_before[512 * b + 256 * i + j - 512];
      }
    }
    {
      const int step = threadIdx.x;
      const int i = step / 128;
      const int j = step % 128 + 128;
      out_before[512 * b + 256 * i + j] = tf_maximum_uint32(out_before[512 * b + 256 * i + j - 512], out_tops[512 * b + 256 * i + j - 512]);
    }
  }
  __syncthreads();
  for (int b = threadIdx.x; b < 2048; b += 256) {
    out_base[b] = tf_select_float(tf_of_rank_nan_last_float(tf_maximum_uint32(out_before[b], out_tops[b])) == (-__builtin_inff()), 0.0f, tf_of_rank_nan_last_float(tf_maximum_uint32(out_before[b], out_tops[b])));
    out_scale[b] = tf_exp_nonpositive_float(tf_of_rank_nan_last_float(out_before[b]) - out_base[b]);
  }
}

// scores = query @ np.swapaxes(key, -1, -2) * np.float32(0.25)
// return weights / weights.sum(axis=-1, keepdims=True) @ value
// [scores, out_weights, out_sums, out_products] reads 1.17 MiB, writes 648 KiB, 4718592 operations
// 4 blocks of 256 threads
extern "C" __global__ void __launch_bounds__(256) causal_attention_out_products(TF_IN(float) matmul, TF_IN(float) out_base, TF_IN(float) value, TF_OUT(float) out_sums, TF_OUT(float) out_weights_1, TF_OUT(float) out_products) {
  const int b = blockIdx.x;
  for (int e = 0; e < 64; e++) {
    TF_SHARED(float, scores, [2]);
    for (int step = threadIdx.x; step < 510; step += 256) {
      const int i = step / 255;
      const int j = step % 255;
      out_weights_1[32768 * b + 512 * e + 256 * i + j] = tf_exp_nonpositive_float((j - 64 * b - e >= 0 ? matmul[65536 * i + 256 * j + 64 * b + e] * 0.25f : -__builtin_inff()) - out_base[512 * b + 256 * i + j]);
    }
    {
      const int i = threadIdx.x;
      if (i < 2) {
        scores[i] = matmul[65536 * i + 64 * b + e + 65280] * 0.25f;
        out_weights_1[32768 * b + 512 * e + 256 * i + 255] = tf_exp_nonpositive_float(scores[i] - out_base[512 * b + 256 * i + 255]);
      }
    }
  }
  __syncthreads();
  for (int step = threadIdx.x; step < 512; step += 256) {
    const int i = step / 256;
    const int j = step % 256;
    out_sums[512 * b + 256 * i + j] = 0.0f;
    for (int e = 0; e < 64; e++) {
      out_sums[512 * b + 256 * i + j] += out_weights_1[32768 * b + 512 * e + 256 * i + j];
    }
  }
  for (int step = threadIdx.x; step < 8192; step += 256) {
    const int i = step / 4096;
    const int j = step / 16 % 256;
    const int k = step % 16;
    out_products[8192 * b + 4096 * i + 16 * j + k] = 0.0f;
    for (int e = 0; e < 64; e++) {
      out_products[8192 * b + 4096 * i + 16 * j + k] = __builtin_fmaf(out_weights_1[32768 * b + 512 * e + 256 * i + j], value[4096 * i + 1024 * b + 16 * e + k], out_products[8192 * b + 4096 * i + 16 * j + k]);
    }
  }
}

// return weights / weights.sum(axis=-1, keepdims=True) @ value
// [out_total] reads 15 KiB, writes 2 KiB, 3328 operations
// 2 blocks of 256 threads
extern "C" __global__ void __launch_bounds__(256) causal_attention_out_total(TF_IN(float) out_scale, TF_IN(float) out_sums, TF_OUT(float) out_total) {
  const int i = blockIdx.x;
  {
    const int j = threadIdx.x;
    out_total[256 * i + j] = 0.0f;
    out_total[256 * i + j] = __builtin_fmaf(out_total[256 * i + j], out_scale[256 * i + j], out_sums[256 * i + j]);
  }
  for (int b = 1; b < 4; b++) {
    __syncthreads();
    {
      const int step = threadIdx.x;
      if (step < 128) {
        const int j = step + 64;
        out_total[256 * i + j] = j - 64 * b >= 0 ? __builtin_fmaf(out_total[256 * i + j], out_scale[512 * b + 256 * i + j], out_sums[512 * b + 256 * i + j]) : out_total[256 * i + j];
      }
    }
    {
      const int step = threadIdx.x;
      if (step < 64) {
        const int j = step + 192;
        out_total[256 * i + j] = __builtin_fmaf(out_total[256 * i + j], out_scale[512 * b + 256 * i + j], out_sums[512 * b + 256 * i + j]);
      }
    }
  }
}

// return weights / weights.sum(axis=-1, keepdims=True) @ value
// [out_weighted, out] reads 114 KiB, writes 32 KiB, 61440 operations
// 2 blocks of 256 threads
extern "C" __global__ void __launch_bounds__(256) causal_attention_out(TF_IN(float) out_scale, TF_IN(float) out_products, TF_IN(float) out_total, TF_OUT(float) out) {
  {
    const int step = blockIdx.x * 256 + threadIdx.x;
    const int i = step / 256;
    const int j = step % 256;
    float out_weighted[16];
    if (j < 192) {
      for (int k = 0; k < 16; k++) {
        out_weighted[k] = 0.0f;
        out_weighted[k] = __builtin_fmaf(out_weighted[k], out_scale[256 * i + j], out_products[4096 * i + 16 * j + k]);
        for (int b = 1; b < 3; b++) {
          out_weighted[k] = j - 64 * b >= 0 ? __builtin_fmaf(out_weighted[k], out_scale[512 * b + 256 * i + j], out_products[8192 * b + 4096 * i + 16 * j + k]) : out_weighted[k];
        }
      }
    } else {
      for (int k = 0; k < 16; k++) {
        out_weighted[k] = 0.0f;
        for (int b = 0; b < 4; b++) {
          out_weighted[k] = __builtin_fmaf(out_weighted[k], out_scale[512 * b + 256 * i + j], out_products[8192 * b + 4096 * i + 16 * j + k]);
        }
      }
    }
    for (int k = 0; k < 16; k++) {
      out[4096 * i + 16 * j + k] = out_weighted[k] / out_total[256 * i + j];
    }
  }
}
