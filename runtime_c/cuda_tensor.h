// Tensor cores: for the threads of a warp together 16 rows and 8 columns of sums, four of them each.
#ifdef __CUDACC__
#define TF_MULTIPLY(name, instruction)                                                          \
  static __device__ __forceinline__ void name(float *d, const unsigned *a, const unsigned *b) { \
    asm(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"          \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                        \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                    \
  }
TF_MULTIPLY(tf_mma_bf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
TF_MULTIPLY(tf_mma_f16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
TF_MULTIPLY(tf_mma_tf32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")

// Numbers that have these formats already, as an instruction takes them: two of 16 bits, the first
// one in the lower bits.
static __device__ __forceinline__ unsigned tf_part_tf32(float x) { return __float_as_uint(x); }
static __device__ __forceinline__ unsigned tf_part_bf16(float x, float y) {
  return __byte_perm(__float_as_uint(x), __float_as_uint(y), 0x7632);
}
static __device__ __forceinline__ unsigned tf_part_f16(float x, float y) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
  return pair;
}
#endif
