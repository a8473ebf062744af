// Division of floating-point values as Python defines it, written for real_t, as scalar_float.h.

// floor(a / b) as Python defines it: exact remainder first, then a quotient snapped to an integer.
static inline real_t tf_floor_divide_real(real_t a, real_t b) {
  real_t remainder = tf_fmod_real(a, b);
  real_t quotient = (a - remainder) / b;
  quotient -= (real_t)((remainder != 0) & ((b < 0) != (remainder < 0)));
  real_t whole = __builtin_floor_real(quotient);
  whole += (real_t)(quotient - whole > (real_t)0.5);
  whole = quotient == 0 ? __builtin_copysign_real((real_t)0.0, a / b) : whole;
  return b == 0 ? a / b : whole;
}

// a - b * floor(a / b), with the sign of b; NaN for b = 0.
static inline real_t tf_remainder_real(real_t a, real_t b) {
  real_t remainder = tf_fmod_real(a, b);
  bits_t opposite = (bits_t)((b < 0) != (remainder < 0));
  real_t y = remainder + tf_from_bits_real(tf_bits_real(b) & -opposite); // no branch, which is half wrong
  return remainder == 0 ? __builtin_copysign_real((real_t)0.0, b) : y;
}
