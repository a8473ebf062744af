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

typedef __INT16_TYPE__ int16_t;

// return (x[1:] + x[:-1])[::2], np.stack([x, x[::-1]]).T
// [add, out_1, out] reads 22 B, writes 54 B, 5 operations
// 1 block of 32 threads
extern "C" __global__ void __launch_bounds__(32) running_pairs_out(TF_IN(int16_t) x, TF_OUT(int16_t) out_1, TF_OUT(int16_t) out) {
  {
    const int j = threadIdx.x;
    if (j < 11) {
      out_1[2 * j] = x[j];
      out_1[2 * j + 1] = x[-j + 10];
    }
  }
  {
    const int i = threadIdx.x;
    if (i < 5) {
      out[i] = (int16_t)(x[2 * i + 1] + x[2 * i]);
    }
  }
}
