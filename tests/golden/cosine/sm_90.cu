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

// return x @ y / np.sqrt((x * x).sum() * (y * y).sum())
// [matmul_lanes, matmul, multiply, sum_lanes, sum, multiply_1, sum_1_lanes, sum_1, ... and 3 more]
//   reads 1.56 KiB, writes 8 B, 960 operations
// 1 block of 64 threads
extern "C" __global__ void __launch_bounds__(64) cosine_out(TF_IN(double) x, TF_IN(double) y, TF_OUT(double) out) {
  double matmul;
  double sum;
  double sum_1;
  TF_SHARED(double, matmul_lanes, [64]);
  TF_SHARED(double, sum_lanes, [64]);
  TF_SHARED(double, sum_1_lanes, [64]);
  {
    const int l = threadIdx.x;
    matmul_lanes[l] = 0.0;
    matmul_lanes[l] = __builtin_fma(x[l], y[l], matmul_lanes[l]);
    matmul_lanes[l] = l < 36 ? __builtin_fma(x[l + 64], y[l + 64], matmul_lanes[l]) : matmul_lanes[l];
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    const int lane = threadIdx.x % 32;
    double sum_2 = matmul_lanes[lane] + matmul_lanes[lane + 32];
    for (int apart = 16; apart > 0; apart /= 2)
      sum_2 += __shfl_down_sync(0xffffffffu, sum_2, apart);
    if (lane == 0) {
      matmul_lanes[0] = sum_2;
    }
  }
  __syncthreads();
  matmul = matmul_lanes[0];
  {
    const int l = threadIdx.x;
    sum_lanes[l] = 0.0;
    sum_lanes[l] += x[l] * x[l];
    sum_lanes[l] = l < 36 ? sum_lanes[l] + x[l + 64] * x[l + 64] : sum_lanes[l];
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    const int lane = threadIdx.x % 32;
    double sum_2 = sum_lanes[lane] + sum_lanes[lane + 32];
    for (int apart = 16; apart > 0; apart /= 2)
      sum_2 += __shfl_down_sync(0xffffffffu, sum_2, apart);
    if (lane == 0) {
      sum_lanes[0] = sum_2;
    }
  }
  __syncthreads();
  sum = sum_lanes[0];
  {
    const int l = threadIdx.x;
    sum_1_lanes[l] = 0.0;
    sum_1_lanes[l] += y[l] * y[l];
    sum_1_lanes[l] = l < 36 ? sum_1_lanes[l] + y[l + 64] * y[l + 64] : sum_1_lanes[l];
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    const int lane = threadIdx.x % 32;
    double sum_2 = sum_1_lanes[lane] + sum_1_lanes[lane + 32];
    for (int apart = 16; apart > 0; apart /= 2)
      sum_2 += __shfl_down_sync(0xffffffffu, sum_2, apart);
    if (lane == 0) {
      sum_1_lanes[0] = sum_2;
    }
  }
  __syncthreads();
  sum_1 = sum_1_lanes[0];
  if (threadIdx.x == 0) {
    out[0] = matmul / __builtin_sqrt(sum * sum_1);
  }
}
