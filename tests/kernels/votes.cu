// Of each block of 64 flags: how many there are, whether all of its first warp are, the first one.
extern "C" __global__ void __launch_bounds__(64) votes(TF_IN(uint8_t) flags, TF_OUT(int) counts, TF_OUT(int) all, TF_OUT(int) first) {
  int flag = flags[blockIdx.x * 64 + threadIdx.x];
  int count = __syncthreads_count(flag);
  int every = __all_sync(0xffffffffu, flag);
  unsigned lanes = __ballot_sync(0xffffffffu, flag);
  if (threadIdx.x == 0) {
    counts[blockIdx.x] = count;
    all[blockIdx.x] = every;
    first[blockIdx.x] = __ffs((int)lanes) - 1;
  }
}
