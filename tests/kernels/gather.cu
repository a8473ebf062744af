// Rows of a table by their numbers; whether one is outside of it is said in `status`.
extern "C" __global__ void __launch_bounds__(128) gather(TF_IN(float) table, TF_IN(int64_t) ids, TF_OUT(float) y, TF_OUT(int) status, int rows, int width) {
  int64_t id = ids[blockIdx.x];
  if (id < 0) id += rows;
  if (id < 0 || id >= rows) {
    if (threadIdx.x == 0) atomicMax(&status[0], 1);
    return;
  }
  for (int j = threadIdx.x; j < width; j += 128) y[(long)blockIdx.x * width + j] = table[id * width + j];
}
