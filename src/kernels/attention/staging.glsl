// Copies of ROWS_ rows of DIM items from memory to shared memory in 16-byte
// pieces: FETCH_ROWS loads the invocation's pieces into registers, STAGE_ROWS
// stores them from piece `at` of `staged` on.
#pragma once

#include "common/constants.glsl"

#ifndef UNROLL
#define UNROLL [[unroll]]
#endif

#define PIECES(ROWS_, DIM) ((ROWS_ * (DIM / 8) + WG - 1) / WG)
#define IS_PIECE(e, ROWS_, DIM)                                               \
  (ROWS_ * (DIM / 8) % WG == 0 || e < ROWS_ * (DIM / 8))
#define FETCH_ROWS(next, ROWS_, DIM, x, pitch, first, end)                    \
  REQUIRE(next.length() * WG >= ROWS_ * DIM / 8 && DIM % 8 == 0)              \
  UNROLL for (uint i = 0; i < PIECES(ROWS_, DIM); ++i) {                      \
    uint e = gl_LocalInvocationIndex + i * WG;                                \
    if (IS_PIECE(e, ROWS_, DIM)) {                                            \
      next[i] = fetch(x, pitch, (first) + e / (DIM / 8), e % (DIM / 8), end); \
    }                                                                         \
  }
#define STAGE_ROWS(next, ROWS_, DIM, at)                                      \
  REQUIRE(staged.length() >= ROWS_ * (DIM / 8 + 1))                           \
  UNROLL for (uint i = 0; i < PIECES(ROWS_, DIM); ++i) {                      \
    uint e = gl_LocalInvocationIndex + i * WG;                                \
    if (IS_PIECE(e, ROWS_, DIM)) {                                            \
      staged[at + e / (DIM / 8) * (DIM / 8 + 1) + e % (DIM / 8)] = next[i];   \
    }                                                                         \
  }
