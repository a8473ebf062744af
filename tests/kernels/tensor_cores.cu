// c = a b of bfloat16 with float sums: tiles of 32 x 32 by four warps, two tiles under way.
extern "C" __global__ void __launch_bounds__(128) tensor_cores(TF_IN(uint16_t) a, TF_IN(uint16_t) b, TF_OUT(float) c, int n, int k) {
  TF_SHARED(uint16_t, a_tile, [2][32][40]);
  TF_SHARED(uint16_t, b_tile, [2][32][40]);
  int t = threadIdx.x, lane = t & 31, warp = t >> 5, row0 = blockIdx.y * 32, column0 = blockIdx.x * 32;
  int row = t >> 2, part = (t & 3) * 8;
  float acc[2][4] = {};
  tf_cp_async16(&a_tile[0][row][part], &a[(long)(row0 + row) * k + part]);
  tf_cp_async16(&b_tile[0][row][part], &b[(long)row * n + column0 + part]);
  tf_cp_commit();
  for (int tile = 0; tile < k / 32; tile++) {
    int now = tile & 1, next = tile + 1;
    tf_cp_wait(0);
    __syncthreads();
    if (next < k / 32) {
      tf_cp_async16(&a_tile[next & 1][row][part], &a[(long)(row0 + row) * k + next * 32 + part]);
      tf_cp_async16(&b_tile[next & 1][row][part], &b[(long)(next * 32 + row) * n + column0 + part]);
    }
    tf_cp_commit();
    for (int i = 0; i < 32; i += 16) {
      uint32_t left[4], right[4];
      tf_ldmatrix_x4(left, &a_tile[now][(warp >> 1) * 16 + (lane & 15)][i + (lane >> 4) * 8]);
      tf_ldmatrix_x4_trans(right, &b_tile[now][i + (lane & 15)][(warp & 1) * 16 + (lane >> 4) * 8]);
      tf_mma_bf16(acc[0], left, right);
      tf_mma_bf16(acc[1], left, right + 2);
    }
  }
  for (int half = 0; half < 2; half++)
    for (int i = 0; i < 2; i++) {
      int at = row0 + (warp >> 1) * 16 + (lane >> 2) + 8 * i, column = column0 + (warp & 1) * 16 + half * 8 + 2 * (lane & 3);
      TF_STORE(float2, &c[(long)at * n + column], make_float2(acc[half][2 * i], acc[half][2 * i + 1]));
    }
}
