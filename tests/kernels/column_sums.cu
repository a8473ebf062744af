// Sums over rows: eight of them at once for 32 columns, put together in shared memory.
extern "C" __global__ void __launch_bounds__(256) column_sums(TF_IN(double) x, TF_OUT(double) sums, int rows, int columns) {
  TF_SHARED(double, partial, [8][32]);
  int column = blockIdx.x * 32 + threadIdx.x, y = threadIdx.y;
  double s = 0.0;
  for (int i = y; i < rows && column < columns; i += 8) s += x[(long)i * columns + column];
  partial[y][threadIdx.x] = s;
  for (int half = 4; half; half >>= 1) {
    __syncthreads();
    if (y < half) partial[y][threadIdx.x] = partial[y][threadIdx.x] + partial[y + half][threadIdx.x];
  }
  if (y == 0 && column < columns) sums[column] = partial[0][threadIdx.x];
}
