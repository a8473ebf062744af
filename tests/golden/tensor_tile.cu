// return x @ y.T
// [nearest_bfloat16, nearest_bfloat16_1, out] reads 32 KiB, writes 64 KiB, 1056768 operations
// 1 block of 256 threads
extern "C" __global__ void __launch_bounds__(256, 2) with_rows_out(TF_IN(float) x, TF_IN(float) y, TF_OUT(float) out) {
  const int i_block = 0;
  const int j_block = 0;
  float out_acc[64];
  TF_SHARED(float, tile_0, [2560]);
  TF_SHARED(float, tile_1, [2560]);
  float next_tile_0[8];
  float next_tile_1[8];
  {
    const int step = threadIdx.x;
    const int warp_row = step / 128;
    const int warp_column = step / 32 % 4;
    const int group = step / 4 % 8;
    const int pair = step % 4;
    #pragma unroll
    for (int row = 0; row < 4; row++) {
      #pragma unroll
      for (int column = 0; column < 4; column++) {
        #pragma unroll
        for (int half = 0; half < 2; half++) {
          #pragma unroll
          for (int second = 0; second < 2; second++) {
            out_acc[16 * row + 4 * column + 2 * half + second] = 0.0f;
          }
        }
      }
    }
  }
  for (int k_outer = 0; k_outer < 2; k_outer++) {
    {
      const int step = threadIdx.x;
      const int ty = step / 8;
      const int tx = step % 8;
      #pragma unroll
      for (int turn = 0; turn < 4; turn++) {
        #pragma unroll
        for (int again = 0; again < 2; again++) {
          next_tile_0[2 * turn + again] = tf_nearest_bfloat16_float(x[4096 * i_block + 1024 * turn + 32 * ty + 16 * k_outer + 8 * again + tx]);
        }
      }
    }
    {
      const int step = threadIdx.x;
      const int ty = step / 8;
      const int tx = step % 8;
      #pragma unroll
      for (int turn = 0; turn < 4; turn++) {
        #pragma unroll
        for (int again = 0; again < 2; again++) {
          next_tile_1[2 * turn + again] = tf_nearest_bfloat16_float(y[4096 * j_block + 1024 * turn + 32 * ty + 16 * k_outer + 8 * again + tx]);
        }
      }
    }
    __syncthreads();
    {
      const int step = threadIdx.x;
      const int ty = step / 8;
      const int tx = step % 8;
      #pragma unroll
      for (int turn = 0; turn < 4; turn++) {
        #pragma unroll
        for (int again = 0; again < 2; again++) {
          tile_0[640 * turn + 20 * ty + 8 * again + tx] = next_tile_0[2 * turn + again];
        }
      }
    }
    {
      const int step = threadIdx.x;
      const int ty = step / 8;
      const int tx = step % 8;
      #pragma unroll
      for (int turn = 0; turn < 4; turn++) {
        #pragma unroll
        for (int again = 0; again < 2; again++) {
          tile_1[640 * turn + 20 * ty + 8 * again + tx] = next_tile_1[2 * turn + again];
        }
      }
    }
    __syncthreads();
    {
      const int step = threadIdx.x;
      const int warp_row = step / 128;
      const int warp_column = step / 32 % 4;
      const int group = step / 4 % 8;
      const int pair = step % 4;
      #pragma unroll
      for (int k_part = 0; k_part < 1; k_part++) {
        {
          uint32_t a_0[4][4], b_0[4][2];
          #pragma unroll
          for (int row = 0; row < 4; row++) {
            a_0[row][0] = tf_part_bf16(tile_0[1280 * warp_row + 320 * row + 20 * group + 16 * k_part + 2 * pair], tile_0[1280 * warp_row + 320 * row + 20 * group + 16 * k_part + 2 * pair + 1]);
            a_0[row][1] = tf_part_bf16(tile_0[1280 * warp_row + 320 * row + 20 * group + 16 * k_part + 2 * pair + 160], tile_0[1280 * warp_row + 320 * row + 20 * group + 16 * k_part + 2 * pair + 161]);
            a_0[row][2] = tf_part_bf16(tile_0[1280 * warp_row + 320 * row + 20 * group + 16 * k_part + 2 * pair + 8], tile_0[1280 * warp_row + 320 * row + 20 * group + 16 * k_part + 2 * pair + 9]);
            a_0[row][3] = tf_part_bf16(tile_0[1280 * warp_row + 320 * row + 20 * group + 16 * k_part + 2 * pair + 168], tile_0[1280 * warp_row + 320 * row + 20 * group + 16 * k_part + 2 * pair + 169]);
          }
          #pragma unroll
          for (int column = 0; column < 4; column++) {
            b_0[column][0] = tf_part_bf16(tile_1[640 * warp_column + 160 * column + 20 * group + 16 * k_part + 2 * pair], tile_1[640 * warp_column + 160 * column + 20 * group + 16 * k_part + 2 * pair + 1]);
            b_0[column][1] = tf_part_bf16(tile_1[640 * warp_column + 160 * column + 20 * group + 16 * k_part + 2 * pair + 8], tile_1[640 * warp_column + 160 * column + 20 * group + 16 * k_part + 2 * pair + 9]);
          }
          #pragma unroll
          for (int row = 0; row < 4; row++) {
            #pragma unroll
            for (int column = 0; column < 4; column++)
              tf_mma_bf16(&out_acc[16 * row + 4 * column], a_0[row], b_0[column]);
          }
        }
      }
    }
  }
  {
    const int step = threadIdx.x;
    const int warp_row = step / 128;
    const int warp_column = step / 32 % 4;
    const int group = step / 4 % 8;
    const int pair = step % 4;
    #pragma unroll
    for (int row = 0; row < 4; row++) {
      #pragma unroll
      for (int column = 0; column < 4; column++) {
        #pragma unroll
        for (int half = 0; half < 2; half++) {
          #pragma unroll
          for (int second = 0; second < 2; second++) {
            out[16384 * i_block + 8192 * warp_row + 2048 * row + 1024 * half + 128 * group + 128 * j_block + 32 * warp_column + 8 * column + 2 * pair + second] = out_acc[16 * row + 4 * column + 2 * half + second];
          }
        }
      }
    }
  }
}
