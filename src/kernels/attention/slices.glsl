// Products of BQ rows of a and BK rows of b, SLICE columns at a time through
// shared memory. Invocation (tx, ty) of WG = 16 x 8 owns BQ / 8 rows of a and
// BK / 16 rows of b. VEC: a and b are aligned to four items. The including
// kernel may enlarge POOL.
#pragma once

#include "gemm/vec.glsl"

#define WG 128
#define SLICE 32
#if defined(QUADS) && QUADS
#define STEP 4 // columns at a time
#define NOT_UNROLLED [[dont_unroll]]
#else
#define STEP 8
#define NOT_UNROLLED
#endif
#define PITCH (SLICE + 1) // padded against bank conflicts
#define RQ (BQ / 8)
#define RK (BK / 16)
#define B_BASE (BQ * PITCH)
#define SLICE_ITEMS ((BQ + BK) * PITCH)
#ifndef POOL
#define POOL SLICE_ITEMS
#endif
shared float pool[POOL];

#define TX (gl_LocalInvocationIndex % 16)
#define TY (gl_LocalInvocationIndex / 16)

// Rows of items with stride `pitch`.
struct Rows {
  uint64_t x;
  int64_t pitch;
  uint first, end;
};

// Loads `rows` rows of `columns` columns from d0 on, times `factor`, to
// pool[to] with stride `pitch`; zero beyond the end of `from` and column `dim`.
void fetch(
    uint to,
    uint rows,
    uint columns,
    uint pitch,
    Rows from,
    uint d0,
    uint dim,
    float factor) {
#if VEC
  for (uint i = gl_LocalInvocationIndex; i < rows * columns / 4; i += WG) {
    uint r = i / (columns / 4);
    uint d = i % (columns / 4) * 4;
    vec4 y = vec4(0.0);
    if (from.first + r < from.end && d0 + d < dim) {
      y = factor *
          load4(
              T_PTR(from.x),
              int64_t(from.first + r) * from.pitch + int64_t(d0 + d));
    }
    [[unroll]] for (uint e = 0; e < 4; ++e) {
      pool[to + r * pitch + d + e] = y[e];
    }
  }
#else
  for (uint i = gl_LocalInvocationIndex; i < rows * columns; i += WG) {
    uint r = i / columns;
    uint d = i % columns;
    float y = 0.0;
    if (from.first + r < from.end && d0 + d < dim) {
      y = factor *
          load(
              T_PTR(from.x),
              int64_t(from.first + r) * from.pitch + int64_t(d0 + d));
    }
    pool[to + r * pitch + d] = y;
  }
#endif
}

// acc += factor a b^T over `dim` columns.
void multiply(
    inout float acc[RQ * RK],
    Rows a,
    Rows b,
    uint dim,
    float factor) {
  for (uint d0 = 0; d0 < dim; d0 += SLICE) {
    barrier();
    fetch(0, BQ, SLICE, PITCH, a, d0, dim, factor);
    fetch(B_BASE, BK, SLICE, PITCH, b, d0, dim, 1.0);
    barrier();
    // Slices hold zeros beyond `dim`.
    NOT_UNROLLED for (uint d8 = 0; d8 < SLICE; d8 += STEP) {
      [[unroll]] for (uint e = 0; e < STEP; ++e) {
        float x[RQ];
        float y[RK];
        [[unroll]] for (uint i = 0; i < RQ; ++i) {
          x[i] = pool[(TY * RQ + i) * PITCH + d8 + e];
        }
        [[unroll]] for (uint j = 0; j < RK; ++j) {
          y[j] = pool[B_BASE + (j * 16 + TX) * PITCH + d8 + e];
        }
        [[unroll]] for (uint i = 0; i < RQ; ++i) {
          [[unroll]] for (uint j = 0; j < RK; ++j) {
            acc[i * RK + j] = fma(x[i], y[j], acc[i * RK + j]);
          }
        }
      }
    }
  }
}
