// Vectors of LANES elements of item_t, which C compilers hold in registers.

// The same in every lane.
static inline vector_t tf_splat_vector(item_t value) {
  return value - (vector_t){0};
}

// Multiplied by itself in every lane.
static inline vector_t tf_square_vector(vector_t value) {
  return value * value;
}
