// A warp for each row, which stays in registers: no barrier.
extern "C" __global__ void __launch_bounds__(128) layernorm(TF_IN(float) x, TF_IN(float) gain, TF_IN(float) bias, TF_OUT(float) y, int rows, int columns) {
  int lane = threadIdx.x, row = blockIdx.x * 4 + threadIdx.y;
  if (row >= rows) return;
  float in[32], sum = 0.0f, squares = 0.0f;
#pragma unroll
  for (int k = 0; k < 8; k++) {
    int j = 4 * (k * 32 + lane);
    float4 v = j < columns ? TF_LOAD(float4, &x[(long)row * columns + j]) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    in[4 * k] = v.x, in[4 * k + 1] = v.y, in[4 * k + 2] = v.z, in[4 * k + 3] = v.w;
    sum += v.x + v.y + v.z + v.w;
  }
  for (int k = 16; k; k >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, k);
  float mean = sum / columns;
#pragma unroll
  for (int k = 0; k < 32; k++)
    if (4 * ((k >> 2) * 32 + lane) < columns) squares += (in[k] - mean) * (in[k] - mean);
  for (int k = 16; k; k >>= 1) squares += __shfl_xor_sync(0xffffffffu, squares, k);
  float scale = rsqrtf(squares / columns + 1e-5f);
#pragma unroll
  for (int k = 0; k < 8; k++) {
    int j = 4 * (k * 32 + lane);
    if (j < columns) {
      float4 g = TF_LOAD(float4, &gain[j]), b = TF_LOAD(float4, &bias[j]);
      TF_STORE(float4, &y[(long)row * columns + j], make_float4((in[4 * k] - mean) * scale * g.x + b.x, (in[4 * k + 1] - mean) * scale * g.y + b.y, (in[4 * k + 2] - mean) * scale * g.z + b.z, (in[4 * k + 3] - mean) * scale * g.w + b.w));
    }
  }
}
