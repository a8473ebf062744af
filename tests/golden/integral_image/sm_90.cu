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

// return np.cumsum(np.cumsum(image * 2, axis=0), axis=1)
// [multiply, cumsum] reads 140 KiB, writes 70.3 KiB, 35800 operations
// 4 blocks of 64 threads
extern "C" __global__ void __launch_bounds__(64) integral_image_cumsum(TF_IN(float) image, TF_OUT(float) cumsum) {
  const int j_outer = blockIdx.x;
  if (j_outer < 3) {
    {
      const int j = threadIdx.x;
      cumsum[64 * j_outer + j] = image[64 * j_outer + j] * 2.0f;
      for (int i = 1; i < 90; i++) {
        cumsum[200 * i + 64 * j_outer + j] = cumsum[200 * i + 64 * j_outer + j - 200] + image[200 * i + 64 * j_outer + j] * 2.0f;
      }
    }
  } else {
    {
      const int step = threadIdx.x;
      if (step < 8) {
        const int j = step + 192;
        cumsum[j] = image[j] * 2.0f;
        for (int i = 1; i < 90; i++) {
          cumsum[200 * i + j] = cumsum[200 * i + j - 200] + image[200 * i + j] * 2.0f;
        }
      }
    }
  }
}

// return np.cumsum(np.cumsum(image * 2, axis=0), axis=1)
// [out] reads 70.3 KiB, writes 70.3 KiB, 17910 operations
// 1 block of 96 threads
extern "C" __global__ void __launch_bounds__(96) integral_image_out(TF_IN(float) cumsum, TF_OUT(float) out) {
  {
    const int i = blockIdx.x * 96 + threadIdx.x;
    if (i < 90) {
      float out_acc = cumsum[200 * i];
      out[200 * i] = out_acc;
      for (int j = 1; j < 200; j++) {
        out_acc += cumsum[200 * i + j];
        out[200 * i + j] = out_acc;
      }
    }
  }
}
