// Tiled matrix product y = alpha * a b + beta * c for any strides (gemm.h,
// tile.glsl). PREFETCH loads the next pair of tiles into registers while the
// current one is used.
#include "gemm/product.glsl"
#include "gemm/tile.glsl"
#include "gemm/prefetch.glsl"

#if !PREFETCH
shared Acc tile_y[BM * BN];
#endif

Acc item_a(uint r, uint k) {
  Acc x = ZERO;
  if (r < A.M && k < k_end) {
    x = load(base_a, Index(r) * A.a_row + Index(k) * A.a_col);
  }
  return x;
}
Acc item_b(uint k, uint c) {
  Acc x = ZERO;
  if (c < A.N && k < k_end) {
    x = load(base_b, Index(k) * A.b_row + Index(c) * A.b_col);
  }
  return x;
}

#if PREFETCH
#include "gemm/load_piece.glsl"

// Loads without branches, at clamped addresses. Excess rows and columns are not
// stored, and stash() zeroes items beyond k.
#define FETCH(next, LOADS, VEC, NAME)                                         \
  [[unroll]] for (uint i = 0; i < LOADS; i += (VEC != 0 ? PIECE : 1)) {       \
    NAME(next, i, own_item(i, VEC))                                           \
  }
#define FETCH_A(next, i, e)                                                   \
  uint r = min(row0 + row_a(e), A.M - (VA != 0 && A_T != 0 ? PIECE : 1));     \
  uint k = min(k0 + k_a(e), A.K - (VA != 0 && A_T == 0 ? PIECE : 1));         \
  LOAD(VA, next, i, base_a, Index(r) * A.a_row + Index(k) * A.a_col)
#define FETCH_B(next, i, e)                                                   \
  uint k = min(k0 + k_b(e), A.K - (VB != 0 && B_T != 0 ? PIECE : 1));         \
  uint c = min(col0 + col_b(e), A.N - (VB != 0 && B_T == 0 ? PIECE : 1));     \
  LOAD(VB, next, i, base_b, Index(k) * A.b_row + Index(c) * A.b_col)
#define LOAD(VEC, next, i, from, at)                                          \
  if (VEC != 0) {                                                             \
    next[i / PIECE] = load_piece(from, at);                                   \
  } else {                                                                    \
    ITEM(next, i) = load(from, at);                                           \
  }

// Tiles inside both matrices need only a start address and steps.
#define INSIDE (VA != 0 && VB != 0)
#if INSIDE
struct TileSteps {
  uint64_t first; // address of the invocation's first piece at k = 0
  int64_t k, piece; // bytes between k's, and between its pieces
};
TileSteps steps_a, steps_b;

void start_steps(uint row0, uint col0) {
  uint e = own_item(0, 1);
  Index at_a = Index(row0 + row_a(e)) * A.a_row + Index(k_a(e)) * A.a_col;
  Index at_b = Index(k_b(e)) * A.b_row + Index(col0 + col_b(e)) * A.b_col;
  steps_a.first = uint64_t(MOVED(T, base_a, at_a));
  steps_b.first = uint64_t(MOVED(T, base_b, at_b));
  steps_a.k = int64_t(A.a_col) * T_SIZE;
  steps_b.k = int64_t(A.b_row) * T_SIZE;
  steps_a.piece = A_T != 0 ? steps_a.k * (PIECE * THREADS / BM)
                          : int64_t(A.a_row) * (T_SIZE * PIECE * THREADS / BK);
  steps_b.piece = B_T == 0 ? steps_b.k * (PIECE * THREADS / BN)
                          : int64_t(A.b_col) * (T_SIZE * PIECE * THREADS / BK);
}
#define FETCH_INSIDE(next, LOADS, steps)                                      \
  [[unroll]] for (uint i = 0; i < LOADS / PIECE; ++i) {                       \
    uint64_t at = steps.first + uint64_t(int64_t(k0) * steps.k);              \
    next[i] = load_piece(T_PTR(at + uint64_t(int64_t(i) * steps.piece)), 0);  \
  }
#else
void start_steps(uint row0, uint col0) {}
#define FETCH_INSIDE(next, LOADS, steps)
#endif

void fetch(uint row0, uint col0, uint k0, bool inside) {
  if (inside) {
    FETCH_INSIDE(next_a, LOADS_A, steps_a)
    FETCH_INSIDE(next_b, LOADS_B, steps_b)
  } else {
    FETCH(next_a, LOADS_A, VA, FETCH_A)
    FETCH(next_b, LOADS_B, VB, FETCH_B)
  }
}

// Sums over k from `begin` to `end`. `inside` is a constant, so that full tiles
// have their own loop without edge arithmetic.
void sum_part(uint row0, uint col0, uint begin, uint end, bool inside) {
  if (begin < end) { // uniform
    fetch(row0, col0, begin, inside);
  }
  for (uint k0 = begin; k0 < end; k0 += BK) {
    barrier();
    stash(inside, end - k0);
    barrier();
    uint next = k0 + BK;
    if (next < end) {
      fetch(row0, col0, next, inside);
    }
    [[unroll]] for (uint k = 0; k < BK; ++k) {
      multiply_k(k);
    }
  }
}

void sum_tiles(uint row0, uint col0) {
  uint inside_end = k_begin;
  if (INSIDE && k_begin < k_end && row0 + BM <= A.M && col0 + BN <= A.N) {
    inside_end += (k_end - k_begin) / BK * BK;
    start_steps(row0, col0);
    sum_part(row0, col0, k_begin, inside_end, true);
  }
  sum_part(row0, col0, inside_end, k_end, false);
}

// Whether y and c have whole pieces, aligned.
bool whole_pieces(Y_PTR y) {
  bool whole = A.N % PIECE == 0 && uint64_t(y) % (PIECE * Y_SIZE) == 0;
#if AXPBY
  whole = whole && A.c_col == 1 && A.c_row % PIECE == 0 &&
      uint64_t(base_c) % (PIECE * T_SIZE) == 0;
#endif
  return whole;
}
void put_piece(Y_PTR y, uint r, uint c, Piece v) {
  Index at = Y_AT(r, c);
#if AXPBY
  v = A.alpha * v +
      A.beta * load_piece(base_c, Index(r) * A.c_row + Index(c));
#endif
#if SPLIT && BY_QUADS
  Ptr_f32x4(uint64_t(y) + item_index(at) * 4).v[0] = v;
#else
  store_piece(y, at, v);
#endif
}

void put_tile(uint row0, uint col0) {
  Y_PTR y = y_matrix();
  bool whole = whole_pieces(y);
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    [[unroll]] for (uint j = 0; j < TN; j += PIECE) {
      uint r = row0 + own_row(i), c = col0 + own_col(j);
      if (whole) {
        if (r < A.M && c < A.N) {
          Piece v;
          [[unroll]] for (uint q = 0; q < PIECE; ++q) {
            v[q] = acc[i * TN + j + q];
          }
          put_piece(y, r, c, v);
        }
      } else {
        [[unroll]] for (uint q = 0; q < PIECE; ++q) {
          if (r < A.M && c + q < A.N) {
            put(y, r, c + q, acc[i * TN + j + q]);
          }
        }
      }
    }
  }
}
#else
void sum_tiles(uint row0, uint col0) {
  for (uint k0 = k_begin; k0 < k_end; k0 += BK) {
    barrier();
    stage_tiles(row0, col0, k0);
    barrier();
    [[dont_unroll]] for (uint k = 0; k < BK; ++k) {
      multiply_k(k);
    }
  }
}

void put_tile(uint row0, uint col0) {
  Y_PTR y = y_matrix();
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    [[unroll]] for (uint j = 0; j < TN; ++j) {
      tile_y[own_row(i) * BN + own_col(j)] = acc[i * TN + j];
    }
  }
  barrier();
  [[dont_unroll]] for (uint e = gl_LocalInvocationIndex; e < BM * BN;
                       e += THREADS) {
    uint r = row0 + e / BN, c = col0 + e % BN;
    if (r < A.M && c < A.N) {
      put(y, r, c, tile_y[e]);
    }
  }
}
#endif

void multiply(uint tile) {
  uvec2 at = banded(tile);
  uint row0 = at.x * BM, col0 = at.y * BN;
  clear_acc();
  sum_tiles(row0, col0);
  put_tile(row0, col0);
}
