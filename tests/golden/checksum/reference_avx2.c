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
// return np.bitwise_count(mixed & 0xFFFF), (mixed // 3 % 251).sum()
// [right_shift, bitwise_xor, mixed, bitwise_and, out, floor_divide, remainder_1, out_1] reads 320
//   B, writes 208 B, 360 operations
static void checksum_out_1(const uint32_t *restrict words, uint32_t *restrict bitwise_xor, uint8_t *restrict out, uint64_t *restrict out_1) {
  for (long i = 0; i < 40; i++) {
    bitwise_xor[i] = words[i] ^ tf_right_shift_uint32(words[i], 7u);
    const uint32_t mixed = bitwise_xor[i] * 2654435761u;
    out[i] = tf_bitwise_count_uint32(mixed & 65535u);
  }
  uint64_t out_1_acc = 0u;
  for (long k = 0; k < 40; k++) {
    const uint32_t mixed = bitwise_xor[k] * 2654435761u;
    out_1_acc += (uint64_t)tf_remainder_uint32(tf_floor_divide_uint32(mixed, 3u), 251u);
  }
  out_1[0] = out_1_acc;
}

// arrays: words uint32[40]; then the results: out uint8[40], out_1 uint64[1]
// scratch: 192 bytes; returns 0
int checksum(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)pool;
  uint32_t *words = arrays[0];
  uint8_t *out = arrays[1];
  uint64_t *out_1 = arrays[2];
  uint32_t *bitwise_xor = scratch;
  checksum_out_1(words, bitwise_xor, out, out_1);
  return 0;
}
