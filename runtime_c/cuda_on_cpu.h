// CUDA's names for a compiler of C++: with this, cuda_machine.h and cuda_on_cpu_memory.h in front of
// it the text of a .cu compiles for the CPU, and cuda_machine.c runs it. No header is included.

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__ __restrict
#define __constant__ static const

typedef __SIZE_TYPE__ size_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __UINTPTR_TYPE__ uintptr_t;

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

// -- where a thread is

static tf_machine *tf_gpu;

typedef tf_index uint3;
#define threadIdx (tf_gpu->thread)
#define blockIdx (tf_gpu->block)
#define blockDim (tf_gpu->threads)
#define gridDim (tf_gpu->blocks)
#define warpSize 32

// -- vectors, aligned to their size

#define TF_VECTORS(T, name)                                                          \
  struct alignas(2 * sizeof(T)) name##2 { T x, y; };                                 \
  struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) name##4 { T x, y, z, w; }; \
  static inline name##2 make_##name##2(T x, T y) { return {x, y}; }                  \
  static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
TF_VECTORS(signed char, char)
TF_VECTORS(unsigned char, uchar)
TF_VECTORS(short, short)
TF_VECTORS(unsigned short, ushort)
TF_VECTORS(int, int)
TF_VECTORS(unsigned, uint)
TF_VECTORS(long, long)
TF_VECTORS(unsigned long, ulong)
TF_VECTORS(float, float)
TF_VECTORS(double, double)
typedef long2 longlong2;
typedef ulong2 ulonglong2;

namespace tf {

template <class To, class From>
static inline To bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "the bits of a number of another size");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

// -- warps and barriers

template <class T>
static inline T shuffle(unsigned mask, T value, int source, int line) {
  static_assert(sizeof(T) <= 8, "a shuffle moves 8 bytes at most");
  unsigned long given = 0;
  __builtin_memcpy(&given, &value, sizeof value);
  given = tf_gpu->shuffle(mask, given, source, line);
  __builtin_memcpy(&value, &given, sizeof value);
  return value;
}

// Lanes beyond the warp's ends give back one's own value.
static inline int lane_at(int lane) { return lane < 0 || lane > 31 ? tf_gpu->lane : lane; }

} // namespace tf

#define __syncthreads() ((void)tf_gpu->barrier(__LINE__, 0))
#define __syncthreads_count(value) (tf_gpu->barrier(__LINE__, (value)))
#define __syncthreads_or(value) (tf_gpu->barrier(__LINE__, (value)) != 0)
#define __syncthreads_and(value) (tf_gpu->barrier(__LINE__, !(value)) == 0)
#define TF_FIRST(first, ...) first
#define __syncwarp(...) tf_gpu->warp_barrier(TF_FIRST(__VA_ARGS__ __VA_OPT__(, ) 0xffffffffu), __LINE__)
#define __ballot_sync(mask, value) (tf_gpu->ballot((mask), (value) != 0, __LINE__))
#define __any_sync(mask, value) (__ballot_sync(mask, value) != 0)
#define __all_sync(mask, value) (__ballot_sync(mask, !(value)) == 0)
#define __shfl_sync(mask, value, lane) tf::shuffle((mask), tf::plain(value), (int)(lane) & 31, __LINE__)
#define __shfl_xor_sync(mask, value, k) tf::shuffle((mask), tf::plain(value), tf::lane_at(tf_gpu->lane ^ (int)(k)), __LINE__)
#define __shfl_down_sync(mask, value, k) tf::shuffle((mask), tf::plain(value), tf::lane_at(tf_gpu->lane + (int)(k)), __LINE__)
#define __shfl_up_sync(mask, value, k) tf::shuffle((mask), tf::plain(value), tf::lane_at(tf_gpu->lane - (int)(k)), __LINE__)
#define __threadfence() ((void)0)
#define __threadfence_block() ((void)0)
#define __trap() tf_gpu->fault(__LINE__, "it traps")

// -- arithmetic

#define TF_CALLS_1(name)                                                  \
  static inline float name##f(float x) { return __builtin_##name##f(x); } \
  static inline double name(double x) { return __builtin_##name(x); }     \
  static inline float name(float x) { return __builtin_##name##f(x); }
#define TF_CALLS_2(name)                                                              \
  static inline float name##f(float x, float y) { return __builtin_##name##f(x, y); } \
  static inline double name(double x, double y) { return __builtin_##name(x, y); }    \
  static inline float name(float x, float y) { return __builtin_##name##f(x, y); }
TF_CALLS_1(sqrt)
TF_CALLS_1(fabs)
TF_CALLS_1(floor)
TF_CALLS_1(ceil)
TF_CALLS_1(trunc)
TF_CALLS_1(rint)
TF_CALLS_1(exp)
TF_CALLS_1(exp2)
TF_CALLS_1(expm1)
TF_CALLS_1(log)
TF_CALLS_1(log2)
TF_CALLS_1(log1p)
TF_CALLS_1(sin)
TF_CALLS_1(cos)
TF_CALLS_1(tan)
TF_CALLS_1(tanh)
TF_CALLS_1(erf)
TF_CALLS_2(fmin)
TF_CALLS_2(fmax)
TF_CALLS_2(fmod)
TF_CALLS_2(pow)
TF_CALLS_2(copysign)
static inline float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
static inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }

#define TF_ROUNDED(T, f, d)                                            \
  static inline T __##d##add_rn(T x, T y) { return x + y; }            \
  static inline T __##d##sub_rn(T x, T y) { return x - y; }            \
  static inline T __##d##mul_rn(T x, T y) { return x * y; }            \
  static inline T __##d##div_rn(T x, T y) { return x / y; }            \
  static inline T __##d##rcp_rn(T x) { return 1 / x; }                 \
  static inline T __##d##sqrt_rn(T x) { return __builtin_sqrt##f(x); } \
  static inline T __fma##f##_rn(T x, T y, T z) { return __builtin_fma##f(x, y, z); }
TF_ROUNDED(float, f, f)
TF_ROUNDED(double, , d)
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __expf(float x) { return __builtin_expf(x); }
static inline float __logf(float x) { return __builtin_logf(x); }

static inline int __float_as_int(float x) { return tf::bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return tf::bits<unsigned>(x); }
static inline float __int_as_float(int x) { return tf::bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return tf::bits<float>(x); }
static inline long long __double_as_longlong(double x) { return tf::bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return tf::bits<double>(x); }
static inline int __float2int_rn(float x) { return (int)__builtin_rintf(x); }
static inline int __float2int_rz(float x) { return (int)x; }
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __double2float_rn(double x) { return (float)x; }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long)x * y >> 32); }
static inline int __mulhi(int x, int y) { return (int)((long)x * y >> 32); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}

#define TF_LEAST_AND_MOST(T)                              \
  static inline T min(T x, T y) { return y < x ? y : x; } \
  static inline T max(T x, T y) { return x < y ? y : x; }
TF_LEAST_AND_MOST(int)
TF_LEAST_AND_MOST(unsigned)
TF_LEAST_AND_MOST(long)
TF_LEAST_AND_MOST(unsigned long)
TF_LEAST_AND_MOST(long long)
TF_LEAST_AND_MOST(unsigned long long)
static inline float min(float x, float y) { return __builtin_fminf(x, y); }
static inline float max(float x, float y) { return __builtin_fmaxf(x, y); }
static inline double min(double x, double y) { return __builtin_fmin(x, y); }
static inline double max(double x, double y) { return __builtin_fmax(x, y); }
static inline int abs(int x) { return x < 0 ? -x : x; }
