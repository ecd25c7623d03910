// Cooperative matrices of the shape chosen by the host (vk/matrix_units.h), for
// kernels that do not know the element layout. The kernel defines WG, its
// workgroup size, before including this file.
//
// EMULATED_MATRICES uses floats in shared memory (sources in tests/emulation),
// with which tests check the indices of each shape on devices without it.
#pragma once

#include "common/matrices.glsl"

#define ITEMS_C (MM * MN)
#define ELEMENTS_C (ITEMS_C / SG) // elements per lane

#if EMULATED_MATRICES
#include "common/emulated_matrices.glsl"
#else
#define UNROLL [[unroll]]
#define LANE gl_SubgroupInvocationID
#define SUBGROUP gl_SubgroupID
#define MATRIX_ZERO MATRIX_C(0.0)
#define LOAD_A(m, from, at, pitch, layout) coopMatLoad(m, from, at, pitch, layout)
#define LOAD_B(m, from, at, pitch, layout) coopMatLoad(m, from, at, pitch, layout)
#define LOAD_C(m, from, at, pitch) coopMatLoad(m, from, at, pitch, ROW_MAJOR)
// All items of row i are from[at + i].
#define LOAD_ROWS(m, from, at) coopMatLoad(m, from, at, 0, COLUMN_MAJOR)
#define STORE_C(m, to, at, pitch) coopMatStore(m, to, at, pitch, ROW_MAJOR)
#define STORE_C4(m, to, at, pitch) coopMatStore(m, to, at, pitch, ROW_MAJOR)
#define MULTIPLY_ADD(y, a, b) y = coopMatMulAdd(a, b, y)
#define MULTIPLY_ELEMENTS(y, by) y = y * by
// Sums that are kept in registers. Intel's compiler (ANV's) copies or spills
// those that constants or elements make instead of products.
#if SG < 32
#define HOLD_SUM(y) y = coopMatMulAdd(MATRIX_A(Item(0)), MATRIX_B(Item(0)), y);
#define BEGIN_SUM(y)                                                          \
  y = coopMatMulAdd(MATRIX_A(Item(0)), MATRIX_B(Item(0)), MATRIX_ZERO);
#else
#define BEGIN_SUM(y) y = MATRIX_ZERO;
#endif
#define WAIT_SUBGROUP subgroupBarrier();
#define SYNC_SUBGROUP                                                         \
  subgroupMemoryBarrierShared();                                              \
  subgroupBarrier();
#endif
