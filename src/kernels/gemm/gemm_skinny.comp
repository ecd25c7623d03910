// Product of a few dozen rows with a matrix stored along k (a linear layer),
// using cooperative matrices. Bound by memory bandwidth: b is read once.
// Otherwise as gemm.comp; a is contiguous along k too, and both consist of
// aligned groups of eight items, none across an edge.
//
// A workgroup computes 16 FM x 16 FN WN items of y. Its WK parts alternate over
// units of 64 items of k and are summed at the end; the WN subgroups of a part
// share its rows of a. The next unit is prefetched into registers.
#include "gemm/product.glsl"
#include "common/matrices.glsl"
#include "common/constants.glsl"

#define WG (WN * WK * SG)
#define PART (WN * SG) // invocations that share a tile of a
#define UNIT 64
#define BM (16 * FM)
#define ROWS (16 * FN) // rows of b's transpose per subgroup
#define BN (ROWS * WN)

// A unit passes through shared memory in two halves of two chunks of 16 items;
// sizes are in uvec4 of eight items. One uvec4 per chunk row and four before
// the second chunk avoid bank conflicts.
#define PITCH 3
#define CHUNK_A (BM * PITCH + 4)
#define CHUNK_B (ROWS * PITCH + 4)
#define LOADS_A (BM * 8 / PART) // uvec4 per unit; half of them per half unit
#define LOADS_B (ROWS * 8 / SG)

layout(local_size_x = WG) in;

shared uvec4 tile_a[WK * 2 * CHUNK_A];
shared uvec4 tile_b[WN * WK * 2 * CHUNK_B];
shared float stage[WN * WK * 256];

uvec4 next_a[LOADS_A];
uvec4 next_b[LOADS_B];
uint part, column; // index of the part; of the subgroup in the part
uint row0, col0; // first row and column of y of the subgroup

MATRIX_C acc[FM * FN];

void sync() {
#if WN > 1
  barrier();
#else
  subgroupMemoryBarrierShared();
  subgroupBarrier();
#endif
}

// Load i of `loads` by invocation t of `many`: eight items of a row.
struct Load {
  uint row, k; // in the unit
  uint slot; // in the tile
};
Load load_of(uint i, uint loads, uint t, uint many, uint chunk) {
  uint e = t + i % (loads / 2) * many;
  uint half_of = i / (loads / 2);
  uint c = e / 2 % 2;
  return Load(
      e / 4,
      (2 * half_of + c) * 16 + e % 2 * 8,
      c * chunk + e / 4 * PITCH + e % 2);
}
#define LOAD_OF_A(i)                                                          \
  load_of(                                                                    \
      i, LOADS_A, column * SG + gl_SubgroupInvocationID, PART, CHUNK_A)
#define LOAD_OF_B(i) load_of(i, LOADS_B, gl_SubgroupInvocationID, SG, CHUNK_B)

uvec4 eight(T_PTR base, uint row, int64_t stride, uint k) {
  uvec4 q = uvec4(0);
  if (k < k_end) {
    int64_t at = int64_t(row) * stride + int64_t(k);
    q = Ptr_u32x4(uint64_t(base) + uint64_t(at * 2)).v[0];
  }
  return q;
}

void fetch(uint k0) {
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    Load l = LOAD_OF_B(i);
    next_b[i] =
        eight(base_b, min(col0 + l.row, A.n - 1), int64_t(A.b_col), k0 + l.k);
  }
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    Load l = LOAD_OF_A(i);
    next_a[i] =
        eight(base_a, min(row0 + l.row, A.m - 1), int64_t(A.a_row), k0 + l.k);
  }
}

void stash(uint s) {
  REQUIRE(next_a.length() * PART == BM * UNIT / 8 && LOADS_A % 2 == 0)
  REQUIRE(next_b.length() * SG == ROWS * UNIT / 8 && LOADS_B % 2 == 0)
  REQUIRE(PART % 4 == 0 && SG % 4 == 0)
  [[unroll]] for (uint i = 0; i < LOADS_B / 2; ++i) {
    uint at = gl_SubgroupID * 2 * CHUNK_B + LOAD_OF_B(i).slot;
    tile_b[at] = next_b[s * (LOADS_B / 2) + i];
  }
  [[unroll]] for (uint i = 0; i < LOADS_A / 2; ++i) {
    uint at = part * 2 * CHUNK_A + LOAD_OF_A(i).slot;
    tile_a[at] = next_a[s * (LOADS_A / 2) + i];
  }
}

// Multiplies chunk h of the half unit in shared memory.
void multiply_chunk(uint h) {
  MATRIX_A a[FM];
  [[unroll]] for (uint i = 0; i < FM; ++i) {
    uint at = (part * 2 + h) * CHUNK_A + i * 16 * PITCH;
    coopMatLoad(a[i], tile_a, at, PITCH, ROW_MAJOR);
  }
  [[unroll]] for (uint j = 0; j < FN; ++j) {
    MATRIX_B b;
    uint at = (gl_SubgroupID * 2 + h) * CHUNK_B + j * 16 * PITCH;
    coopMatLoad(b, tile_b, at, PITCH, COLUMN_MAJOR);
    [[unroll]] for (uint i = 0; i < FM; ++i) {
      acc[i * FN + j] = coopMatMulAdd(a[i], b, acc[i * FN + j]);
    }
  }
}

Y_PTR y;
#define STORE_SUM(r, c, sum)                                                  \
  if ((r) < A.m && (c) < A.n) {                                               \
    put(y, r, c, sum);                                                        \
  }
#include "gemm/skinny_sums.glsl"

void multiply(uint tile) {
  column = gl_SubgroupID % WN;
  part = gl_SubgroupID / WN;
  row0 = tile % A.tiles_m * BM;
  col0 = tile / A.tiles_m * BN + column * ROWS;
  [[unroll]] for (uint f = 0; f < FM * FN; ++f) {
    acc[f] = MATRIX_C(0.0);
  }
  // All parts iterate equally often; units beyond k are zero.
  uint k0 = k_begin + part * UNIT;
  fetch(k0);
  for (uint k = k_begin; k < k_end; k += UNIT * WK) {
    k0 += UNIT * WK;
    [[unroll]] for (uint s = 0; s < 2; ++s) {
      sync();
      stash(s);
      sync();
      if (s == 1) {
        fetch(k0);
      }
      [[unroll]] for (uint h = 0; h < 2; ++h) {
        multiply_chunk(h);
      }
    }
  }
  y = y_matrix();
  store_sums(row0, col0 - column * ROWS);
}
