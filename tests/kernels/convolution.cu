// A 3 x 3 convolution of an image with channels last, its tile and halo in dynamic shared memory.
extern "C" __global__ void __launch_bounds__(256) convolution(TF_IN(float) x, TF_IN(float) weights, TF_OUT(float) y, int rows, int columns, int channels, int filters) {
  TF_DYN_SHARED(float, tile);
  int row0 = blockIdx.y * 8, column0 = blockIdx.x * 8, t = threadIdx.x + 8 * (threadIdx.y + 8 * threadIdx.z);
  for (int e = t; e < 100 * channels; e += 256) {
    int c = e % channels, q = e / channels, i = row0 + q / 10 - 1, j = column0 + q % 10 - 1;
    tile[e] = i >= 0 && i < rows && j >= 0 && j < columns ? (float)x[((long)i * columns + j) * channels + c] : 0.0f;
  }
  __syncthreads();
  int i = row0 + threadIdx.y, j = column0 + threadIdx.x;
  for (int f = threadIdx.z; f < filters; f += 4) {
    float s = 0.0f;
    for (int di = 0; di < 3; di++)
      for (int dj = 0; dj < 3; dj++)
        for (int c = 0; c < channels; c++) s += tile[((threadIdx.y + di) * 10 + threadIdx.x + dj) * channels + c] * weights[((di * 3 + dj) * channels + c) * filters + f];
    if (i < rows && j < columns) y[((long)i * columns + j) * filters + f] = s;
  }
}
