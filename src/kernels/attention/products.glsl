// Products of matrices of known element layout (common/fragments.glsl), loaded
// from STAGED 16-byte pieces in shared memory. EMULATED uses float arithmetic
// from tests/emulation. SUBGROUPS: subgroups per workgroup.
#pragma once

#include "attention/matrices.glsl"
#include "common/matrix_elements.glsl"

shared uvec4 staged[STAGED];

#if EMULATED
#include "attention/emulated_products.glsl"
#else
#define EVERY_SUBGROUP(some) some
// Loads the matrix that starts at 16-byte piece `at` of `staged`, with rows
// `pitch` pieces apart.
#define LOAD_A(m, at, pitch) coopMatLoad(m, staged, at, pitch, ROW_MAJOR)
#define LOAD_B(m, at, pitch) coopMatLoad(m, staged, at, pitch, ROW_MAJOR)
#define LOAD_B_TRANSPOSED(m, at, pitch)                                       \
  coopMatLoad(m, staged, at, pitch, COLUMN_MAJOR)
#endif

#include "attention/fragments.glsl"
