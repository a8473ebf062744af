// softmax(q k.T / 8) v for one head of width 64, 32 queries for each block, 32 keys at a time:
// scores never leave the block.
extern "C" __global__ void __launch_bounds__(128) attention(TF_IN(float) q, TF_IN(float) k, TF_IN(float) v, TF_OUT(float) y, int length) {
  TF_SHARED(float, keys, [32][65]);
  TF_SHARED(float, values, [32][64]);
  TF_SHARED(float, weights, [32][33]);
  int t = threadIdx.x, row = t >> 2, part = t & 3, at = blockIdx.x * 32 + row;
  float query[64], sum[16] = {}, most = -INFINITY, total = 0.0f;
  for (int d = 0; d < 64; d++) query[d] = at < length ? (float)q[(long)at * 64 + d] : 0.0f;
  for (int first = 0; first < length; first += 32) {
    __syncthreads();
    for (int e = t; e < 32 * 64; e += 128) {
      int j = first + e / 64;
      keys[e / 64][e % 64] = j < length ? (float)k[(long)j * 64 + e % 64] : 0.0f;
      values[e / 64][e % 64] = j < length ? (float)v[(long)j * 64 + e % 64] : 0.0f;
    }
    __syncthreads();
    float score[8], high = -INFINITY;
    for (int i = 0; i < 8; i++) {
      float s = 0.0f;
      for (int d = 0; d < 64; d++) s += query[d] * keys[part * 8 + i][d];
      score[i] = first + part * 8 + i < length ? s * 0.125f : -INFINITY;
      high = fmaxf(high, score[i]);
    }
    for (int x = 1; x < 4; x <<= 1) high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, x));
    float next = fmaxf(most, high), scale = expf(most - next);
    most = next;
    float own = 0.0f;
    for (int i = 0; i < 8; i++) {
      float weight = expf(score[i] - most);
      weights[row][part * 8 + i] = weight;
      own += weight;
    }
    for (int x = 1; x < 4; x <<= 1) own += __shfl_xor_sync(0xffffffffu, own, x);
    total = total * scale + own;
    __syncwarp();
    for (int d = 0; d < 16; d++) {
      float s = sum[d] * scale;
      for (int j = 0; j < 32; j++) s += weights[row][j] * values[j][part * 16 + d];
      sum[d] = s;
    }
  }
  if (at < length)
    for (int d = 0; d < 16; d++) y[(long)at * 64 + part * 16 + d] = sum[d] / total;
}
