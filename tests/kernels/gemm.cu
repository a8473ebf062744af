// c = relu(a b + bias): tiles of 64 x 64 in two buffers, 4 x 4 elements for each thread.
extern "C" __global__ void __launch_bounds__(256, 2) gemm(TF_IN(float) a, TF_IN(float) b, TF_IN(float) bias, TF_OUT(float) c, int m, int n, int k) {
  TF_SHARED(float, a_tile, [2][8][68]);
  TF_SHARED(float, b_tile, [2][8][64]);
  int t = threadIdx.x, tx = t & 15, ty = t >> 4, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
  int a_row = t >> 2, a_k = (t & 3) * 2, b_k = t >> 5, b_column = (t & 31) * 2;
  float acc[4][4] = {};
  for (int tile = 0; tile < (k + 7) / 8; tile++) {
    int now = tile & 1, at_a = tile * 8 + a_k, at_b = tile * 8 + b_k;
    float2 zero = make_float2(0.0f, 0.0f);
    float2 from_a = row0 + a_row < m && at_a < k ? TF_LOAD(float2, &a[(long)(row0 + a_row) * k + at_a]) : zero;
    float2 from_b = at_b < k && column0 + b_column < n ? TF_LOAD(float2, &b[(long)at_b * n + column0 + b_column]) : zero;
    a_tile[now][a_k][a_row] = from_a.x;
    a_tile[now][a_k + 1][a_row] = from_a.y;
    TF_STORE(float2, &b_tile[now][b_k][b_column], from_b);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; i++) {
      float4 left = TF_LOAD(float4, &a_tile[now][i][ty * 4]), right = TF_LOAD(float4, &b_tile[now][i][tx * 4]);
      float l[4] = {left.x, left.y, left.z, left.w}, r[4] = {right.x, right.y, right.z, right.w};
#pragma unroll
      for (int p = 0; p < 4; p++)
#pragma unroll
        for (int q = 0; q < 4; q++) acc[p][q] = fmaf(l[p], r[q], acc[p][q]);
    }
  }
#pragma unroll
  for (int p = 0; p < 4; p++) {
    int row = row0 + ty * 4 + p, column = column0 + tx * 4;
    if (row < m && column < n) {
      float4 add = TF_LOAD(float4, &bias[column]);
      TF_STORE(float4, &c[(long)row * n + column], make_float4(fmaxf(acc[p][0] + add.x, 0.0f), fmaxf(acc[p][1] + add.y, 0.0f), fmaxf(acc[p][2] + add.z, 0.0f), fmaxf(acc[p][3] + add.w, 0.0f)));
    }
  }
}
