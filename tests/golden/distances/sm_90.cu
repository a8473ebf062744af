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
static __device__ inline float tf_square_float(float x) {
  return x * x;
}

// return np.sqrt(((points[:, None] - centres) ** 2).sum(axis=-1))
// [subtract, square, sum, out] reads 4.77 KiB, writes 3.28 KiB, 51240 operations
// 4 blocks of 256 threads
extern "C" __global__ void __launch_bounds__(256) distances_out(TF_IN(float) points, TF_IN(float) centres, TF_OUT(float) out) {
  {
    const int step = blockIdx.x * 256 + threadIdx.x;
    if (step < 840) {
      const int i = step / 40;
      const int j = step % 40;
      float sum = 0.0f;
      for (int k = 0; k < 20; k++) {
        sum += tf_square_float(points[20 * i + k] - centres[20 * j + k]);
      }
      out[40 * i + j] = __builtin_sqrtf(sum);
    }
  }
}
