// Operations on signed integers, written for int_t and its unsigned partner uint_t. tinyfuse pastes
// the functions that a program uses, with int8_t ... int64_t for int_t. BITS is the width,
// INFINITY_AS_INT what a conversion makes of infinity. Arithmetic wraps around (-fwrapv), division by
// zero gives zero.

// -x. Where gcc 12 sees that x < 0 ? -x : x is |x|, it takes |x| <= 0 for x == 0: wrong for the
// smallest value, whose opposite is itself.
static inline int_t tf_negative_int(int_t x) {
  return (int_t)(-(uint_t)x);
}

// |x|; the smallest value stays what it is.
static inline int_t tf_absolute_int(int_t x) {
  return x < 0 ? tf_negative_int(x) : x;
}

// 1, 0 or -1.
static inline int_t tf_sign_int(int_t x) {
  return (int_t)((x > 0) - (x < 0));
}

// x * x.
static inline int_t tf_square_int(int_t x) {
  return (int_t)(x * x);
}

// The larger of a and b.
static inline int_t tf_maximum_int(int_t a, int_t b) {
  return a > b ? a : b;
}

// The smaller of a and b.
static inline int_t tf_minimum_int(int_t a, int_t b) {
  return a < b ? a : b;
}

// a * 2^b; 0 for shifts by the width or more, and for negative ones.
static inline int_t tf_left_shift_int(int_t a, int_t b) {
  return (uint_t)b < BITS ? (int_t)((uint_t)a << b) : 0;
}

// floor(a / 2^b); 0 or -1 for shifts by the width or more, and for negative ones.
static inline int_t tf_right_shift_int(int_t a, int_t b) {
  return (int_t)(a >> ((uint_t)b < BITS ? b : BITS - 1));
}

// The number of ones in |x|.
static inline uint8_t tf_bitwise_count_int(int_t x) {
  return tf_bitwise_count_uint((uint_t)tf_absolute_int(x));
}

// 1 / x, towards zero. For x = 0 what numpy has: infinity, converted.
static inline int_t tf_reciprocal_int(int_t x) {
  int_t quotient = ((x == 1) | (x == -1)) ? x : 0;
  return x == 0 ? INFINITY_AS_INT : quotient;
}

// floor(a / b); 0 for b = 0.
static inline int_t tf_floor_divide_int(int_t a, int_t b) {
  if (b == 0) return 0;
  if (b == -1) return tf_negative_int(a);
  int_t quotient = (int_t)(a / b);
  return (int_t)(quotient - (((a ^ b) < 0) & (quotient * b != a)));
}

// a - b * floor(a / b), with the sign of b; 0 for b = 0.
static inline int_t tf_remainder_int(int_t a, int_t b) {
  if ((b == 0) | (b == -1)) return 0;
  int_t remainder = (int_t)(a % b);
  return (int_t)(((remainder != 0) & ((a ^ b) < 0)) ? remainder + b : remainder);
}

// The remainder of a / b rounded towards zero, with the sign of a; 0 for b = 0.
static inline int_t tf_fmod_int(int_t a, int_t b) {
  return (int_t)(((b == 0) | (b == -1)) ? 0 : a % b);
}

// The greatest common divisor of |a| and |b|.
static inline int_t tf_gcd_int(int_t a, int_t b) {
  return (int_t)tf_gcd_uint((uint_t)tf_absolute_int(a), (uint_t)tf_absolute_int(b));
}

// The least common multiple of |a| and |b|.
static inline int_t tf_lcm_int(int_t a, int_t b) {
  return (int_t)tf_lcm_uint((uint_t)tf_absolute_int(a), (uint_t)tf_absolute_int(b));
}

// a to the power of b >= 0.
static inline int_t tf_power_int(int_t a, int_t b) {
  int_t result = 1;
  for (; b > 0; b >>= 1) {
    if (b & 1) result = (int_t)(result * a);
    a = (int_t)(a * a);
  }
  return result;
}

// The position of index a among b elements: from their end where a is negative; the nearest if outside.
static inline int_t tf_wrap_index_int(int_t a, int_t b) {
  int_t position = a < 0 ? (int_t)(a + b) : a;
  int_t least = position < 0 ? 0 : position;
  int_t last = (int_t)(b - 1);
  return least < last ? least : last;
}

// The same by a jump that is seldom taken: for steps of which no vectors are made.
static inline int_t tf_wrap_seldom_int(int_t a, int_t b) {
  return __builtin_expect((uint_t)a < (uint_t)b, 1) ? a : tf_wrap_index_int(a, b);
}

// Whether index a is that of none of b elements, from either end; by such a jump too.
static inline bool8_t tf_is_outside_int(int_t a, int_t b) {
  if (__builtin_expect((uint_t)a < (uint_t)b, 1)) return 0;
  return (a < -b) | (a >= b);
}

// The end a of a slice of b elements: from their end where it is negative; the nearest if outside.
static inline int_t tf_slice_end_int(int_t a, int_t b) {
  if (__builtin_expect((b >= 0) & ((uint_t)a <= (uint_t)b), 1)) return a;
  int_t end = a < 0 ? (int_t)(a + b) : a;
  int_t least = end < 0 ? 0 : end;
  return least < b ? least : b;
}

// chosen where the condition holds, else other. Both are loaded before, since gcc 12 mixes up loads
// behind several conditions, in steps of a loop that it writes out.
static inline int_t tf_select_int(bool8_t condition, int_t chosen, int_t other) {
  return condition ? chosen : other;
}
