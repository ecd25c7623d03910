// Operands of quantized products: x (.., M, K), the codes, scales and biases of
// a weight matrix, and y (.., M, N) row-contiguous; and their addresses for one
// product of a batch.
#pragma once

#include "common/bounds.glsl"
#include "common/index.glsl"
#include "quant/dequant.glsl"
#ifdef BY_EXPERTS
#include "quant/experts.h"
#define ARGS_BLOCK ExpertArgs
#elif defined(FUSED)
#include "quant/fused.h"
#define ARGS_BLOCK FusedMatvecArgs
#else
#include "quant/product.h"
#define ARGS_BLOCK ProductArgs
#endif
#include "common/args.glsl"

// Addresses of this workgroup's product; uniform in the workgroup.
T_PTR x_base;
Ptr_u32 w_base;
SCALE_PTR scale_base;
#if SIDE == SIDE_BIASES
T_PTR bias_base;
#endif
#ifndef FUSED
T_PTR y_base;
#endif
float y_factor;
#if defined(BY_EXPERTS) || BATCH == BATCH_GATHER
bool y_inside; // false if an index is out of range: y is then 0
#define ROW_ITEM(inside, sum) ((inside) ? (sum) * y_factor : 0.0)
#else
#define ROW_ITEM(inside, sum) ((sum) * y_factor)
#endif
#define Y_ITEM(sum) ROW_ITEM(y_inside, sum)

// A workgroup's tile. Workgroups beyond the last tile recompute it and store
// nothing.
struct Tile {
  uint m, n, product;
  bool live;
};

#ifdef BY_EXPERTS
#include "quant/experts.glsl"
#elif defined(FUSED)
#include "quant/fused.glsl"
#else
// Sets the address of a matrix of w, from offsets in items.
void locate_weights(int64_t w, int64_t scale, int64_t side) {
  w_base = MOVED(WORD, A.w, w);
  scale_base = MOVED(SCALE, A.scales, scale);
  y_factor = 1.0;
#if SIDE == SIDE_BIASES
  bias_base = MOVED(T, A.biases, side);
#elif SIDE == SIDE_GLOBAL
  y_factor = load(A.global_scale, side) / GLOBAL_UNIT;
#endif
}

#if BATCH == BATCH_GATHER
// Locates the matrix of w named by index r, which is at position `at`; x and y
// are not offset.
void locate_matrix(uint r, uint at) {
  y_inside = true;
  r = named(r, A.stack.w_matrices, at, y_inside);
  x_base = A.x;
  y_base = A.y;
  locate_weights(
      int64_t(r) * A.stack.w_matrix,
      int64_t(r) * A.stack.scale_matrix,
      int64_t(r) * A.stack.side_matrix);
}
#endif

// Locates the operands of product b of the batch.
void locate(uint b) {
  int64_t at[4] = int64_t[4](0L, 0L, 0L, 0L);
#if BATCH != BATCH_ONE
  uint rest = b;
  for (int d = A.stack.ndim - 1; d >= 0; --d) {
    int64_t i = int64_t(take_axis(rest, uint(A.stack.shape[d])));
    [[unroll]] for (int o = 0; o < (BATCH == BATCH_GATHER ? 2 : 4); ++o) {
      at[o] += i * A.stack.strides[o][d];
    }
  }
#endif
#if BATCH == BATCH_GATHER
  locate_matrix(load(A.rhs, at[1]), b);
  uint l = named(load(A.lhs, at[0]), A.stack.x_matrices, b, y_inside);
  x_base = MOVED(T, x_base, int64_t(l) * A.stack.x_matrix);
#else
  x_base = MOVED(T, A.x, at[0]);
  locate_weights(at[1], at[2], at[3]);
#endif
  y_base = MOVED(T, A.y, int64_t(b) * (int64_t(A.M) * A.N));
}

Tile own_tile() {
  uint group = min(group_index(), A.groups - 1u);
  uint rest = group / A.n_tiles;
  return Tile(
      rest % A.m_tiles,
      group % A.n_tiles,
      rest / A.m_tiles,
      group_index() < A.groups);
}

void store_y(bool live, uint m, uint n, float sum) {
  if (live && m < A.M && n < A.N) {
    store(y_base, uint64_t(m) * A.N + n, Y_ITEM(sum));
  }
}
#endif

#ifndef BY_EXPERTS
T_PTR x_row(uint m) {
  return MOVED(T, x_base, int64_t(m) * A.x_row);
}
#endif

// code_row(): codes of a row of w, which has `items` items. group_of(): group
// of item `at` of the row.
Ptr_u32 code_row(uint row, uint items) {
  return MOVED(WORD, w_base, int64_t(row) * (items / 16u * BITS / 2u));
}
uint64_t group_of(uint row, uint items, uint at) {
  return uint64_t(row) * (items / GROUP) + at / GROUP;
}

#if SIDE == SIDE_BIASES
#define load_bias(group) load(bias_base, group)
#define WEIGHT(code, scale, bias) ((scale) * code_value(code) + (bias))
#else
#define load_bias(group) 0.0
#define WEIGHT(code, scale, bias) ((scale) * code_value(code))
#endif
