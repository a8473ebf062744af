// Conversions of numbers of 16 bits, which arrays hold as their bits: float16_t with 5 bits of
// exponent and 10 of mantissa, bfloat16_t, the upper half of a float. Rounded to nearest, ties to
// even. NaN becomes the quiet one of its sign. C compilers make vectors of all of them.

// A float16_t as a float, which has all of its values: its bits where those of a float stand, times
// what the exponents are apart, which is exact also where the first is subnormal.
static inline float tf_float_of_float16(float16_t half) {
  uint32_t bits = ((uint32_t)(int16_t)half << 13) & 0x8fffe000u;
  uint32_t scaled = tf_bits_float(tf_from_bits_float(bits) * 0x1p112f);
  uint32_t special = (bits & 0x0f800000u) == 0x0f800000u ? 0x7f800000u : 0u; // infinity, and NaN
  return tf_from_bits_float(scaled | special);
}

// The nearest float16_t; 65520 and above are infinity.
static inline float16_t tf_float16_of_float(float value) {
  uint32_t bits = tf_bits_float(value) & 0x7fffffffu;
  uint32_t sign = (tf_bits_float(value) >> 16) & 0x8000u;
  uint32_t tiny = tf_bits_float(tf_from_bits_float(bits) + 0.5f) - 0x3f000000u; // units of 2^-24
  uint32_t rounded = (bits - 0x38000000u + 0xfffu + ((bits >> 13) & 1u)) >> 13;
  uint32_t half = bits < 0x38800000u ? tiny : rounded;
  half = bits < 0x47800000u ? half : 0x7c00u;
  half = bits <= 0x7f800000u ? half : 0x7e00u;
  return (float16_t)(half | sign);
}

// The nearest float16_t of a double: rounded once, by way of a float that is rounded to odd.
static inline float16_t tf_float16_of_double(double value) {
  float nearest = (float)value;
  uint32_t bits = tf_bits_float(nearest);
  double back = (double)nearest;
  uint32_t beyond = __builtin_fabs(back) > __builtin_fabs(value); // bits are one too many
  uint32_t odd = (bits - beyond) | 1u;
  return tf_float16_of_float(tf_from_bits_float(back == value || value != value ? bits : odd));
}

// A bfloat16_t as a float.
static inline float tf_float_of_bfloat16(bfloat16_t half) {
  return tf_from_bits_float((uint32_t)half << 16);
}

// The nearest bfloat16_t.
static inline bfloat16_t tf_bfloat16_of_float(float value) {
  uint32_t bits = tf_bits_float(value);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  uint32_t quiet = 0x7fc0u | ((bits >> 16) & 0x8000u);
  return (bfloat16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

// What tensor cores multiply, as floats: the nearest number with 10 bits after the point.
static inline float tf_nearest_tf32_float(float value) {
  uint32_t bits = tf_bits_float(value);
  uint32_t rounded = (bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u;
  return tf_from_bits_float((bits & 0x7f800000u) == 0x7f800000u ? bits : rounded);
}

// The nearest bfloat16_t.
static inline float tf_nearest_bfloat16_float(float value) {
  return tf_float_of_bfloat16(tf_bfloat16_of_float(value));
}

// The nearest float16_t.
static inline float tf_nearest_float16_float(float value) {
  return tf_float_of_float16(tf_float16_of_float(value));
}
