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

// x * x.
static __device__ inline double tf_square_double(double x) {
  return x * x;
}

// mean = x.mean(axis=0)
// variance = ((x - mean) ** 2).mean(axis=0)
// [sum_blocks, sum, mean, subtract, square, sum_1_blocks, sum_1, variance] reads 3.07 KiB, writes
//   48 B, 1572 operations
// 1 block of 32 threads
extern "C" __global__ void __launch_bounds__(32) moments_variance(TF_IN(double) x, TF_OUT(double) mean, TF_OUT(double) variance) {
  TF_SHARED(double, sum_blocks, [6]);
  TF_SHARED(double, sum_1_blocks, [6]);
  {
    const int i = threadIdx.x;
    if (i < 3) {
      double sum_1;
      double sum;
      sum_blocks[i] = 0.0;
      for (int r = 0; r < 128; r++) {
        sum_blocks[i] += x[3 * r + i];
      }
      sum_blocks[i + 3] = 0.0;
      for (int r = 0; r < 2; r++) {
        sum_blocks[i + 3] += x[3 * r + i + 384];
      }
      sum_blocks[i] += sum_blocks[i + 3];
      sum = sum_blocks[i];
      mean[i] = sum / 130.0;
      sum_1_blocks[i] = 0.0;
      for (int r = 0; r < 128; r++) {
        sum_1_blocks[i] += tf_square_double(x[3 * r + i] - mean[i]);
      }
      sum_1_blocks[i + 3] = 0.0;
      for (int r = 0; r < 2; r++) {
        sum_1_blocks[i + 3] += tf_square_double(x[3 * r + i + 384] - mean[i]);
      }
      sum_1_blocks[i] += sum_1_blocks[i + 3];
      sum_1 = sum_1_blocks[i];
      variance[i] = sum_1 / 130.0;
    }
  }
}
