// Sums of a whole array: in two steps, and by one atomic addition for each block.
static __device__ __forceinline__ float block_sum(float v) {
  TF_SHARED(float, partial, [8]);
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int k = 16; k; k >>= 1) v += __shfl_down_sync(0xffffffffu, v, k);
  if (lane == 0) partial[warp] = v;
  __syncthreads();
  v = threadIdx.x < 8 ? (float)partial[threadIdx.x] : 0.0f;
  if (warp == 0)
    for (int k = 16; k; k >>= 1) v += __shfl_down_sync(0xffffffffu, v, k);
  return v;
}
extern "C" __global__ void __launch_bounds__(256) partial_sums(TF_IN(float) x, TF_OUT(float) sums, int n) {
  float s = 0.0f;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) s += x[i];
  s = block_sum(s);
  if (threadIdx.x == 0) sums[blockIdx.x] = s;
}
extern "C" __global__ void __launch_bounds__(256) atomic_sum(TF_IN(float) x, TF_OUT(float) sum, int n) {
  float s = 0.0f;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) s += x[i];
  s = block_sum(s);
  if (threadIdx.x == 0) atomicAdd(&sum[0], s);
}
