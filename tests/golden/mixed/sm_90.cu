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

// return image.T * weights - image.mean()
// [multiply, sum_lanes, sum_blocks, sum, divide, out] reads 21.9 KiB, writes 10.9 KiB, 8608
//   operations
// 1 block of 256 threads
extern "C" __global__ void __launch_bounds__(256) mixed_out(TF_IN(float) image, TF_IN(float) weights, TF_OUT(float) out) {
  float sum;
  TF_SHARED(float, sum_blocks, [3]);
  TF_SHARED(float, sum_lanes, [192]);
  {
    const int step = threadIdx.x;
    if (step < 128) {
      const int b = step / 64;
      const int l = step % 64;
      sum_lanes[l + 64 * b] = 0.0f;
      for (int s = 0; s < 16; s++) {
        sum_lanes[l + 64 * b] += image[1024 * b + 64 * s + l];
      }
    }
  }
  {
    const int step = threadIdx.x;
    if (step < 64) {
      const int b = 0 + 2;
      const int l = step % 64;
      sum_lanes[l + 64 * b] = 0.0f;
      for (int s = 0; s < 11; s++) {
        sum_lanes[l + 64 * b] += image[64 * s + l + 2048];
      }
      sum_lanes[l + 64 * b] = l < 48 ? sum_lanes[l + 64 * b] + image[l + 2752] : sum_lanes[l + 64 * b];
    }
  }
  __syncthreads();
  {
    const int b = threadIdx.x / 32;
    if (b < 3) {
      const int lane = threadIdx.x % 32;
      float sum_1 = sum_lanes[64 * b + lane] + sum_lanes[64 * b + lane + 32];
      for (int apart = 16; apart > 0; apart /= 2)
        sum_1 += __shfl_down_sync(0xffffffffu, sum_1, apart);
      if (lane == 0) {
        sum_lanes[64 * b] = sum_1;
        sum_blocks[b] = sum_lanes[64 * b];
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    sum_blocks[0] += sum_blocks[1];
  }
  if (threadIdx.x == 0) {
    sum_blocks[0] += sum_blocks[2];
  }
  __syncthreads();
  sum = sum_blocks[0];
  const float divide = sum / 2800.0f;
  for (int step = threadIdx.x; step < 2800; step += 256) {
    const int i = step / 40;
    const int j = step % 40;
    out[40 * i + j] = image[70 * j + i] * weights[40 * i + j] - divide;
  }
}
