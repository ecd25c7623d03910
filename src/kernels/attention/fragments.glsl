// Where a lane's elements of A and C matrices lie in scores and weights.
#ifndef ATTENTION_FRAGMENTS_GLSL
#define ATTENTION_FRAGMENTS_GLSL

#include "attention/matrices.glsl"
#include "common/fragments.glsl"

#ifndef LANE
#define LANE gl_SubgroupInvocationID
#endif

// Items of element e of lane 0, e known when unrolled, and of a lane's element 0.
#define ELEMENT_ITEM(e)                                                       \
  (BIT(e, 0) << PLACE_C(5) | BIT(e, 1) << PLACE_C(6) | BIT(e, 2) << PLACE_C(7))
uint lane_item() {
  uint l = LANE;
  return BIT(l, 0) << PLACE_C(0) | BIT(l, 1) << PLACE_C(1) |
      BIT(l, 2) << PLACE_C(2) | BIT(l, 3) << PLACE_C(3) |
      BIT(l, 4) << PLACE_C(4);
}
#define ROW(e) ((lane_item() | ELEMENT_ITEM(e)) >> 4)
#define COLUMN(e) ((lane_item() | ELEMENT_ITEM(e)) & 15u)

// A lane has ROWS rows; which of them an element is of, and one of its elements.
#define ROW_BIT(bit) (PLACE_C(bit) >= 4 ? 1 : 0)
#define ROWS (1 << (ROW_BIT(5) + ROW_BIT(6) + ROW_BIT(7)))
#define WHICH_ROW(e)                                                          \
  (ROW_BIT(5) * BIT(e, 0) + (ROW_BIT(6) * BIT(e, 1) << ROW_BIT(5)) +          \
   (ROW_BIT(7) * BIT(e, 2) << (ROW_BIT(5) + ROW_BIT(6))))
#define ELEMENT_OF(r)                                                         \
  (ROW_BIT(5) * BIT(r, 0) + (ROW_BIT(6) * BIT(r, ROW_BIT(5)) << 1) +          \
   (ROW_BIT(7) * BIT(r, ROW_BIT(5) + ROW_BIT(6)) << 2))

// The bit of e that tells an even column from the odd one after it.
#define PAIR (PLACE_C(5) == 0 ? 1u : PLACE_C(6) == 0 ? 2u : 4u)

// Lanes hold the same items of A as of C: which element of A one of C is.
#define A_BIT(bit)                                                            \
  (PLACE_A(5) == PLACE_C(bit)       ? 0                                       \
       : PLACE_A(6) == PLACE_C(bit) ? 1                                       \
                                    : 2)
#define A_ELEMENT(e)                                                          \
  (BIT(e, 0) << A_BIT(5) | BIT(e, 1) << A_BIT(6) | BIT(e, 2) << A_BIT(7))

// Of a value a lane, among the lanes of its row.
#define OVER_COLUMNS(NAME, COMBINE)                                           \
  float NAME(float x) {                                                       \
    [[unroll]] for (uint i = 0; i < 5; ++i) {                                 \
      if (PLACE_C(i) < 4) {                                                   \
        x = COMBINE(x, subgroupShuffleXor(x, 1u << i));                       \
      }                                                                       \
    }                                                                         \
    return x;                                                                 \
  }
#define ADDED(x, y) ((x) + (y))
OVER_COLUMNS(max_over_columns, max)
OVER_COLUMNS(sum_over_columns, ADDED)

#endif
