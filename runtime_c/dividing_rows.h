// Rows of elements divided by one number, as exactly as one by one.

// to[k] = from[k] / divisor. A product with the inverse, corrected by what it leaves, is the quotient
// rounded once (P. W. Markstein, Computation of Elementary Functions on the IBM RISC System/6000
// Processor, 1990), as long as nothing on the way is too large or too small for its exponent. So the
// sizes are looked at as well: zeros are divided so, what is below 2^-100 or above 2^100 is not.
static inline void tf_divide_row_float(float *restrict to, const float *restrict from, long extent, float divisor) {
  const float inverse = 1.0f / divisor, negative = -inverse;
  uint32_t least = 0xffffffffu, largest = 0;
  for (long k = 0; k < extent; k++) {
    const uint32_t size = tf_bits_float(from[k]) & 0x7fffffffu;
    least = size - 1 < least ? size - 1 : least;
    largest = size > largest ? size : largest;
    const float quotient = from[k] * inverse;
    to[k] = __builtin_fmaf(__builtin_fmaf(divisor, quotient, -from[k]), negative, quotient);
  }
  if (!(divisor > 0x1p-24f && divisor < 0x1p+24f && least >= 0x0d7fffffu && largest <= 0x71800000u))
    for (long k = 0; k < extent; k++)
      to[k] = from[k] / divisor;
}
