// Convolution as an implicit matrix product: gemm.comp's loop over tiles
// gathered from x (gather.glsl). PREFETCH loads the next pair of tiles into
// registers while the current one is used.
#include "common/index.glsl"
#include "common/types.glsl"

#include "conv/product.h"
#define ARGS_BLOCK ConvProductArgs
#include "common/args.glsl"

#define A_T 0
#define B_T 1
#include "gemm/tile.glsl"
#include "conv/gather.glsl"
#include "gemm/prefetch.glsl"
#include "gemm/vec.glsl"

Acc item_a(uint r, uint k) {
  Tap t = tap_at(k);
  Acc x = ZERO;
  if (k < depth && is_inside(t, r - row0)) {
    x = load(base_x, item_of(t, r - row0));
  }
  return x;
}
Acc item_b(uint k, uint c) {
  Acc x = ZERO;
  if (c < group_outputs && k < depth) {
    x = load(base_w, Index(c) * Index(depth) + Index(k));
  }
  return x;
}

#if PREFETCH
#if VA
Tap own_tap;
#endif

void fetch(uint k0) {
  uint k = k0 + k_a(own_item(0, VA));
#if VA
  Tap t = own_tap;
  ADVANCE(own_tap, BK, BK / 4)
#else
  Tap t = tap_at(k);
#endif
  [[unroll]] for (uint i = 0; i < LOADS_A; i += (VA != 0 ? 4 : 1)) {
    uint r = row_a(own_item(i, VA));
    bool real = k < depth && is_inside(t, r);
#if VA
    next_a[i / 4] = vec4(0.0);
    if (real) {
      next_a[i / 4] = load4(base_x, int64_t(item_of(t, r)));
    }
#else
    ITEM(next_a, i) = ZERO;
    if (real) {
      ITEM(next_a, i) = load(base_x, item_of(t, r));
    }
#endif
  }
  [[unroll]] for (uint i = 0; i < LOADS_B; i += (VB != 0 ? 4 : 1)) {
    uint e = own_item(i, VB);
    uint kb = k0 + k_b(e), c = col0 + col_b(e);
#if VB
    next_b[i / 4] = vec4(0.0);
    if (c < group_outputs && kb < depth) {
      int64_t at = int64_t(c) * int64_t(depth) + int64_t(kb);
      next_b[i / 4] = load4(base_w, at);
    }
#else
    ITEM(next_b, i) = item_b(kb, c);
#endif
  }
}
#endif

void put_tile() {
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    [[unroll]] for (uint j = 0; j < TN; ++j) {
      uint r = row0 + own_row(i), c = col0 + own_col(j);
      if (r < rows && c < group_outputs) {
        int64_t at = int64_t(r) * int64_t(A.outputs) + int64_t(c);
        store(base_y, at, acc[i * TN + j]);
      }
    }
  }
}

void main() {
  if (find_tile()) { // uniform in the workgroup
    take_arguments();
    find_rows();
    barrier();
    clear_acc();
#if PREFETCH
#if VA
    own_tap = tap_at(k_a(own_item(0, VA)));
#endif
    fetch(0);
#endif
    for (uint k0 = 0; k0 < depth; k0 += BK) {
      barrier();
#if PREFETCH
      stash(true, BK);
#else
      stage_tiles(row0, col0, k0);
#endif
      barrier();
#if PREFETCH
      if (k0 + BK < depth) {
        fetch(k0 + BK);
      }
#endif
      ROLLED for (uint k = 0; k < BK; ++k) {
        multiply_k(k);
      }
    }
    put_tile();
  }
}
