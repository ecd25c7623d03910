// Tiled matrix product, y = alpha * a b + beta * c, for any strides: see gemm.h
// and tile.glsl. With PREFETCH the next pair of tiles is fetched into registers
// while the present one is used.
#include "gemm/product.glsl"
#include "gemm/tile.glsl"
#include "gemm/prefetch.glsl"
#if VA || VB
#include "gemm/vec.glsl"
#endif

#if !PREFETCH
shared Acc tile_y[BM * BN];
#endif

Acc item_a(uint r, uint k) {
  Acc x = ZERO;
  if (r < A.m && k < k_end) {
    x = load(base_a, Index(r) * A.a_row + Index(k) * A.a_col);
  }
  return x;
}
Acc item_b(uint k, uint c) {
  Acc x = ZERO;
  if (c < A.n && k < k_end) {
    x = load(base_b, Index(k) * A.b_row + Index(c) * A.b_col);
  }
  return x;
}

#if PREFETCH
void fetch(uint row0, uint col0, uint k0) {
#if VA
  [[unroll]] for (uint i = 0; i < LOADS_A; i += 4) {
    uint e = own_item(i, VA);
    uint r = row0 + row_a(e), k = k0 + k_a(e);
    vec4 q = vec4(0.0);
    if (r < A.m && k < k_end) {
      q = load4(base_a, Index(r) * A.a_row + Index(k) * A.a_col);
    }
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      next_a[i + j] = q[j];
    }
  }
#else
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    uint e = own_item(i, VA);
    next_a[i] = item_a(row0 + row_a(e), k0 + k_a(e));
  }
#endif
#if VB
  [[unroll]] for (uint i = 0; i < LOADS_B; i += 4) {
    uint e = own_item(i, VB);
    uint k = k0 + k_b(e), c = col0 + col_b(e);
    vec4 q = vec4(0.0);
    if (c < A.n && k < k_end) {
      q = load4(base_b, Index(k) * A.b_row + Index(c) * A.b_col);
    }
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      next_b[i + j] = q[j];
    }
  }
#else
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    uint e = own_item(i, VB);
    next_b[i] = item_b(k0 + k_b(e), col0 + col_b(e));
  }
#endif
}
#endif

void put_tile(uint row0, uint col0) {
  Y_PTR y = y_matrix();
#if PREFETCH
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    [[unroll]] for (uint j = 0; j < TN; ++j) {
      uint r = row0 + own_row(i), c = col0 + own_col(j);
      if (r < A.m && c < A.n) {
        put(y, r, c, acc[i * TN + j]);
      }
    }
  }
#else
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    [[unroll]] for (uint j = 0; j < TN; ++j) {
      tile_y[own_row(i) * BN + own_col(j)] = acc[i * TN + j];
    }
  }
  barrier();
  [[dont_unroll]] for (uint e = gl_LocalInvocationIndex; e < BM * BN;
                       e += THREADS) {
    uint r = row0 + e / BN, c = col0 + e % BN;
    if (r < A.m && c < A.n) {
      put(y, r, c, tile_y[e]);
    }
  }
#endif
}

void multiply(uint tile) {
  uvec2 at = tile_at(tile);
  uint row0 = at.x * BM, col0 = at.y * BN;
  clear_acc();
#if PREFETCH
  fetch(row0, col0, k_begin);
#endif
  for (uint k0 = k_begin; k0 < k_end; k0 += BK) {
    barrier();
#if PREFETCH
    stash();
#else
    stage_tiles(row0, col0, k0);
#endif
    barrier();
#if PREFETCH
    if (k0 + BK < k_end) {
      fetch(row0, col0, k0 + BK);
    }
#endif
    ROLLED for (uint k = 0; k < BK; ++k) {
      multiply_k(k);
    }
  }
  put_tile(row0, col0);
}
