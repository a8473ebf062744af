// Exponentials of rows of elements that lie below one number, with the bits of one by one.

// to[k] = e^(from[k] - top), of what is not above top. Where all results are normal, 2^n is added to the
// exponent, without a comparison; the sizes are looked at as well, and a row with any below e^-87, or
// with NaN, is computed again.
static inline void tf_exp_row_float(float *restrict to, const float *restrict from, long extent, float top) {
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
}
