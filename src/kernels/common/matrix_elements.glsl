// Matrices by their lanes' elements: those of the device, or the same made of
// floats in shared memory, for a test of the indices where the device has none
// (EMULATED). SUBGROUPS: of the workgroup.
#ifndef MATRIX_ELEMENTS_GLSL
#define MATRIX_ELEMENTS_GLSL

#include "common/fragments.glsl"

// The bits of an element's number: which tells its row of A (column of B, row of
// C), and which its item of k, the lower and the upper.
#define ROW_BIT_A (PLACE_A(5) >= 4 ? 0 : PLACE_A(6) >= 4 ? 1 : 2)
#define LOW_BIT_A (ROW_BIT_A == 0 ? 1 : 0)
#define HIGH_BIT_A (ROW_BIT_A == 2 ? 1 : 2)
#define COLUMN_BIT_B (PLACE_B(5) < 4 ? 0 : PLACE_B(6) < 4 ? 1 : 2)
#define FIRST_BIT_B (COLUMN_BIT_B == 0 ? 1 : 0)
#define SECOND_BIT_B (COLUMN_BIT_B == 2 ? 1 : 2)
// In the order in which A has them.
#define SAME_ORDER (PLACE_B(5 + FIRST_BIT_B) == PLACE_A(5 + LOW_BIT_A) + 4)
#define LOW_BIT_B (SAME_ORDER ? FIRST_BIT_B : SECOND_BIT_B)
#define HIGH_BIT_B (SAME_ORDER ? SECOND_BIT_B : FIRST_BIT_B)
#define ROW_BIT_C (PLACE_C(5) >= 4 ? 0 : PLACE_C(6) >= 4 ? 1 : 2)
#define LOW_BIT_C (ROW_BIT_C == 0 ? 1 : 0)
#define HIGH_BIT_C (ROW_BIT_C == 2 ? 1 : 2)

// The element of row r of the lane's two and its item 2 * p + i of four.
#define ELEMENT_A(r, p, i)                                                    \
  ((r) << ROW_BIT_A | (p) << HIGH_BIT_A | (i) << LOW_BIT_A)
#define ELEMENT_B(r, p, i)                                                    \
  ((r) << COLUMN_BIT_B | (p) << HIGH_BIT_B | (i) << LOW_BIT_B)
#define ELEMENT_C(r, c)                                                       \
  ((r) << ROW_BIT_C | ((c) >> 1) << HIGH_BIT_C | ((c) & 1) << LOW_BIT_C)

#if EMULATED
#include "common/emulated_fragments.glsl"
#else
#define UNROLL [[unroll]]
#include "common/matrices.glsl"
#define LANE gl_SubgroupInvocationID
#define SUBGROUP gl_SubgroupID
#define MATRIX_ZERO MATRIX_C(0.0)
#define MATRIX_ONES MATRIX_A(Item(1.0))
#define MULTIPLY(y, a, b, c) y = coopMatMulAdd(a, b, c)
#ifdef T_IS_bf16
#define ITEMS_OF(pair) uintBitsToBFloat16EXT(unpack16(pair))
#else
#define ITEMS_OF(pair) unpackFloat2x16(pair)
#endif
#define LOW_ITEM(pair) ITEMS_OF(pair).x
#define HIGH_ITEM(pair) ITEMS_OF(pair).y
#endif

#define SET_PAIR(matrix, ELEMENT, r, p, pair)                                 \
  matrix[ELEMENT(r, p, 0)] = LOW_ITEM(pair);                                  \
  matrix[ELEMENT(r, p, 1)] = HIGH_ITEM(pair);

// Items of element e of lane 0, and of a lane's element 0.
uint element_item(uint layout_, uint e) {
  return BIT(e, 0) << PLACE(layout_, 5) | BIT(e, 1) << PLACE(layout_, 6) |
      BIT(e, 2) << PLACE(layout_, 7);
}
uint lane_item(uint layout_) {
  uint item = 0;
  [[unroll]] for (uint i = 0; i < 5; ++i) {
    item |= BIT(LANE, i) << PLACE(layout_, i);
  }
  return item;
}
// Which quarter of a block's items of k the lane has.
uint lane_quarter() {
  uint quarter = 0, at = 0;
  [[unroll]] for (uint i = 0; i < 5; ++i) {
    if (PLACE_A(i) < 4) {
      quarter |= BIT(LANE, i) << at;
      ++at;
    }
  }
  return quarter;
}

#endif
