// y = silu(x * scale + bias), four elements at a time, over a grid with strides.
extern "C" __global__ void __launch_bounds__(256) elementwise(TF_IN(float) x, TF_IN(float) bias, TF_OUT(float) y, int n, float scale) {
  for (int i = 4 * (blockIdx.x * 256 + threadIdx.x); i < n; i += 4 * 256 * gridDim.x) {
    float4 a = TF_LOAD(float4, &x[i]), b = TF_LOAD(float4, &bias[i]);
    float in[4] = {a.x, a.y, a.z, a.w}, add[4] = {b.x, b.y, b.z, b.w}, out[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      float t = in[k] * scale + add[k];
      out[k] = t / (1.0f + expf(-t));
    }
    TF_STORE(float4, &y[i], make_float4(out[0], out[1], out[2], out[3]));
  }
}
