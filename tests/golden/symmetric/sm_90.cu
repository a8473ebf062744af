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

// return (x + x.T) / 2
// [add, out] reads 200 B, writes 200 B, 50 operations
// 1 block of 32 threads
extern "C" __global__ void __launch_bounds__(32) symmetric_out(TF_IN(double) x, TF_OUT(double) out) {
  {
    const int step = blockIdx.x * 32 + threadIdx.x;
    if (step < 25) {
      const int i = step / 5;
      const int j = step % 5;
      out[5 * i + j] = (x[5 * i + j] + x[5 * j + i]) / 2.0;
    }
  }
}
