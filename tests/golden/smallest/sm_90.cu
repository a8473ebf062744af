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

// return x[0, 0] + x[-1, -1]
// [out] reads 8 B, writes 4 B, 1 operation
// 1 block of 32 threads
extern "C" __global__ void __launch_bounds__(32) smallest_out(TF_IN(float) x, TF_OUT(float) out) {
  if (threadIdx.x == 0) {
    out[0] = x[0] + x[8];
  }
}
