// Products of a few dozen rows of a with a matrix b stored along k, with
// cooperative matrices. Bound by memory bandwidth: b is read once.
//
// A workgroup computes 16 FM x 16 FN WN items of y. Its WK parts alternate over
// DEPTH units of 64 items of k and are summed at the end; the WN subgroups of a
// part share its rows of a. The next units are prefetched into registers; halves
// of a unit pass through shared memory, in two chunks of 16 items.
//
// The kernel defines the functions that are declared here; CHUNK_OF(c, s), chunk
// c of half s; and k_end. SCALED_SUMS: END_CHUNK(c, s) or END_UNIT(d), after a
// chunk and a unit, adds `sums`, and with SUMS_OF_A those of a, to `acc`.
#include "common/matrices.glsl"
#include "common/constants.glsl"

#define WG (WN * WK * SG)
#define PART (WN * SG) // invocations that share a tile of a
#define UNIT 64
#define BM (16 * FM)
#define ROWS (16 * FN) // rows of b's transpose per subgroup
#define BN (ROWS * WN)

// Sizes are in uvec4 of eight items. One uvec4 per chunk row and four before the
// second chunk avoid bank conflicts.
#define PITCH 3
#define CHUNK_A (BM * PITCH + 4)
#define CHUNK_B (ROWS * PITCH + 4)
#define LOADS_A (BM * 8 / PART) // uvec4 per unit; half of them per half unit

layout(local_size_x = WG) in;

shared uvec4 tile_a[WK * 2 * CHUNK_A];
shared uvec4 tile_b[WN * WK * 2 * CHUNK_B];
shared float stage[WN * WK * 256];

uvec4 next_a[DEPTH][LOADS_A];
uint lane, part, column; // in the subgroup; the part; the subgroup in the part
uint m0, n0; // first row and column of y of the subgroup
uint own_a, own_b; // start of its tiles in shared memory

MATRIX_C acc[FM * FN];
#if SCALED_SUMS
MATRIX_C sums[FM * FN]; // sums of one group
MATRIX_C a_sums[FM];
#define PRODUCTS sums
#else
#define PRODUCTS acc
#endif
#ifndef END_CHUNK
#define END_CHUNK(c, s)
#endif
#ifndef END_UNIT
#define END_UNIT(d)
#endif

uint64_t row_address(uint m); // of a; the last one's beyond it
void fetch_b(uint d, uint k0); // loads unit d of b, zero from k_end on
void stash_b(uint d, uint s); // stores its half s to the subgroup's tile_b
void store_sum(uint m, uint n, float sum);

// Sets this subgroup's place in the tile of y at (m, n).
void place(uint m, uint n) {
  lane = gl_SubgroupInvocationID;
  column = gl_SubgroupID % WN;
  part = gl_SubgroupID / WN;
  own_a = part * 2 * CHUNK_A;
  own_b = gl_SubgroupID * 2 * CHUNK_B;
  m0 = m;
  n0 = n + column * ROWS;
}

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
  uint row = (t + i % (loads / 2) * many) / 4, c = t / 2 % 2;
  return Load(
      row,
      CHUNK_OF(c, i / (loads / 2)) * 16 + t % 2 * 8,
      c * chunk + row * PITCH + t % 2);
}
#define LOAD_OF_A(i) load_of(i, LOADS_A, column * SG + lane, PART, CHUNK_A)

uvec4 eight(uint64_t row, uint k) {
  uvec4 q = uvec4(0);
  if (k < k_end) {
    q = Ptr_u32x4(row + uint64_t(k) * 2).v[0];
  }
  return q;
}

void fetch(uint d, uint k0) {
  fetch_b(d, k0);
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    Load l = LOAD_OF_A(i);
    next_a[d][i] = eight(row_address(m0 + l.row), k0 + l.k);
  }
}

void stash(uint d, uint s) {
  REQUIRE(next_a[0].length() * PART == BM * UNIT / 8 && LOADS_A % 2 == 0)
  REQUIRE(PART % 4 == 0)
  stash_b(d, s);
  [[unroll]] for (uint i = 0; i < LOADS_A / 2; ++i) {
    uvec4 q = next_a[d][s * (LOADS_A / 2) + i];
#if SCALED_SUMS
    q = item_pairs(q);
#endif
    tile_a[own_a + LOAD_OF_A(i).slot] = q;
  }
}

// Multiplies chunk c of the half unit in shared memory.
void multiply_chunk(uint c) {
  MATRIX_A a[FM];
  [[unroll]] for (uint i = 0; i < FM; ++i) {
    uint at = own_a + c * CHUNK_A + i * 16 * PITCH;
    coopMatLoad(a[i], tile_a, at, PITCH, ROW_MAJOR);
#if SUMS_OF_A
    a_sums[i] = coopMatMulAdd(a[i], MATRIX_B(Item(1.0)), a_sums[i]);
#endif
  }
  [[unroll]] for (uint j = 0; j < FN; ++j) {
    MATRIX_B b;
    uint at = own_b + c * CHUNK_B + j * 16 * PITCH;
    coopMatLoad(b, tile_b, at, PITCH, COLUMN_MAJOR);
    [[unroll]] for (uint i = 0; i < FM; ++i) {
      PRODUCTS[i * FN + j] = coopMatMulAdd(a[i], b, PRODUCTS[i * FN + j]);
    }
  }
}

// acc += the product from k_begin to k_end. A part takes DEPTH consecutive units
// at a time. All parts iterate equally often; units beyond k_end are zero.
void multiply_units(uint k_begin) {
  uint k0 = k_begin + part * (UNIT * DEPTH);
  [[unroll]] for (uint d = 0; d < DEPTH; ++d) {
    fetch(d, k0 + d * UNIT);
  }
  for (uint k = k_begin; k < k_end; k += UNIT * DEPTH * WK) {
    k0 += UNIT * DEPTH * WK;
    [[unroll]] for (uint d = 0; d < DEPTH; ++d) {
      [[unroll]] for (uint s = 0; s < 2; ++s) {
        sync();
        stash(d, s);
        sync();
        if (s == 1) {
          fetch(d, k0 + d * UNIT);
        }
        [[unroll]] for (uint c = 0; c < 2; ++c) {
          multiply_chunk(c);
          END_CHUNK(c, s)
        }
      }
      END_UNIT(d)
    }
  }
}

// Adds the parts of k, one fragment of each subgroup at a time through shared
// memory, because the element layout is unknown.
void store_sums() {
  [[unroll]] for (uint f = 0; f < FM * FN; ++f) {
    barrier();
    coopMatStore(acc[f], stage, gl_SubgroupID * 256, 16, ROW_MAJOR);
    barrier();
    for (uint e = gl_LocalInvocationIndex; e < WN * 256; e += WG) {
      float sum = 0.0;
      [[unroll]] for (uint p = 0; p < WK; ++p) {
        sum += stage[p * WN * 256 + e];
      }
      uint m = m0 + f / FN * 16 + e % 256 / 16;
      uint n = n0 + (e / 256 - column) * ROWS + f % FN * 16 + e % 16;
      store_sum(m, n, sum);
    }
  }
}
