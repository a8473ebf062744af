// Floating-point values as keys to sort by, written for real_t: tinyfuse pastes what a program uses,
// with float or double for real_t and uint32_t or uint64_t for bits_t, of BITS.

// A key that is in the same order: one for both zeros, and one above all others for every NaN.
static inline bits_t tf_order_real(real_t x) {
  bits_t bits = tf_bits_real(x), sign = (bits_t)1 << (BITS - 1);
  bits_t key = bits & sign ? ~bits : bits | sign;
  key = x == 0 ? sign : key;
  return x != x ? (bits_t)-1 : key;
}

// Stores the values that the sorted keys of a row stand for. Behind the n keys there is room for as
// many: for the zeros of the row, whose signs stay in their order.
static inline void tf_put_sorted_real(const real_t *row, real_t *to, bits_t *keys, long n) {
  bits_t sign = (bits_t)1 << (BITS - 1), *zeros = keys + n, negative = 0;
  for (long i = 0; i < n; i++)
    negative |= tf_bits_real(row[i]) == sign;
  long count = 0;
  if (negative)
    for (long i = 0; i < n; i++)
      if (row[i] == 0) zeros[count++] = tf_bits_real(row[i]);
  for (long i = 0; i < n; i++) {
    bits_t key = keys[i];
    to[i] = tf_from_bits_real(key & sign ? key ^ sign : ~key);
  }
  if (negative)
    for (long i = 0, zero = 0; zero < count; i++)
      if (keys[i] == sign) to[i] = tf_from_bits_real(zeros[zero++]);
}
