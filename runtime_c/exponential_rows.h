// Exponentials of rows of elements that lie below one number, with the bits of one by one; and their
// quotients by another.

// to[k] = e^(from[k] - top), of what is not above top. Where all results are normal, 2^n is added to the
// exponent, without a comparison; the sizes are looked at as well, and a row with any below e^-87, or
// with NaN, is computed again. Returns twice the bits of the largest size.
static inline uint32_t tf_exp_row_float(float *restrict to, const float *restrict from, long extent, float top) {
  uint32_t largest = 0;
  for (long k = 0; k < extent; k++) {
    const float x = from[k] - top;
    const uint32_t size = tf_bits_float(x) << 1;
    largest = size > largest ? size : largest;
    const float t = __builtin_fmaf(x, 0x1.715476p+0f, 0x1.8p+23f); // n in its low bits
    const float n = t - 0x1.8p+23f;
    const float r = __builtin_fmaf(n, -0x1.7f7d1cp-20f, __builtin_fmaf(n, -0x1.62e4p-1f, x));
    to[k] = tf_from_bits_float(tf_bits_float(tf_exp_near_float(r)) + (tf_bits_float(t) << 23));
  }
  if (largest > 0x855c0000u) // twice the bits of 87
    for (long k = 0; k < extent; k++)
      to[k] = tf_exp_nonpositive_float(from[k] - top);
  return largest;
}

// The same of long rows. A function of its own has registers for all its numbers, which a kernel that
// calls it does not have beside those of its other loops.
static __attribute__((noinline)) uint32_t tf_exp_long_row_float(float *restrict to, const float *restrict from, long extent, float top) {
  return tf_exp_row_float(to, from, extent, top);
}

// row[k] = row[k] / divisor, of such exponentials, where `largest` is what was returned of them: none is
// below 2^-100, as a product with the inverse needs it that is corrected, if that is at most twice the
// bits of 69; else they are looked at, and zeros are divided so as well.
static __attribute__((noinline)) void tf_divide_exps_float(float *row, long extent, float divisor, uint32_t largest) {
  const float inverse = 1.0f / divisor, negative = -inverse;
  uint32_t least = 0xffffffffu;
  if (largest > 0x85140000u)
    for (long k = 0; k < extent; k++) {
      const uint32_t size = tf_bits_float(row[k]);
      least = size - 1 < least ? size - 1 : least;
    }
  if (divisor > 0x1p-24f && divisor < 0x1p+24f && least >= 0x0d7fffffu)
    for (long k = 0; k < extent; k++) {
      const float quotient = row[k] * inverse;
      row[k] = __builtin_fmaf(__builtin_fmaf(divisor, quotient, -row[k]), negative, quotient);
    }
  else
    for (long k = 0; k < extent; k++)
      row[k] = row[k] / divisor;
}
