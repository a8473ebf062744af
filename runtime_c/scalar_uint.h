// Operations on unsigned integers, written for uint_t. tinyfuse pastes the functions that a program
// uses, with uint8_t ... uint64_t for uint_t; BITS is the width. Division by zero gives zero.
// Ones are counted in parallel: H. S. Warren, Hacker's Delight, 2003, 5-1.

// 1 or 0.
static inline uint_t tf_sign_uint(uint_t x) {
  return x > 0;
}

// x * x.
static inline uint_t tf_square_uint(uint_t x) {
  return (uint_t)(x * x);
}

// The larger of a and b.
static inline uint_t tf_maximum_uint(uint_t a, uint_t b) {
  return a > b ? a : b;
}

// The smaller of a and b.
static inline uint_t tf_minimum_uint(uint_t a, uint_t b) {
  return a < b ? a : b;
}

// a * 2^b; 0 for shifts by the width or more.
static inline uint_t tf_left_shift_uint(uint_t a, uint_t b) {
  return b < BITS ? (uint_t)(a << b) : 0;
}

// a / 2^b; 0 for shifts by the width or more.
static inline uint_t tf_right_shift_uint(uint_t a, uint_t b) {
  return b < BITS ? (uint_t)(a >> b) : 0;
}

// The number of ones in x.
static inline uint8_t tf_bitwise_count_uint(uint_t x) {
  uint_t pairs = (uint_t)(x - ((x >> 1) & ((uint_t)-1 / 3)));
  uint_t fours = (uint_t)((pairs & ((uint_t)-1 / 5)) + ((pairs >> 2) & ((uint_t)-1 / 5)));
  uint_t bytes = (uint_t)((fours + (fours >> 4)) & ((uint_t)-1 / 17));
  return (uint8_t)((uint_t)(bytes * ((uint_t)-1 / 255)) >> (BITS - 8));
}

// 1 / x, rounded down; 0 for x = 0.
static inline uint_t tf_reciprocal_uint(uint_t x) {
  return x == 1;
}

// a / b, rounded down; 0 for b = 0.
static inline uint_t tf_floor_divide_uint(uint_t a, uint_t b) {
  return b == 0 ? 0 : (uint_t)(a / b);
}

// The remainder of a / b; 0 for b = 0.
static inline uint_t tf_remainder_uint(uint_t a, uint_t b) {
  return b == 0 ? 0 : (uint_t)(a % b);
}

// The greatest common divisor of a and b.
static inline uint_t tf_gcd_uint(uint_t a, uint_t b) {
  while (a != 0) {
    uint_t remainder = (uint_t)(b % a);
    b = a;
    a = remainder;
  }
  return b;
}

// The least common multiple of a and b.
static inline uint_t tf_lcm_uint(uint_t a, uint_t b) {
  uint_t divisor = tf_gcd_uint(a, b);
  return divisor == 0 ? 0 : (uint_t)(a / divisor * b);
}

// a to the power of b.
static inline uint_t tf_power_uint(uint_t a, uint_t b) {
  uint_t result = 1;
  for (; b > 0; b >>= 1) {
    if (b & 1) result = (uint_t)(result * a);
    a = (uint_t)(a * a);
  }
  return result;
}

// chosen where the condition holds, else other. Both are loaded before, since gcc 12 mixes up loads
// behind several conditions, in steps of a loop that it writes out.
static inline uint_t tf_select_uint(bool8_t condition, uint_t chosen, uint_t other) {
  return condition ? chosen : other;
}
