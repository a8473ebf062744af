// Conversions of floating-point values to integers: towards zero, and defined where the value does
// not fit, with the results of the x86-64 instructions. Written for real_t, as scalar_float.h.

// x, but +0 where its integer part is 0. gcc 12 makes trunc(x) of an integer that is converted
// back to the type of x, which has a sign where that integer is 0.
static inline real_t tf_zero_if_fraction_real(real_t x) {
  return __builtin_fabs_real(x) >= (real_t)1.0 ? x : (real_t)0.0;
}

// x as an int32_t; the smallest int32_t where it does not fit, and for NaN.
static inline int32_t tf_int32_real(real_t x) {
  return __builtin_fabs_real(x) < (real_t)2147483648.0 ? (int32_t)tf_zero_if_fraction_real(x) : -2147483647 - 1;
}

// x as an int64_t; the smallest int64_t where it does not fit, and for NaN.
static inline int64_t tf_int64_real(real_t x) {
  bool8_t fits = __builtin_fabs_real(x) < (real_t)9223372036854775808.0;
  return fits ? (int64_t)tf_zero_if_fraction_real(x) : -9223372036854775807 - 1;
}

// x as a uint64_t; negative values wrap around.
static inline uint64_t tf_uint64_real(real_t x) {
  real_t half = (real_t)9223372036854775808.0;
  uint64_t high = (uint64_t)tf_int64_real(x - half) ^ 9223372036854775808u;
  return x >= half ? high : (uint64_t)tf_int64_real(x);
}
