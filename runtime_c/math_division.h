// Remainders of divisions, exact: subtracting a multiple of the divisor, whose quotient is off by at
// most one, leaves what has no more bits than the operands.

// r less a multiple of the divisor: from -divisor to 2 divisor, where r / divisor is below 2^51.
static inline double tf_less_multiple_double(double r, double divisor, double inverse) {
  return __builtin_fma(-__builtin_floor(r * inverse), divisor, r);
}

// The remainder of a / b rounded towards zero, with the sign of a. Quotients have up to 277 bits.
static inline float tf_fmod_float(float a, float b) {
  double divisor = __builtin_fabs((double)b);
  double inverse = 1.0 / divisor;
  double r = __builtin_fabs((double)a);
  r = tf_less_multiple_double(r, divisor * 0x1p+250, inverse * 0x1p-250);
  r = tf_less_multiple_double(r, divisor * 0x1p+200, inverse * 0x1p-200);
  r = tf_less_multiple_double(r, divisor * 0x1p+150, inverse * 0x1p-150);
  r = tf_less_multiple_double(r, divisor * 0x1p+100, inverse * 0x1p-100);
  r = tf_less_multiple_double(r, divisor * 0x1p+50, inverse * 0x1p-50);
  r = tf_less_multiple_double(r, divisor, inverse);
  r = r < 0.0 ? r + divisor : r;
  r = r >= divisor ? r - divisor : r;
  float y = __builtin_copysignf((float)r, a);
  return ((divisor == __builtin_inf()) & (__builtin_fabsf(a) < __builtin_inff())) ? a : y;
}

// The remainder of a / b rounded towards zero, with the sign of a: 52 bits of the quotient a turn.
static inline double tf_fmod_double(double a, double b) {
  double divisor = __builtin_fabs(b);
  double r = __builtin_fabs(a);
  if (!((divisor > 0.0) & (r < __builtin_inf()))) return __builtin_nan("");
  while (r >= divisor) {
    int32_t shift = tf_frexp_exponent_double(r) - tf_frexp_exponent_double(divisor) - 51;
    double multiple = tf_ldexp_double(divisor, shift > 0 ? shift : 0);
    r = __builtin_fma(-__builtin_trunc(r / multiple), multiple, r);
    r = r < 0.0 ? r + multiple : r;
  }
  return __builtin_copysign(r, a);
}
