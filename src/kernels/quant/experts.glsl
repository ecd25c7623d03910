// Operand access of qmv_experts.comp, in place of operands.glsl's. A workgroup
// computes the same PART outputs of PARTS products and collects them in shared
// memory for the epilogue.
#pragma once

#include "quant/rounded.glsl"

#if GATE == GATE_NONE
#define PARTS EXPERTS
#else
#define PARTS 2
#endif
#define PART (BLOCK / PARTS)

shared float parts[PARTS][PART];
uint own_part; // part of the current pass

#define outputs() A.N
#define locate(product)
// Each pass multiplies a product of its own, so x is located per pass.
#define X_OF_ALL(rows, tile)
#define X_OF_PASS(rows) rows[0] = x_base;

uint index_of(
    uint64_t indices, int64_t strides[2], uint inner, uint b, uint matrices) {
  int64_t at = int64_t(b / inner) * strides[0] + int64_t(b % inner) * strides[1];
  return named(load(Ptr_u32(indices), at), matrices, b, y_inside);
}

// Locates the operands of product b of set s.
void locate_expert(uint s, uint b) {
  uint inner = A.sets[s].inner;
  y_inside = true;
  uint r = index_of(
      A.sets[s].rhs, A.sets[s].rhs_strides, inner, b, A.sets[s].w_matrices);
  uint l = index_of(
      A.sets[s].lhs, A.sets[s].lhs_strides, inner, b, A.x_matrices);
  x_base = MOVED(T, T_PTR(A.x), int64_t(l) * A.x_matrix);
  w_base = MOVED(WORD, Ptr_u32(A.sets[s].w), int64_t(r) * A.w_matrix);
  scale_base =
      MOVED(SCALE, SCALE_PTR(A.sets[s].scales), int64_t(r) * A.scale_matrix);
  y_factor = 1.0;
#if SIDE == SIDE_BIASES
  bias_base = MOVED(T, T_PTR(A.sets[s].side), int64_t(r) * A.side_matrix);
#elif SIDE == SIDE_GLOBAL
  y_factor =
      load(Ptr_f32(A.sets[s].side), int64_t(r) * A.side_matrix) / GLOBAL_UNIT;
#endif
}

// tile.product is the product of the gate, or the row whose EXPERTS products
// are mixed.
Tile own_tile() {
  uint group = min(group_index(), A.groups - 1u);
  return Tile(
      0u,
      group % A.n_tiles,
      group / A.n_tiles,
      group_index() < A.groups);
}

uint first_output(Tile tile, uint o) {
  own_part = o / PART;
#if GATE == GATE_NONE
  locate_expert(0u, tile.product * EXPERTS + own_part);
#else
  locate_expert(own_part, tile.product);
#endif
  return tile.n * PART + o % PART;
}

void store_y(bool live, uint m, uint n, float sum) {
  parts[own_part][n % PART] = ROUNDED(Y_ITEM(sum));
}

#if GATE == GATE_NONE

// Weights output n of product `e` of a row, held in column i of `parts`.
void weight_part(uint row, uint n, uint e, uint i) {
  uint64_t product = uint64_t(row) * EXPERTS + e;
  float y = parts[e][i];
  precise float scaled = y * load(T_PTR(A.weights), product);
  parts[e][i] = ROUNDED(scaled);
  // A.weighted may alias y.
  store(T_PTR(A.sets[0].y), product * A.N + n, y);
  store(T_PTR(A.weighted), product * A.N + n, scaled);
}

void mix_parts(uint row, uint n, uint i) {
  float mixed = 0.0;
  for (uint e = 0; e < EXPERTS; ++e) { // in the order of reduce.comp
    mixed = mixed + parts[e][i];
  }
  uint64_t at = uint64_t(row) * A.N + n;
  if (A.addend == 0ul) {
    store(T_PTR(A.mixed), at, mixed);
  } else {
    // A.sum may alias the addend or A.mixed.
    precise float total = ROUNDED(mixed) + load(T_PTR(A.addend), at);
    store(T_PTR(A.mixed), at, mixed);
    store(T_PTR(A.sum), at, total);
  }
}

void finish(Tile tile) {
  barrier();
  for (uint j = gl_LocalInvocationIndex; j < PARTS * PART; j += WG) {
    uint n = tile.n * PART + j % PART;
    if (tile.live && n < A.N) {
      weight_part(tile.product, n, j / PART, j % PART);
    }
  }
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < PART; i += WG) {
    uint n = tile.n * PART + i;
    if (tile.live && n < A.N) {
      mix_parts(tile.product, n, i);
    }
  }
}

#else

void finish(Tile tile) {
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < PART; i += WG) {
    uint n = tile.n * PART + i;
    if (tile.live && n < A.N) {
      float gate = parts[0][i], up = parts[1][i];
      uint64_t at = uint64_t(tile.product) * A.N + n;
      float gated = silu_gate(gate, up);
      // A.gated may alias gate or up.
      store(T_PTR(A.sets[0].y), at, gate);
      store(T_PTR(A.sets[1].y), at, up);
      store(T_PTR(A.gated), at, gated);
    }
  }
}

#endif
