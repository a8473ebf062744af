// Tensor cores and asynchronous copies: what `mma.sync`, `ldmatrix` and `cp.async` do, after the
// layouts of fragments in the PTX manual. Copies happen when they are waited for, and not before.

namespace tf {

struct copy {
  char *to;
  const char *from;
  tf_array array; // that `to` lies in; without a name where nothing is checked
  int line;
};

// The copies that a thread has begun in this block. A group ends where `to` is null.
struct copies {
  enum { MOST = 128 };
  copy waiting[MOST];
  int count;
  unsigned block;
};
static copies *copies_of_threads;

static inline copies &own_copies() {
  if (!copies_of_threads)
    copies_of_threads = (copies *)__builtin_calloc(1024, sizeof(copies));
  const tf_index thread = tf_gpu->thread, threads = tf_gpu->threads;
  copies &own = copies_of_threads[thread.x + threads.x * (thread.y + threads.y * thread.z)];
  if (own.block != tf_gpu->block_turn)
    own.count = 0;
  own.block = tf_gpu->block_turn;
  return own;
}

static inline void begin_copy(const copy &next) {
  copies &own = own_copies();
  if (own.count == copies::MOST)
    tf_gpu->fault(next.line, "it begins more copies than the emulator keeps: wait for some");
  own.waiting[own.count++] = next;
}

static inline void end_copy(const copy &next) {
#if TF_CHECK
  tf_gpu->access(&next.array, next.to, 16, TF_WRITE, next.line);
#endif
  __builtin_memcpy(next.to, next.from, 16);
}

// Ends all groups but the last `kept`.
static inline void wait_for_copies(int kept) {
  copies &own = own_copies();
  int groups = 0, done = 0, left = 0;
  for (int i = 0; i < own.count; i++) groups += !own.waiting[i].to;
  for (; done < own.count && groups > kept; done++) {
    if (own.waiting[done].to)
      end_copy(own.waiting[done]);
    else
      groups--;
  }
  for (int i = done; i < own.count; i++) own.waiting[left++] = own.waiting[i];
  own.count = left;
}

#if TF_CHECK
template <class T, class F>
static inline void copy_16(pointer<T> to, pointer<F> from, int line) {
  raw(from, 16, TF_READ, line);
  tf_gpu->access(to.array, to.at, 16, TF_COPY, line);
  begin_copy({(char *)to.at, (const char *)from.at, *to.array, line});
}
template <class T, size_t N, class F>
static inline void copy_16(view<T[N]> to, pointer<F> from, int line) {
  copy_16(pointer<element_t<T>>(to), from, line);
}
#else
template <class T, class F>
static inline void copy_16(T *to, F *from, int line) {
  begin_copy({(char *)to, (const char *)from, {}, line});
}
#endif

static inline float half_to_float(uint16_t half) {
  const unsigned sign = (unsigned)(half & 0x8000) << 16, rest = half & 0x7fff;
  if (rest >= 0x7c00)
    return bits<float>(sign | 0x7f800000u | rest << 13);
  return bits<float>(sign | bits<unsigned>(bits<float>(rest << 13) * 0x1p+112f));
}
// The bits of a float that is one of these numbers, or NaN.
static inline uint16_t half_of_float(float number) {
  const unsigned all = bits<unsigned>(number), sign = all >> 16 & 0x8000, size = all & 0x7fffffff;
  if (size >= 0x7f800000)
    return sign | 0x7c00 | (size > 0x7f800000 ? 0x200 : 0);
  return sign | bits<unsigned>(bits<float>(size) * 0x1p-112f) >> 13;
}
static inline uint32_t pair_of(unsigned lower, unsigned upper) { return lower | upper << 16; }
static inline float bfloat_to_float(uint16_t half) { return bits<float>((unsigned)half << 16); }

// d[16, 8] += a[16, 16] b[16, 8] in pairs of 16-bit numbers, of which this lane has four of d.
template <class Convert>
static inline void multiply_halves(float *d, const uint32_t *a, const uint32_t *b, Convert convert, int line) {
  uint32_t own[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const char *slots = tf_gpu->exchange(own, sizeof own, line);
  const auto given = [&](int lane, int word, int high) {
    uint32_t pair;
    __builtin_memcpy(&pair, slots + 64 * lane + 4 * word, 4);
    return convert((uint16_t)(high ? pair >> 16 : pair));
  };
  const int group = tf_gpu->lane >> 2, pair = tf_gpu->lane & 3;
  for (int i = 0; i < 4; i++) {
    const int row = group + 8 * (i >> 1), column = 2 * pair + (i & 1);
    for (int k = 0; k < 16; k++)
      d[i] += given((row & 7) * 4 + (k & 7) / 2, (row >> 3) + 2 * (k >> 3), k & 1) * given(column * 4 + (k & 7) / 2, 4 + (k >> 3), k & 1);
  }
}

// d[16, 8] += a[16, 8] b[8, 8] in tf32: floats of which the last 13 bits do not count.
static inline void multiply_tf32(float *d, const uint32_t *a, const uint32_t *b, int line) {
  uint32_t own[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const char *slots = tf_gpu->exchange(own, sizeof own, line);
  const auto given = [&](int lane, int word) {
    uint32_t number;
    __builtin_memcpy(&number, slots + 64 * lane + 4 * word, 4);
    return bits<float>(number & 0xffffe000u);
  };
  const int group = tf_gpu->lane >> 2, pair = tf_gpu->lane & 3;
  for (int i = 0; i < 4; i++) {
    const int row = group + 8 * (i >> 1), column = 2 * pair + (i & 1);
    for (int k = 0; k < 8; k++)
      d[i] += given((row & 7) * 4 + (k & 3), (row >> 3) + 2 * (k >> 2)) * given(column * 4 + (k & 3), 4 + (k >> 2));
  }
}

// Four matrices of 8 rows of 8 numbers of 16 bits; each lane names one row.
template <class P>
static inline void load_matrices(uint32_t *to, P row, int transposed, int line) {
  const uint16_t *own = (const uint16_t *)raw(row, 16, TF_READ, line);
  const char *slots = tf_gpu->exchange(&own, sizeof own, line);
  const int lane = tf_gpu->lane;
  for (int matrix = 0; matrix < 4; matrix++) {
    to[matrix] = 0;
    for (int half = 0; half < 2; half++) {
      const int i = transposed ? 2 * (lane & 3) + half : lane >> 2, j = transposed ? lane >> 2 : 2 * (lane & 3) + half;
      const uint16_t *from;
      __builtin_memcpy(&from, slots + 64 * (matrix * 8 + i), sizeof from);
      to[matrix] |= (uint32_t)from[j] << 16 * half;
    }
  }
}

} // namespace tf

#define tf_cp_async16(to, from) tf::copy_16(to, from, __LINE__)
#define tf_cp_commit() tf::begin_copy({0, 0, {}, __LINE__})
#define tf_cp_wait(kept) tf::wait_for_copies(kept)
#define tf_mma_bf16(d, a, b) tf::multiply_halves(d, a, b, tf::bfloat_to_float, __LINE__)
#define tf_mma_f16(d, a, b) tf::multiply_halves(d, a, b, tf::half_to_float, __LINE__)
#define tf_mma_tf32(d, a, b) tf::multiply_tf32(d, a, b, __LINE__)
#define tf_ldmatrix_x4(to, row) tf::load_matrices(to, row, 0, __LINE__)
#define tf_ldmatrix_x4_trans(to, row) tf::load_matrices(to, row, 1, __LINE__)
#define tf_part_tf32(x) tf::bits<uint32_t>((float)(x))
#define tf_part_bf16(x, y) tf::pair_of(tf::bits<unsigned>((float)(x)) >> 16, tf::bits<unsigned>((float)(y)) >> 16)
#define tf_part_f16(x, y) tf::pair_of(tf::half_of_float(x), tf::half_of_float(y))
