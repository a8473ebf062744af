// How often each byte occurs: counted in shared memory, then added to the whole.
extern "C" __global__ void __launch_bounds__(256) histogram(TF_IN(uint8_t) x, TF_OUT(int) counts, int n) {
  TF_SHARED(int, own, [256]);
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&own[x[i]], 1);
  __syncthreads();
  atomicAdd(&counts[threadIdx.x], (int)own[threadIdx.x]);
}
