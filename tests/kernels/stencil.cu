// The mean of each element's four neighbours, twice, over a tile with a halo of two.
extern "C" __global__ void __launch_bounds__(256) stencil(TF_IN(float) x, TF_OUT(float) y, int rows, int columns) {
  TF_SHARED(float, in, [20][21]);
  TF_SHARED(float, once, [18][19]);
  int t = threadIdx.x, row0 = blockIdx.y * 16, column0 = blockIdx.x * 16;
  for (int e = t; e < 20 * 20; e += 256) {
    int i = row0 + e / 20 - 2, j = column0 + e % 20 - 2;
    in[e / 20][e % 20] = i >= 0 && i < rows && j >= 0 && j < columns ? (float)x[(long)i * columns + j] : 0.0f;
  }
  __syncthreads();
  for (int e = t; e < 18 * 18; e += 256) {
    int i = e / 18, j = e % 18, row = row0 + i - 1, column = column0 + j - 1;
    float mean = 0.25f * (in[i][j + 1] + in[i + 2][j + 1] + in[i + 1][j] + in[i + 1][j + 2]);
    once[i][j] = row >= 0 && row < rows && column >= 0 && column < columns ? mean : 0.0f;
  }
  __syncthreads();
  int i = t / 16, j = t % 16;
  if (row0 + i < rows && column0 + j < columns)
    y[(long)(row0 + i) * columns + column0 + j] = 0.25f * (once[i][j + 1] + once[i + 2][j + 1] + once[i + 1][j] + once[i + 1][j + 2]);
}
