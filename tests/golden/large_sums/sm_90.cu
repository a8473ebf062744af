#ifdef __CUDACC__
// What tells nvcc from the emulator, which runs the same text on the CPU.
#define TF_IN(T) const T *__restrict__
#define TF_OUT(T) T *__restrict__
#define TF_SHARED(T, name, size) __shared__ __align__(16) T name size
#define TF_LOAD(V, from) (*(const V *)(from))
#define TF_STORE(V, to, value) (*(V *)(to) = (value))
#define TF_RAW(array) (array)
#define __builtin_isunordered(a, b) ((a) != (a) || (b) != (b))
#endif

// return x.sum(), x.sum(axis=0), x.sum(axis=1)
// [out_lanes, out_blocks] reads 2.4 MiB, writes 2.41 KiB, 668824 operations
// 616 blocks of 64 threads
extern "C" __global__ void __launch_bounds__(64) large_sums_out_blocks(TF_IN(float) x, TF_OUT(float) out_blocks) {
  const int b = blockIdx.x;
  TF_SHARED(float, out_lanes, [64]);
  if (b < 615) {
    {
      const int l = threadIdx.x;
      out_lanes[l] = 0.0f;
      for (int s = 0; s < 16; s++) {
        out_lanes[l] += x[1024 * b + 64 * s + l];
      }
    }
  } else {
    {
      const int l = threadIdx.x;
      out_lanes[l] = 0.0f;
      for (int s = 0; s < 3; s++) {
        out_lanes[l] += x[64 * s + l + 629760];
      }
      out_lanes[l] = l < 48 ? out_lanes[l] + x[l + 629952] : out_lanes[l];
    }
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    const int lane = threadIdx.x % 32;
    float sum = out_lanes[lane] + out_lanes[lane + 32];
    for (int apart = 16; apart > 0; apart /= 2)
      sum += __shfl_down_sync(0xffffffffu, sum, apart);
    if (lane == 0) {
      out_lanes[0] = sum;
      out_blocks[b] = out_lanes[0];
    }
  }
}

// return x.sum(), x.sum(axis=0), x.sum(axis=1)
// [out_1_blocks] reads 2.43 MiB, writes 24.6 KiB, 630000 operations
// 3 blocks of 256 threads
extern "C" __global__ void __launch_bounds__(256) large_sums_out_1_blocks(TF_IN(float) x, TF_OUT(float) out_1_blocks) {
  const int b = blockIdx.x;
  if (b < 2) {
    for (int i = threadIdx.x; i < 2100; i += 256) {
      out_1_blocks[2100 * b + i] = 0.0f;
      for (int r = 0; r < 128; r++) {
        out_1_blocks[2100 * b + i] += x[268800 * b + 2100 * r + i];
      }
    }
  } else {
    for (int i = threadIdx.x; i < 2100; i += 256) {
      out_1_blocks[i + 4200] = 0.0f;
      for (int r = 0; r < 44; r++) {
        out_1_blocks[i + 4200] += x[2100 * r + i + 537600];
      }
    }
  }
}

// return x.sum(), x.sum(axis=0), x.sum(axis=1)
// [out, out_1] reads 27 KiB, writes 27 KiB, 4815 operations
// 1 block of 256 threads
extern "C" __global__ void __launch_bounds__(256) large_sums_out_1(TF_OUT(float) out_blocks, TF_OUT(float) out_1_blocks, TF_OUT(float) out, TF_OUT(float) out_1) {
  for (int b = threadIdx.x; b < 308; b += 256) {
    out_blocks[2 * b] += out_blocks[2 * b + 1];
  }
  __syncthreads();
  {
    const int b = threadIdx.x;
    if (b < 154) {
      out_blocks[4 * b] += out_blocks[4 * b + 2];
    }
  }
  __syncthreads();
  {
    const int b = threadIdx.x;
    if (b < 77) {
      out_blocks[8 * b] += out_blocks[8 * b + 4];
    }
  }
  __syncthreads();
  {
    const int b = threadIdx.x;
    if (b < 38) {
      out_blocks[16 * b] += out_blocks[16 * b + 8];
    }
  }
  __syncthreads();
  {
    const int b = threadIdx.x;
    if (b < 19) {
      out_blocks[32 * b] += out_blocks[32 * b + 16];
    }
  }
  __syncthreads();
  {
    const int b = threadIdx.x;
    if (b < 10) {
      out_blocks[64 * b] += out_blocks[64 * b + 32];
    }
  }
  __syncthreads();
  {
    const int b = threadIdx.x;
    if (b < 5) {
      out_blocks[128 * b] += out_blocks[128 * b + 64];
    }
  }
  __syncthreads();
  {
    const int b = threadIdx.x;
    if (b < 2) {
      out_blocks[256 * b] += out_blocks[256 * b + 128];
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    out_blocks[0] += out_blocks[256];
  }
  if (threadIdx.x == 0) {
    out_blocks[0] += out_blocks[512];
  }
  if (threadIdx.x == 0) {
    out[0] = out_blocks[0];
  }
  for (int i = threadIdx.x; i < 2100; i += 256) {
    out_1_blocks[i] += out_1_blocks[i + 2100];
    out_1_blocks[i] += out_1_blocks[i + 4200];
    out_1[i] = out_1_blocks[i];
  }
}

// return x.sum(), x.sum(axis=0), x.sum(axis=1)
// [out_2_lanes, out_2_blocks, out_2] reads 2.4 MiB, writes 1.17 KiB, 690900 operations
// 300 blocks of 128 threads
extern "C" __global__ void __launch_bounds__(128) large_sums_out_2(TF_IN(float) x, TF_OUT(float) out_2) {
  const int i = blockIdx.x;
  TF_SHARED(float, out_2_blocks, [3]);
  TF_SHARED(float, out_2_lanes, [192]);
  {
    const int step = threadIdx.x;
    const int b = step / 64;
    const int l = step % 64;
    out_2_lanes[l + 64 * b] = 0.0f;
    for (int s = 0; s < 16; s++) {
      out_2_lanes[l + 64 * b] += x[2100 * i + 1024 * b + 64 * s + l];
    }
  }
  {
    const int step = threadIdx.x;
    if (step < 64) {
      const int b = 0 + 2;
      const int l = step % 64;
      out_2_lanes[l + 64 * b] = 0.0f;
      out_2_lanes[l + 64 * b] = l < 52 ? out_2_lanes[l + 64 * b] + x[2100 * i + l + 2048] : out_2_lanes[l + 64 * b];
    }
  }
  __syncthreads();
  {
    const int b = threadIdx.x / 32;
    if (b < 3) {
      const int lane = threadIdx.x % 32;
      float sum = out_2_lanes[64 * b + lane] + out_2_lanes[64 * b + lane + 32];
      for (int apart = 16; apart > 0; apart /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, apart);
      if (lane == 0) {
        out_2_lanes[64 * b] = sum;
        out_2_blocks[b] = out_2_lanes[64 * b];
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    out_2_blocks[0] += out_2_blocks[1];
  }
  if (threadIdx.x == 0) {
    out_2_blocks[0] += out_2_blocks[2];
  }
  if (threadIdx.x == 0) {
    out_2[i] = out_2_blocks[0];
  }
}
