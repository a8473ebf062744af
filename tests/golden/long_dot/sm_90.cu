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

// return np.dot(x, y)
// [out_lanes, out_blocks, out] reads 70.3 KiB, writes 4 B, 18623 operations
// 1 block of 256 threads
extern "C" __global__ void __launch_bounds__(256) long_dot_out(TF_IN(float) x, TF_IN(float) y, TF_OUT(float) out) {
  TF_SHARED(float, out_blocks, [9]);
  TF_SHARED(float, out_lanes, [576]);
  for (int step = threadIdx.x; step < 512; step += 256) {
    const int b = step / 64;
    const int l = step % 64;
    out_lanes[l + 64 * b] = 0.0f;
    for (int s = 0; s < 16; s++) {
      out_lanes[l + 64 * b] = __builtin_fmaf(x[1024 * b + 64 * s + l], y[1024 * b + 64 * s + l], out_lanes[l + 64 * b]);
    }
  }
  {
    const int step = threadIdx.x;
    if (step < 64) {
      const int b = 0 + 8;
      const int l = step % 64;
      out_lanes[l + 64 * b] = 0.0f;
      for (int s = 0; s < 12; s++) {
        out_lanes[l + 64 * b] = __builtin_fmaf(x[64 * s + l + 8192], y[64 * s + l + 8192], out_lanes[l + 64 * b]);
      }
      out_lanes[l + 64 * b] = l < 40 ? __builtin_fmaf(x[l + 8960], y[l + 8960], out_lanes[l + 64 * b]) : out_lanes[l + 64 * b];
    }
  }
  __syncthreads();
  for (int b = threadIdx.x / 32; b < 9; b += 8) {
    const int lane = threadIdx.x % 32;
    float sum = out_lanes[64 * b + lane] + out_lanes[64 * b + lane + 32];
    for (int apart = 16; apart > 0; apart /= 2)
      sum += __shfl_down_sync(0xffffffffu, sum, apart);
    if (lane == 0) {
      out_lanes[64 * b] = sum;
      out_blocks[b] = out_lanes[64 * b];
    }
  }
  __syncthreads();
  {
    const int b = threadIdx.x;
    if (b < 4) {
      out_blocks[2 * b] += out_blocks[2 * b + 1];
    }
  }
  __syncthreads();
  {
    const int b = threadIdx.x;
    if (b < 2) {
      out_blocks[4 * b] += out_blocks[4 * b + 2];
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    out_blocks[0] += out_blocks[4];
  }
  if (threadIdx.x == 0) {
    out_blocks[0] += out_blocks[8];
  }
  if (threadIdx.x == 0) {
    out[0] = out_blocks[0];
  }
}
