// 256 numbers in order, by a network of comparisons (K. E. Batcher, 1968).
extern "C" __global__ void __launch_bounds__(256) sort(TF_IN(float) x, TF_OUT(float) y) {
  TF_SHARED(float, items, [256]);
  int t = threadIdx.x;
  items[t] = x[blockIdx.x * 256 + t];
  for (int size = 2; size <= 256; size <<= 1)
    for (int step = size >> 1; step; step >>= 1) {
      __syncthreads();
      int other = t ^ step;
      if (other > t) {
        float low = items[t], high = items[other];
        bool ascending = (t & size) == 0;
        if ((low > high) == ascending) {
          items[t] = high;
          items[other] = low;
        }
      }
    }
  __syncthreads();
  y[blockIdx.x * 256 + t] = items[t];
}
