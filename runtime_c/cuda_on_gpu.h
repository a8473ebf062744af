// On a GPU: what cuda_on_cpu.h has under the same names, for kernels that are written by hand.

#define TF_IN(T) const T *__restrict__
#define TF_OUT(T) T *__restrict__
#define TF_SPTR(T) T *
#define TF_RAW(array) (array)
#define TF_SHARED(T, name, dims) __shared__ __align__(16) T name dims
#define TF_DYN_SHARED(T, name)                                \
  extern __shared__ __align__(16) unsigned char tf_dynamic[]; \
  T *const name = reinterpret_cast<T *>(tf_dynamic)
#define TF_LOAD(V, from) (*reinterpret_cast<const V *>(from))
#define TF_STORE(V, to, ...) ((void)(*reinterpret_cast<V *>(to) = (__VA_ARGS__)))

#define INFINITY __int_as_float(0x7f800000)
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;

static __device__ __forceinline__ unsigned tf_shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// -- asynchronous copies

static __device__ __forceinline__ void tf_cp_async16(void *to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(tf_shared_address(to)), "l"(from) : "memory");
}
static __device__ __forceinline__ void tf_cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
#define tf_cp_wait(kept) asm volatile("cp.async.wait_group %0;" ::"n"(kept) : "memory")

// -- tensor cores

static __device__ __forceinline__ void tf_ldmatrix_x4(uint32_t *to, const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(tf_shared_address(row)) : "memory");
}
static __device__ __forceinline__ void tf_ldmatrix_x4_trans(uint32_t *to, const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(tf_shared_address(row)) : "memory");
}
#define TF_MULTIPLY(name, instruction)                                                          \
  static __device__ __forceinline__ void name(float *d, const uint32_t *a, const uint32_t *b) { \
    asm volatile(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));           \
  }
TF_MULTIPLY(tf_mma_bf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
TF_MULTIPLY(tf_mma_f16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
TF_MULTIPLY(tf_mma_tf32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
