// Row reductions of scores and weights in matrices of known element layout.
#ifndef ATTENTION_FRAGMENTS_GLSL
#define ATTENTION_FRAGMENTS_GLSL

#include "attention/matrices.glsl"
#include "common/fragments.glsl"

// Reduces over the four lanes that share a row.
#define OVER_COLUMNS(NAME, COMBINE)                                           \
  float NAME(float x) {                                                       \
    x = COMBINE(x, subgroupShuffleXor(x, 1));                                 \
    return COMBINE(x, subgroupShuffleXor(x, 2));                              \
  }
#define ADDED(x, y) ((x) + (y))
OVER_COLUMNS(max_over_columns, max)
OVER_COLUMNS(sum_over_columns, ADDED)

#endif
