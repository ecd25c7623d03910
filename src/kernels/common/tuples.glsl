// Where an index tuple (common/indices.glsl) points. Include after
// common/args.glsl.
#ifndef TUPLES_GLSL
#define TUPLES_GLSL

// The offset along the indexed axes of the array. With UPDATES, `update` moves
// to the tuple's place in the updates.
int64_t tuple_offset(UIndex tuple, inout int64_t update) {
  int64_t offset = 0;
#if NIDX > 0
  int64_t at[NIDX];
  for (int n = 0; n < NIDX; ++n) {
    at[n] = 0;
  }
  for (int d = TUPLE_NDIM - 1; d >= 0; --d) {
    int64_t here = int64_t(TAKE_AXIS(d, tuple, UIndex(A.index_shape[d])));
#ifdef UPDATES
    update += here * A.update_tuple_strides[d];
#endif
    for (int n = 0; n < NIDX; ++n) {
      at[n] += here * A.index_strides[n * I_NDIM + d];
    }
  }
  for (int n = 0; n < NIDX; ++n) {
    int64_t k = wrap_index(load(I_PTR(A.index[n]), at[n]), A.axis_sizes[n]);
    offset += k * A.axis_strides[n];
  }
#endif
  return offset;
}

#endif
