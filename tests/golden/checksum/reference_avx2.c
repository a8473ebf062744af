typedef __UINT8_TYPE__ uint8_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;

// a / 2^b; 0 for shifts by the width or more.
static inline uint32_t tf_right_shift_uint32(uint32_t a, uint32_t b) {
  return b < 32 ? (uint32_t)(a >> b) : 0;
}

// The number of ones in x.
static inline uint8_t tf_bitwise_count_uint32(uint32_t x) {
  uint32_t pairs = (uint32_t)(x - ((x >> 1) & ((uint32_t)-1 / 3)));
  uint32_t fours = (uint32_t)((pairs & ((uint32_t)-1 / 5)) + ((pairs >> 2) & ((uint32_t)-1 / 5)));
  uint32_t bytes = (uint32_t)((fours + (fours >> 4)) & ((uint32_t)-1 / 17));
  return (uint8_t)((uint32_t)(bytes * ((uint32_t)-1 / 255)) >> (32 - 8));
}

// a / b, rounded down; 0 for b = 0.
static inline uint32_t tf_floor_divide_uint32(uint32_t a, uint32_t b) {
  return b == 0 ? 0 : (uint32_t)(a / b);
}

// The remainder of a / b; 0 for b = 0.
static inline uint32_t tf_remainder_uint32(uint32_t a, uint32_t b) {
  return b == 0 ? 0 : (uint32_t)(a % b);
}

typedef struct tf_pool tf_pool;

// mixed = (words ^ (words >> 7)) * np.uint32(2654435761)
// [right_shift, bitwise_xor, mixed] reads 160 B, writes 160 B, 120 operations
static void checksum_mixed(const uint32_t *restrict words, uint32_t *restrict mixed) {
  for (long i = 0; i < 40; i++)
    mixed[i] = (words[i] ^ tf_right_shift_uint32(words[i], 7u)) * 2654435761u;
}

// return np.bitwise_count(mixed & 0xFFFF), (mixed // 3 % 251).sum()
// [bitwise_and, out] reads 160 B, writes 40 B, 80 operations
static void checksum_out(const uint32_t *restrict mixed, uint8_t *restrict out) {
  for (long i = 0; i < 40; i++)
    out[i] = tf_bitwise_count_uint32(mixed[i] & 65535u);
}

// return np.bitwise_count(mixed & 0xFFFF), (mixed // 3 % 251).sum()
// [floor_divide, remainder_1, out_1] reads 160 B, writes 8 B, 120 operations
static void checksum_out_1(const uint32_t *restrict mixed, uint64_t *restrict out_1) {
  uint64_t out_1_acc = 0u;
  for (long k = 0; k < 40; k++)
    out_1_acc += (uint64_t)tf_remainder_uint32(tf_floor_divide_uint32(mixed[k], 3u), 251u);
  out_1[0] = out_1_acc;
}

// arrays: words uint32[40]; then the results: out uint8[40], out_1 uint64[1]
// scratch: 192 bytes; returns 0
int checksum(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)pool;
  uint32_t *words = arrays[0];
  uint8_t *out = arrays[1];
  uint64_t *out_1 = arrays[2];
  uint32_t *mixed = scratch;
  checksum_mixed(words, mixed);
  checksum_out(mixed, out);
  checksum_out_1(mixed, out_1);
  return 0;
}
