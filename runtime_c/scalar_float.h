// Operations on floating-point values, written for real_t. tinyfuse pastes the functions that a
// program uses, with float or double for real_t and uint32_t or uint64_t for bits_t. A name in _real
// that does not begin with tf_ is one of the compiler: __builtin_floor_real is __builtin_floorf or
// __builtin_floor.
// Of the format: BITS, MANTISSA_BITS (23 or 52), EXPONENT_MASK (its bits), EXPONENT_OF_HALF (126 or
// 1022), SMALLEST_NORMAL, and SUBNORMAL_SCALE = 2^(MANTISSA_BITS + 1), which makes subnormals normal.

// The bits of x.
static inline bits_t tf_bits_real(real_t x) {
  union {
    real_t value;
    bits_t bits;
  } pun = {.value = x};
  return pun.bits;
}

// The value that has these bits.
static inline real_t tf_from_bits_real(bits_t bits) {
  union {
    bits_t bits;
    real_t value;
  } pun = {.bits = bits};
  return pun.value;
}

// The larger of a and b; NaN where one is NaN; +0 is larger than -0.
static inline real_t tf_maximum_real(real_t a, real_t b) {
  real_t first = a > b ? a : b;
  real_t second = b > a ? b : a; // of two zeros, first is b and second is a
  real_t larger = tf_from_bits_real(tf_bits_real(first) & tf_bits_real(second));
  return __builtin_isunordered(a, b) ? a + b : larger;
}

// The smaller of a and b; NaN where one is NaN; -0 is smaller than +0.
static inline real_t tf_minimum_real(real_t a, real_t b) {
  real_t first = a < b ? a : b;
  real_t second = b < a ? b : a; // of two zeros, first is b and second is a
  real_t smaller = tf_from_bits_real(tf_bits_real(first) | tf_bits_real(second));
  return __builtin_isunordered(a, b) ? a + b : smaller;
}

// The larger of a and b; the other one where one is NaN; +0 is larger than -0.
static inline real_t tf_fmax_real(real_t a, real_t b) {
  real_t first = a > b ? a : b;
  real_t second = b > a ? b : a; // of two zeros, first is b and second is a
  real_t larger = tf_from_bits_real(tf_bits_real(first) & tf_bits_real(second));
  larger = a != a ? b : larger;
  return b != b ? a : larger;
}

// The smaller of a and b; the other one where one is NaN; -0 is smaller than +0.
static inline real_t tf_fmin_real(real_t a, real_t b) {
  real_t first = a < b ? a : b;
  real_t second = b < a ? b : a; // of two zeros, first is b and second is a
  real_t smaller = tf_from_bits_real(tf_bits_real(first) | tf_bits_real(second));
  smaller = a != a ? b : smaller;
  return b != b ? a : smaller;
}

// The place of x among all values: -0 before +0, and every NaN after infinity.
static inline bits_t tf_rank_nan_last_real(real_t x) {
  const bits_t bits = tf_bits_real(x), sign = (bits_t)1 << (BITS - 1);
  return bits & sign ? sign + EXPONENT_MASK - bits : bits + EXPONENT_MASK + 1;
}

// The place of x among all values: -0 before +0, and every NaN before negative infinity.
static inline bits_t tf_rank_nan_first_real(real_t x) {
  const bits_t bits = tf_bits_real(x), sign = (bits_t)1 << (BITS - 1);
  return bits & sign ? sign - EXPONENT_MASK - 2 - bits : bits - EXPONENT_MASK - 1;
}

// The value that has this place, where NaN comes last.
static inline real_t tf_of_rank_nan_last_real(bits_t rank) {
  const bits_t bits = rank - EXPONENT_MASK - 1, sign = (bits_t)1 << (BITS - 1);
  return tf_from_bits_real(bits & sign ? ~bits ^ sign : bits);
}

// The value that has this place, where NaN comes first.
static inline real_t tf_of_rank_nan_first_real(bits_t rank) {
  const bits_t bits = rank + EXPONENT_MASK + 1, sign = (bits_t)1 << (BITS - 1);
  return tf_from_bits_real(bits & sign ? ~bits ^ sign : bits);
}

// x * x.
static inline real_t tf_square_real(real_t x) {
  return x * x;
}

// 1, 0 or -1; NaN for NaN.
static inline real_t tf_sign_real(real_t x) {
  real_t sign = x > 0 ? (real_t)1.0 : (real_t)0.0;
  sign = x < 0 ? (real_t)-1.0 : sign;
  return x != x ? x : sign;
}

// Whether x is NaN.
static inline bool8_t tf_isnan_real(real_t x) {
  return x != x;
}

// Whether the sign bit is set, also that of -0.
static inline bool8_t tf_signbit_real(real_t x) {
  return (signed_t)tf_bits_real(x) < 0; // where it is shifted, gcc vectorizes no choice by it
}

// 0 below zero, `middle` at zero, 1 above; NaN for NaN.
static inline real_t tf_heaviside_real(real_t x, real_t middle) {
  real_t step = x > 0 ? (real_t)1.0 : (real_t)0.0;
  step = x == 0 ? middle : step;
  return x != x ? x : step;
}

// The next value after x on the way to y.
static inline real_t tf_nextafter_real(real_t x, real_t y) {
  bits_t bits = tf_bits_real(x);
  bits_t outward = (x > 0) == (y > x);
  real_t next = tf_from_bits_real(bits + 2 * outward - 1);
  real_t tiny = tf_from_bits_real(1);
  next = x == 0 ? __builtin_copysign_real(tiny, y) : next;
  next = x == y ? y : next;
  return ((x != x) | (y != y)) ? x + y : next;
}

// The distance from x to the next value away from zero, with the sign of x; positive for -0.
static inline real_t tf_spacing_real(real_t x) {
  real_t next = tf_from_bits_real(tf_bits_real(x + (real_t)0.0) + 1);
  return __builtin_fabs_real(x) < __builtin_inf_real() ? next - x : __builtin_nan_real("");
}

// 2^n, for the exponents of normal numbers.
static inline real_t tf_power_of_two_real(int64_t n) {
  return tf_from_bits_real((bits_t)(n + EXPONENT_OF_HALF + 1) << MANTISSA_BITS);
}

// A step of ldexp: a part of n that stays clear of where products are rounded, or 0 if n is small.
static inline int64_t tf_ldexp_step_real(int64_t n) {
  int64_t step = n > EXPONENT_OF_HALF + 1 ? EXPONENT_OF_HALF + 1 : 0;
  return n < -EXPONENT_OF_HALF ? MANTISSA_BITS + 1 - EXPONENT_OF_HALF : step;
}

// x * 2^exponent, rounded once: what the first steps round would have become zero.
static inline real_t tf_ldexp_real(real_t x, int64_t exponent) {
  int64_t first = tf_ldexp_step_real(exponent);
  int64_t second = tf_ldexp_step_real(exponent - first);
  int64_t last = exponent - first - second;
  last = last < EXPONENT_OF_HALF + 1 ? last : EXPONENT_OF_HALF + 1;
  last = last > -EXPONENT_OF_HALF ? last : -EXPONENT_OF_HALF;
  return x * tf_power_of_two_real(first) * tf_power_of_two_real(second) * tf_power_of_two_real(last);
}

// The part of x after the point, with the sign of x.
static inline real_t tf_modf_fraction_real(real_t x) {
  real_t fraction = x - __builtin_trunc_real(x);
  fraction = __builtin_fabs_real(x) == __builtin_inf_real() ? (real_t)0.0 : fraction;
  return __builtin_copysign_real(fraction, x);
}

// The n of x = m * 2^n with 0.5 <= |m| < 1; 0 where there is none.
static inline int32_t tf_frexp_exponent_real(real_t x) {
  bool8_t subnormal = __builtin_fabs_real(x) < SMALLEST_NORMAL;
  bits_t bits = tf_bits_real(subnormal ? x * SUBNORMAL_SCALE : x) & EXPONENT_MASK;
  int32_t exponent = (int32_t)(bits >> MANTISSA_BITS) - EXPONENT_OF_HALF;
  exponent -= subnormal ? MANTISSA_BITS + 1 : 0;
  return ((x != 0) & (__builtin_fabs_real(x) < __builtin_inf_real())) ? exponent : 0;
}

// The m of x = m * 2^n with 0.5 <= |m| < 1; x where there is none.
static inline real_t tf_frexp_mantissa_real(real_t x) {
  bool8_t subnormal = __builtin_fabs_real(x) < SMALLEST_NORMAL;
  bits_t bits = tf_bits_real(subnormal ? x * SUBNORMAL_SCALE : x) & ~EXPONENT_MASK;
  real_t mantissa = tf_from_bits_real(bits | tf_bits_real((real_t)0.5));
  return ((x != 0) & (__builtin_fabs_real(x) < __builtin_inf_real())) ? mantissa : x;
}

// chosen where the condition holds, else other: by their bits. Both are loaded before, since gcc 12
// mixes up loads behind several conditions, in one sum or in steps of a loop that it writes out.
static inline real_t tf_select_real(bool8_t condition, real_t chosen, real_t other) {
  bits_t mask = -(bits_t)condition;
  return tf_from_bits_real((tf_bits_real(chosen) & mask) | (tf_bits_real(other) & ~mask));
}

// a + b. Out of sight of what a and b are: of -x + 0.0 gcc 12 makes -x, for a converted integer x.
static inline real_t tf_add_real(real_t a, real_t b) {
  return a + b;
}

// a - b. Likewise: of 0.0 - x gcc 12 makes -x, which is -0 where the integer is 0.
static inline real_t tf_subtract_real(real_t a, real_t b) {
  return a - b;
}

// -x by its sign bit. gcc 12 makes -(a * b) - c of -fma(a, b, c): +0 instead of -0 where that is 0.
static inline real_t tf_negative_real(real_t x) {
  return tf_from_bits_real(tf_bits_real(x) ^ (bits_t)1 << (BITS - 1));
}
