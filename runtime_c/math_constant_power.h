// Powers of constant exponents, written for real_t, as scalar_float.h: a few multiplications, divisions
// and roots, of which each is off by half a unit in the last place at most. No intermediate result
// leaves the range where the power does not. A root of -infinity is NaN, where its power is not.

// x^3.
static inline real_t tf_power_3_real(real_t x) { return x * x * x; }

// x^4.
static inline real_t tf_power_4_real(real_t x) {
  real_t square = x * x;
  return square * square;
}

// x^-2.
static inline real_t tf_power_minus_2_real(real_t x) {
  real_t inverse = (real_t)1.0 / x;
  return inverse * inverse;
}

// x^(3/2).
static inline real_t tf_power_3_halves_real(real_t x) {
  real_t power = x * __builtin_sqrt_real(x);
  return x == -__builtin_inf_real() ? __builtin_inf_real() : power;
}

// x^(-1/2).
static inline real_t tf_power_minus_half_real(real_t x) {
  real_t power = x == 0 ? __builtin_inf_real() : (real_t)1.0 / __builtin_sqrt_real(x);
  return x == -__builtin_inf_real() ? (real_t)0.0 : power;
}

// x^(-3/2), without the rounding errors of the inverse and the root.
static inline real_t tf_power_minus_3_halves_real(real_t x) {
  real_t inverse = (real_t)1.0 / x;
  real_t root = __builtin_sqrt_real(x);
  real_t power = inverse / root;
  real_t error = __builtin_fma_real(-x, inverse, (real_t)1.0);
  error -= (real_t)0.5 * inverse * __builtin_fma_real(-root, root, x);
  power = ((power > 0) & (power < __builtin_inf_real())) ? __builtin_fma_real(power, error, power) : power;
  return x == -__builtin_inf_real() ? (real_t)0.0 : power;
}
