// The sum of each group of 32, by halves through shared memory: a warp waits for itself alone.
extern "C" __global__ void __launch_bounds__(128) warp_exchange(TF_IN(float) x, TF_OUT(float) y) {
  TF_SHARED(float, halves, [4][32]);
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float v = x[blockIdx.x * 128 + threadIdx.x];
  for (int half = 16; half; half >>= 1) {
    halves[warp][lane] = v;
    __syncwarp();
    if (lane < half) v += halves[warp][lane + half];
    __syncwarp(0xffffffffu);
  }
  if (lane == 0) y[blockIdx.x * 4 + warp] = v;
}
