// Operand access of qmv_fused.comp and qmm_fragments_fused.comp, in place of
// operands.glsl's: several weight sets, residual additions, and a gate of two
// sets. All outputs of the separate kernels are written, with the same
// rounding.
#pragma once

#include "quant/rounded.glsl"

uint own_set; // set of the current pass
// Macros, so that values are read at their use and occupy no registers across
// the loops.
#define outputs() A.sets[own_set].N
#define own_y() T_PTR(A.sets[own_set].y)
#define locate(product)

void locate_set(uint s) {
  own_set = s;
  w_base = Ptr_u32(A.sets[s].w);
  scale_base = SCALE_PTR(A.sets[s].scales);
  y_factor = 1.0;
#if SIDE == SIDE_BIASES
  bias_base = T_PTR(A.sets[s].side);
#elif SIDE == SIDE_GLOBAL
  y_factor = load(Ptr_f32(A.sets[s].side), 0) / GLOBAL_UNIT;
#endif
}

#if NORM
#include "quant/fused_norm.glsl"
#endif

Tile own_tile() {
  uint group = min(group_index(), A.groups - 1u);
#if NORM
  norm_row(group_index() == 0u);
#endif
  uint n = group / A.m_tiles;
  uint s = 0u;
#if GATE == GATE_NONE
  for (uint next = 1u; next < SETS; ++next) {
    if (s + 1u == next && next < A.set_count && n >= A.sets[s].tiles) {
      n -= A.sets[s].tiles;
      s = next;
    }
  }
#endif
  locate_set(s);
  x_base = T_PTR(A.x);
  return Tile(group % A.m_tiles, n, 0u, group_index() < A.groups);
}

#if GATE == GATE_NONE

#define first_output(tile, o) (tile.n * BLOCK + (o))
#define finish(tile)

void store_y(bool live, uint m, uint n, float sum) {
  if (live && m < A.M && n < outputs()) {
    float y = ROUNDED(sum * y_factor);
    uint64_t at = uint64_t(m) * outputs() + n;
    T_PTR addend = T_PTR(A.sets[own_set].addend);
    if (uint64_t(addend) == 0ul) {
      store(own_y(), at, y);
    } else {
      // The sum may alias y or the addend.
      precise float total = y + load(addend, at);
      store(own_y(), at, y);
      store(T_PTR(A.sets[own_set].sum), at, total);
    }
  }
}

#else

void store_gated(bool live, uint m, uint n, float gate, float up) {
  if (live && m < A.M && n < A.sets[0].N) {
    gate = ROUNDED(gate);
    up = ROUNDED(up);
    float gated = silu_gate(gate, up);
    uint64_t at = uint64_t(m) * A.sets[0].N + n;
    // A.gated may alias gate or up.
    store(T_PTR(A.sets[0].y), at, gate);
    store(T_PTR(A.sets[1].y), at, up);
    store(T_PTR(A.gated), at, gated);
  }
}

#ifndef BOTH_SETS_AT_ONCE
// A workgroup computes the same BLOCK / 2 outputs of both sets, one set after
// the other.
#define HALF (BLOCK / 2)
shared float pairs[BLOCK * ROWS];

uint first_output(Tile tile, uint o) {
  locate_set(o / HALF);
  return tile.n * HALF + o % HALF;
}

void store_y(bool live, uint m, uint n, float sum) {
  pairs[(own_set * HALF + n % HALF) * ROWS + m % ROWS] = sum * y_factor;
}

void finish(Tile tile) {
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < HALF * ROWS; i += WG) {
    store_gated(
        tile.live,
        tile.m * ROWS + i % ROWS,
        tile.n * HALF + i / ROWS,
        pairs[i],
        pairs[HALF * ROWS + i]);
  }
}
#endif

#endif
