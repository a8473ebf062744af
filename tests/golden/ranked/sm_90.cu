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

typedef __UINT8_TYPE__ bool8_t; // 0 or 1
typedef __INT64_TYPE__ int64_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;

// floor(a / 2^b); 0 or -1 for shifts by the width or more, and for negative ones.
static __device__ inline int64_t tf_right_shift_int64(int64_t a, int64_t b) {
  return (int64_t)(a >> ((uint64_t)b < 64 ? b : 64 - 1));
}

// The bits of x.
static __device__ inline uint32_t tf_bits_float(float x) {
  union {
    float value;
    uint32_t bits;
  } pun = {.value = x};
  return pun.bits;
}

// The value that has these bits.
static __device__ inline float tf_from_bits_float(uint32_t bits) {
  union {
    uint32_t bits;
    float value;
  } pun = {.bits = bits};
  return pun.value;
}

// Whether x is NaN.
static __device__ inline bool8_t tf_isnan_float(float x) {
  return x != x;
}

// chosen where the condition holds, else other: by their bits. Both are loaded before, since gcc 12
// mixes up loads behind several conditions, in one sum or in steps of a loop that it writes out.
static __device__ inline float tf_select_float(bool8_t condition, float chosen, float other) {
  uint32_t mask = -(uint32_t)condition;
  return tf_from_bits_float((tf_bits_float(chosen) & mask) | (tf_bits_float(other) & ~mask));
}

// What an unsigned integer is sorted by.
static __device__ inline uint32_t tf_key_uint32(uint32_t item) {
  return item;
}

// A key that is in the same order: one for both zeros, and one above all others for every NaN.
static __device__ inline uint32_t tf_order_float(float x) {
  uint32_t bits = tf_bits_float(x), sign = (uint32_t)1 << (32 - 1);
  uint32_t key = bits & sign ? ~bits : bits | sign;
  key = x == 0 ? sign : key;
  return x != x ? (uint32_t)-1 : key;
}

// Stores the values that the sorted keys of a row stand for. Behind the n keys there is room for as
// many: for the zeros of the row, whose signs stay in their order.
static __device__ inline void tf_put_sorted_float(const float *row, float *to, uint32_t *keys, long n) {
  uint32_t sign = (uint32_t)1 << (32 - 1), *zeros = keys + n, negative = 0;
  for (long i = 0; i < n; i++)
    negative |= tf_bits_float(row[i]) == sign;
  long count = 0;
  if (negative)
    for (long i = 0; i < n; i++)
      if (row[i] == 0) zeros[count++] = tf_bits_float(row[i]);
  for (long i = 0; i < n; i++) {
    uint32_t key = keys[i];
    to[i] = tf_from_bits_float(key & sign ? key ^ sign : ~key);
  }
  if (negative)
    for (long i = 0, zero = 0; zero < count; i++)
      if (keys[i] == sign) to[i] = tf_from_bits_float(zeros[zero++]);
}

// Sorts at most `most` items, 16 or 32: each goes where the number of those before it says.
static __device__ inline void tf_sort_run_uint32(const uint32_t *row, uint32_t *to, uint32_t n, uint32_t most) {
  uint32_t items[32];
  uint32_t keys[32], places[32];
  for (uint32_t i = 0; i < n; i++)
    items[i] = row[i];
  for (uint32_t i = 0; i < most; i++) {
    keys[i] = i < n ? tf_key_uint32(items[i]) : (uint32_t)-1;
    places[i] = 0;
  }
  for (uint32_t j = 0; j < most; j++)
    for (uint32_t i = 0; i < most; i++)
      places[i] += (keys[j] < keys[i]) | ((keys[j] == keys[i]) & (j < i));
  for (uint32_t i = 0; i < n; i++)
    to[places[i]] = items[i];
}

// Merges two sorted runs that lie one after the other: `width` items, and the others of n. Goes on
// from both ends at once, as far as no run can end on the way. Places are computed, not chosen: a
// processor cannot guess which run is next.
static __device__ inline void tf_merge_uint32(const uint32_t *__restrict__ row, uint32_t *__restrict__ to, long width, long n) {
  long a = 0, b = width, a_last = width - 1, b_last = n - 1, first = 0, last = n - 1;
  while (a <= a_last && b <= b_last) {
    long steps = a_last - a < b_last - b ? a_last - a : b_last - b;
    for (long i = 0; i <= steps; i++) {
      long takes_b = tf_key_uint32(row[b]) < tf_key_uint32(row[a]);
      long takes_a = tf_key_uint32(row[b_last]) < tf_key_uint32(row[a_last]);
      to[first++] = row[a + (b - a) * takes_b];
      to[last--] = row[b_last + (a_last - b_last) * takes_a];
      a += 1 - takes_b;
      b += takes_b;
      a_last -= takes_a;
      b_last -= 1 - takes_a;
    }
  }
  for (; a <= a_last; a++)
    to[first++] = row[a];
  for (; b <= b_last; b++)
    to[first++] = row[b];
}

// Merges four runs of `width` items, the first with the second and the third with the fourth, side by
// side: a processor works on both at once.
static __device__ inline void tf_merge_two_uint32(const uint32_t *__restrict__ row, uint32_t *__restrict__ to, long width) {
  long a = 0, b = width, a_last = width - 1, b_last = 2 * width - 1;
  long c = 2 * width, d = 3 * width, c_last = 3 * width - 1, d_last = 4 * width - 1;
  for (long i = 0; i < width; i++) {
    long takes_b = tf_key_uint32(row[b]) < tf_key_uint32(row[a]);
    long takes_a = tf_key_uint32(row[b_last]) < tf_key_uint32(row[a_last]);
    long takes_d = tf_key_uint32(row[d]) < tf_key_uint32(row[c]);
    long takes_c = tf_key_uint32(row[d_last]) < tf_key_uint32(row[c_last]);
    to[i] = row[a + (b - a) * takes_b];
    to[2 * width - 1 - i] = row[b_last + (a_last - b_last) * takes_a];
    to[2 * width + i] = row[c + (d - c) * takes_d];
    to[4 * width - 1 - i] = row[d_last + (c_last - d_last) * takes_c];
    a += 1 - takes_b;
    b += takes_b;
    a_last -= takes_a;
    b_last -= 1 - takes_a;
    c += 1 - takes_d;
    d += takes_d;
    c_last -= takes_c;
    d_last -= 1 - takes_c;
  }
}

// Sorts in runs of 32, then merges pairs of runs, back and forth between the row and `scratch`.
static __device__ inline void tf_merge_sort_uint32(uint32_t *__restrict__ row, uint32_t *__restrict__ scratch, long n) {
  if (n <= 16) {
    tf_sort_run_uint32(row, row, (uint32_t)n, 16);
    return;
  }
  long rounds = 0, whole = n - n % 32;
  for (long width = 32; width < n; width *= 2)
    rounds++;
  uint32_t *from = rounds % 2 ? scratch : row, *to = rounds % 2 ? row : scratch;
  for (long i = 0; i < whole; i += 32)
    tf_sort_run_uint32(row + i, from + i, 32, 32);
  if (whole < n) tf_sort_run_uint32(row + whole, from + whole, (uint32_t)(n - whole), 32);
  for (long width = 32; width < n; width *= 2) {
    long i = 0;
    for (; n - i >= 4 * width; i += 4 * width)
      tf_merge_two_uint32(from + i, to + i, width);
    for (; i < n; i += 2 * width) {
      long rest = n - i < 2 * width ? n - i : 2 * width;
      tf_merge_uint32(from + i, to + i, rest < width ? rest : width, rest);
    }
    uint32_t *last = from;
    from = to;
    to = last;
  }
}

// Sorts by so many bytes of the keys, from `byte` on, the lowest first; what is equal in all keys is
// left out.
static __device__ inline void tf_radix_sort_uint32(uint32_t *__restrict__ row, uint32_t *__restrict__ scratch, long n, long byte, long bytes) {
  uint32_t *from = row, *to = scratch;
  for (long shift = 8 * byte; shift < 8 * (byte + bytes); shift += 8) {
    long places[256] = {0}, total = 0;
    for (long i = 0; i < n; i++)
      places[tf_key_uint32(from[i]) >> shift & 255]++;
    if (places[tf_key_uint32(from[0]) >> shift & 255] == n) continue;
    for (long digit = 0; digit < 256; digit++) {
      long count = places[digit];
      places[digit] = total;
      total += count;
    }
    for (long i = 0; i < n; i++) {
      uint32_t item = from[i];
      to[places[tf_key_uint32(item) >> shift & 255]++] = item;
    }
    uint32_t *last = from;
    from = to;
    to = last;
  }
  for (long i = 0; i < n && from != row; i++)
    row[i] = from[i];
}

// Sorts n items by so many bytes of their keys from `byte` on; those below count in ties only.
// `scratch` has room for as many.
static __device__ inline void tf_sort_items_uint32(uint32_t *__restrict__ row, uint32_t *__restrict__ scratch, long n, long byte, long bytes) {
  if (bytes <= 4 && n >= 256)
    tf_radix_sort_uint32(row, scratch, n, byte, bytes);
  else
    tf_merge_sort_uint32(row, scratch, n);
}

// Stores a row of n elements in ascending order; `to` may be the row. `keys` has room for 2 n.
static __device__ inline void tf_sort_float(const float *row, float *to, uint32_t *keys, long n) {
  for (long i = 0; i < n; i++)
    keys[i] = tf_order_float(row[i]);
  tf_sort_items_uint32(keys, keys + n, n, 0, sizeof(uint32_t));
  tf_put_sorted_float(row, to, keys, n);
}

// order = np.argsort(x, axis=0)
// [order_rows] reads 1.41 KiB, writes 2.81 KiB, 174960 operations
// 9 blocks of 64 threads
extern "C" __global__ void __launch_bounds__(64) ranked_order_rows(TF_IN(float) x, TF_OUT(int64_t) order_rows) {
  const int j = blockIdx.x;
  TF_SHARED(float, order_rows_row, [40]);
  TF_SHARED(float, items_1, [40]);
  TF_SHARED(float, items_2, [40]);
  TF_SHARED(int64_t, places_1, [40]);
  TF_SHARED(int64_t, places_2, [40]);
  {
    const int i = threadIdx.x;
    if (i < 40) {
      order_rows_row[i] = x[9 * i + j];
    }
  }
  __syncthreads();
  {
    const int element = threadIdx.x;
    if (element < 40) {
      float item_1;
      int64_t before_1;
      item_1 = order_rows_row[element];
      before_1 = 0;
      for (int other = 0; other < 32; other++) {
        if (32 * (element / 32) + other < 40) {
          before_1 = (int64_t)((uint64_t)before_1 + (uint64_t)(int64_t)(32 * (element / 32) + other - element < 0 ? !((item_1 < order_rows_row[32 * (element / 32) + other]) | ((item_1 == item_1) & (order_rows_row[32 * (element / 32) + other] != order_rows_row[32 * (element / 32) + other]))) : (order_rows_row[32 * (element / 32) + other] < item_1) | ((order_rows_row[32 * (element / 32) + other] == order_rows_row[32 * (element / 32) + other]) & (item_1 != item_1))));
        }
      }
      items_1[before_1 + 32 * (element / 32)] = item_1;
      places_1[before_1 + 32 * (element / 32)] = (long)element;
    }
  }
  __syncthreads();
  {
    const int element = threadIdx.x;
    if (element < 40) {
      float item_1;
      int64_t before_1;
      int64_t tried;
      float other_item;
      item_1 = items_1[element];
      before_1 = 0;
      for (int step = 0; step < 6; step++) {
        tried = (int64_t)((uint64_t)before_1 + (uint64_t)tf_right_shift_int64(32, (long)step));
        if ((tried <= 32) & ((int64_t)((uint64_t)(long)(-32 * (element / 32) + 32) + (uint64_t)tried) <= 40)) {
          other_item = items_1[tried - 32 * (element / 32) + 31];
          if (element / 32 >= 1 ? !((item_1 < other_item) | ((item_1 == item_1) & (other_item != other_item))) : (other_item < item_1) | ((other_item == other_item) & (item_1 != item_1))) {
            before_1 = tried;
          }
        }
      }
      items_2[before_1 + element % 32] = item_1;
      places_2[before_1 + element % 32] = places_1[element];
    }
  }
  __syncthreads();
  {
    const int element = threadIdx.x;
    if (element < 40) {
      order_rows[40 * j + element] = places_2[element];
    }
  }
}

// return np.take_along_axis(y, order, axis=0), np.sort(x - y), np.median(x, axis=1)
// [out, subtract, out_1, sort, sum, divide, isnan_1, out_2] reads 7.03 KiB, writes 2.97 KiB, 3720
//   operations
// 1 block of 64 threads
extern "C" __global__ void __launch_bounds__(64) ranked_out_2(TF_IN(int64_t) order_rows, TF_IN(float) y, TF_IN(float) x, TF_OUT(float) out_1, TF_OUT(float) out, TF_OUT(float) out_2) {
  {
    const int i = blockIdx.x * 64 + threadIdx.x;
    if (i < 40) {
      float sort[9];
      uint32_t out_1_work[18];
      uint32_t sort_work[18];
      for (int j = 0; j < 9; j++) {
        out[9 * i + j] = y[(int64_t)((uint64_t)order_rows[40 * j + i] * (uint64_t)9) + j];
        out_1[9 * i + j] = x[9 * i + j] - y[9 * i + j];
      }
      tf_sort_float(TF_RAW(out_1) + 9 * i, TF_RAW(out_1) + 9 * i, out_1_work, 9);
      tf_sort_float(TF_RAW(x) + 9 * i, sort, sort_work, 9);
      const bool8_t isnan_1 = tf_isnan_float(sort[8]);
      const float sum = 0.0f + sort[4];
      const float divide = sum / 1.0f;
      out_2[i] = tf_select_float(isnan_1, sort[8], divide);
    }
  }
}
