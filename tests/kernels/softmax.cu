// A block for each row: within warps by shuffles, then across warps through shared memory.
extern "C" __global__ void __launch_bounds__(256) softmax(TF_IN(float) x, TF_OUT(float) y, int columns) {
  TF_SHARED(float, partial, [8]);
  int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
  long row = (long)blockIdx.x * columns;
  float most = -INFINITY;
  for (int j = thread; j < columns; j += 256) most = fmaxf(most, x[row + j]);
  for (int k = 16; k; k >>= 1) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, k));
  if (lane == 0) partial[warp] = most;
  __syncthreads();
  most = partial[lane & 7];
  for (int k = 4; k; k >>= 1) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, k));
  __syncthreads();
  float sum = 0.0f;
  for (int j = thread; j < columns; j += 256) sum += expf(x[row + j] - most);
  for (int k = 16; k; k >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, k);
  if (lane == 0) partial[warp] = sum;
  __syncthreads();
  sum = partial[lane & 7];
  for (int k = 4; k; k >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, k);
  for (int j = thread; j < columns; j += 256) y[row + j] = expf(x[row + j] - most) / sum;
}
