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

// return (x < 0).any(axis=1), np.isfinite(x).all()
// [less, out, isfinite_1, out_1] reads 4.92 KiB, writes 8 B, 2520 operations
// 1 block of 256 threads
extern "C" __global__ void __launch_bounds__(256) any_negative_out_1(TF_IN(double) x, TF_OUT(bool8_t) out, TF_OUT(bool8_t) out_1) {
  TF_SHARED(int, partial_int, [8]);
  bool8_t out_1_acc;
  TF_SHARED(bool8_t, out_acc, [7]);
  {
    const int i = threadIdx.x;
    if (i < 7) {
      out_acc[i] = 0;
    }
  }
  {
    const int i = threadIdx.x;
    if (i < 7) {
      for (int k = 0; k < 90; k++) {
        out_acc[i] = out_acc[i] | (x[90 * i + k] < 0.0);
      }
    }
  }
  {
    const int i = threadIdx.x;
    if (i < 7) {
      out[i] = out_acc[i];
    }
  }
  out_1_acc = 1;
  for (int k = threadIdx.x; k < 630; k += 256) {
    out_1_acc = out_1_acc & (__builtin_fabs(x[k]) < __builtin_inf());
  }
  for (int apart = 16; apart > 0; apart /= 2)
    out_1_acc = out_1_acc & (bool8_t)__shfl_xor_sync(0xffffffffu, (int)out_1_acc, apart);
  if (threadIdx.x % 32 == 0)
    partial_int[threadIdx.x / 32] = out_1_acc;
  __syncthreads();
  for (int warp = 0; warp < 8; warp++)
    out_1_acc = out_1_acc & (bool8_t)partial_int[warp];
  if (threadIdx.x == 0) {
    out_1[0] = out_1_acc;
  }
}
