// y = x @ W^T (TRANSPOSE) or x @ W with cooperative matrices: 16-bit x with
// rows aligned to 16 bytes; weights are rounded to 16 bits, sums are floats.
//
// The tiles are those of gemm/matrix_tile.glsl: x is a, the weights are b. The
// next tile of codes waits in registers and is dequantized on its way into
// shared memory.
#define A_T 0
#define B_T TRANSPOSE
#include "gemm/matrix_tile.glsl"
#include "quant/tile.glsl"

// An invocation takes runs of 16 weights, which share a scale.
#define RUNS (BN * BK / 16 / WG)
uvec2 next_codes[2 * RUNS];
float next_scale[RUNS];
float next_bias[RUNS];

void fetch(uint m0, uint begin, uint end, uint n0, uint k0) {
  uint t = gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    uint e = t + i * WG;
    uint m = m0 + e / (BK / 8);
    uint k = k0 + e % (BK / 8) * 8u;
    next_a[i] = uvec4(0);
    if (m >= begin && m < end && k < A.K) {
      int64_t at = x_item(m) + int64_t(k);
      next_a[i] = Ptr_u32x4(uint64_t(x_base) + uint64_t(at * 2)).v[0];
    }
  }
  [[unroll]] for (uint i = 0; i < RUNS; ++i) {
    Run run = weight_run(t + i * WG, 16, n0, k0);
    next_codes[2 * i] = uvec2(0);
    next_codes[2 * i + 1] = uvec2(0);
    next_scale[i] = 0.0;
    next_bias[i] = 0.0;
    if (run.inside) {
      Ptr_u32 words = code_row(run.row, W_ITEMS);
      uint64_t group = group_of(run.row, W_ITEMS, run.at);
      next_codes[2 * i] = load_codes8(words, run.at / 8u);
      next_codes[2 * i + 1] = load_codes8(words, run.at / 8u + 1u);
      next_scale[i] = load_scale(scale_base, group);
      next_bias[i] = load_bias(group);
    }
  }
}

void stash() {
  uint t = gl_LocalInvocationIndex;
  STASH(tile_a, next_a, LOADS_A, WIDTH_A)
  [[unroll]] for (uint i = 0; i < 2 * RUNS; ++i) {
    uint e = (t + i / 2 * WG) * 2 + i % 2;
    uvec4 q;
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      float a = code_value(code8(next_codes[i], 2 * c));
      float b = code_value(code8(next_codes[i], 2 * c + 1));
      q[c] = pack2(
          fma(next_scale[i / 2], a, next_bias[i / 2]),
          fma(next_scale[i / 2], b, next_bias[i / 2]));
    }
    tile_b[AT_PIECE(e, WIDTH_B)] = q;
  }
}

// A fragment that waits in the subgroup's corner of `stage`.
void store_fragment(
    uint corner, uint m0, uint n0, uint begin, uint end, bool live) {
  [[unroll]] for (uint e = 0; e < 256; e += 8 * SG) {
    uint at = e + gl_SubgroupInvocationID * 8;
    uint m = m0 + at / 16;
    uint n = n0 + at % 16;
    if (live && m >= begin && m < end && n < A.N) {
      uint64_t y_at = uint64_t(m) * A.N + n;
      if (A.N % 8u == 0) {
        uvec4 q;
        [[unroll]] for (uint c = 0; c < 4; ++c) {
          q[c] = pack2(
              stage[corner + at + 2 * c] * y_factor,
              stage[corner + at + 2 * c + 1] * y_factor);
        }
        Ptr_u32x4(uint64_t(y_base) + y_at * 2).v[0] = q;
      } else {
        for (uint c = 0; c < 8 && n + c < A.N; ++c) {
          store(y_base, y_at + c, stage[corner + at + c] * y_factor);
        }
      }
    }
  }
}

void multiply(uint m0, uint n0, uint begin, uint end, bool live) {
  uint wm = gl_SubgroupID % WM;
  uint wn = gl_SubgroupID / WM;
  MATRIX_C acc[FM * FN];
  CLEAR_FRAGMENTS(acc)
  fetch(m0, begin, end, n0, 0u);
  for (uint k0 = 0; k0 < A.K; k0 += BK) {
    barrier();
    stash();
    barrier();
    if (k0 + BK < A.K) {
      fetch(m0, begin, end, n0, k0 + BK);
    }
    MULTIPLY_TILES(acc, wm, wn)
  }

  // Fragments go one by one through the subgroup's own corner of shared
  // memory: where their elements lie is not known otherwise.
  uint corner = gl_SubgroupID * 256;
  [[unroll]] for (uint i = 0; i < FM; ++i) {
    [[unroll]] for (uint j = 0; j < FN; ++j) {
      subgroupMemoryBarrierShared();
      subgroupBarrier();
      coopMatStore(acc[i * FN + j], stage, corner, 16, ROW_MAJOR);
      subgroupMemoryBarrierShared();
      subgroupBarrier();
      uint m = m0 + (wm * FM + i) * 16;
      uint n = n0 + (wn * FN + j) * 16;
      store_fragment(corner, m, n, begin, end, live);
    }
  }
#if SORTED
  barrier();
#endif
}

void main() {
  Tile tile = own_tile();
  // Bands of eight tile rows, so that neighbouring groups share W in cache.
  uint i = tile.m * A.n_tiles + tile.n;
  uint band = i / (8u * A.n_tiles);
  uint band_rows = min(8u, A.m_tiles - band * 8u);
  uint in_band = i - band * 8u * A.n_tiles;
  multiply_tile(
      (band * 8u + in_band % band_rows) * BM,
      in_band / band_rows * BN,
      tile.product,
      tile.live);
}
