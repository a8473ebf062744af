// y = x.T through padded tiles.
extern "C" __global__ void __launch_bounds__(256) transpose(TF_IN(float) x, TF_OUT(float) y, int rows, int columns) {
  TF_SHARED(float, tile, [32][33]);
  int row0 = blockIdx.y * 32, column0 = blockIdx.x * 32, lane = threadIdx.x;
  for (int k = threadIdx.y; k < 32; k += 8)
    if (row0 + k < rows && column0 + lane < columns) tile[k][lane] = x[(long)(row0 + k) * columns + column0 + lane];
  __syncthreads();
  for (int k = threadIdx.y; k < 32; k += 8)
    if (column0 + k < columns && row0 + lane < rows) y[(long)(column0 + k) * rows + row0 + lane] = tile[lane][k];
}
