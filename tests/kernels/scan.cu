// Running sums of 512 integers by doubling steps, between two halves of a buffer.
extern "C" __global__ void __launch_bounds__(512) scan(TF_IN(int) x, TF_OUT(int) y, int n) {
  TF_SHARED(int, sums, [2][512]);
  int t = threadIdx.x, from = 0, at = blockIdx.x * n + t;
  sums[0][t] = t < n ? (int)x[at] : 0;
  for (int step = 1; step < 512; step <<= 1) {
    __syncthreads();
    sums[1 - from][t] = sums[from][t] + (t >= step ? (int)sums[from][t - step] : 0);
    from = 1 - from;
  }
  if (t < n) y[at] = sums[from][t];
}
