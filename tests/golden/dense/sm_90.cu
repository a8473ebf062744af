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

// The larger of a and b; NaN where one is NaN; +0 is larger than -0.
static __device__ inline float tf_maximum_float(float a, float b) {
  float first = a > b ? a : b;
  float second = b > a ? b : a; // of two zeros, first is b and second is a
  float larger = tf_from_bits_float(tf_bits_float(first) & tf_bits_float(second));
  return __builtin_isunordered(a, b) ? a + b : larger;
}

// return np.maximum(x @ weight + BIAS, 0)
// [matmul, add, out] reads 268 B, writes 80 B, 320 operations
// 1 block of 32 threads
extern "C" __global__ void __launch_bounds__(32) dense_out(TF_IN(float) x, TF_IN(float) weight, TF_IN(float) BIAS, TF_OUT(float) out) {
  {
    const int step = blockIdx.x * 32 + threadIdx.x;
    if (step < 20) {
      const int i = step / 4;
      const int j = step % 4;
      float matmul = 0.0f;
      for (int k = 0; k < 7; k++) {
        matmul = __builtin_fmaf(x[7 * i + k], weight[4 * k + j], matmul);
      }
      out[4 * i + j] = tf_maximum_float(matmul + BIAS[j], 0.0f);
    }
  }
}
