// Matrices accessed by the elements of each lane: cooperative matrices, or with
// EMULATED floats in shared memory (sources in tests/emulation), with which
// tests check indices on devices without them. SUBGROUPS: subgroups per
// workgroup.
#pragma once

#if EMULATED
#include "common/emulated_fragments.glsl"
#else
#define UNROLL [[unroll]]
#include "common/matrices.glsl"
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

#include "common/fragments.glsl"

// Sets pair p of the two in the lane's row r of an A matrix, or column r of a B
// matrix.
#define SET_PAIR(matrix, r, p, pair)                                          \
  matrix[ELEMENT(r, 2 * (p))] = LOW_ITEM(pair);                               \
  matrix[ELEMENT(r, 2 * (p) + 1)] = HIGH_ITEM(pair);
