// Floating-point values as signed integers to sort by, of BITS: written for real_t, float or double.

// An integer in the same order: one for both zeros, and the greatest for every NaN.
static inline signed_t tf_rank_real(real_t x) {
  signed_t bits = (signed_t)tf_bits_real(x + (real_t)0.0), greatest = (signed_t)(~(bits_t)0 >> 1);
  return x != x ? greatest : bits ^ (bits >> (BITS - 1) & greatest);
}

// The ranks of n elements. Returns whether there is a -0.
static inline int tf_rank_row_real(const real_t *row, signed_t *ranks, long n) {
  bits_t negative = 0;
  for (long i = 0; i < n; i++) {
    negative |= tf_bits_real(row[i]) == (bits_t)1 << (BITS - 1);
    ranks[i] = tf_rank_real(row[i]);
  }
  return negative != 0;
}

// Stores the values that the sorted ranks of a row stand for; `to` may be the row. `zeros` has room
// for as many: for the zeros of the row where there is a -0, for their signs stay in their order.
static inline void tf_put_ranked_real(const real_t *row, real_t *to, const signed_t *ranks, signed_t *zeros, long n, int negative) {
  signed_t greatest = (signed_t)(~(bits_t)0 >> 1);
  long count = 0;
  if (negative)
    for (long i = 0; i < n; i++)
      if (row[i] == 0) zeros[count++] = (signed_t)tf_bits_real(row[i]);
  for (long i = 0; i < n; i++)
    to[i] = tf_from_bits_real((bits_t)(ranks[i] ^ (ranks[i] >> (BITS - 1) & greatest)));
  if (negative)
    for (long i = 0, zero = 0; zero < count; i++)
      if (ranks[i] == 0) to[i] = tf_from_bits_real((bits_t)zeros[zero++]);
}
