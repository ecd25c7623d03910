// y = x @ W^T (TRANSPOSE) or x @ W with cooperative matrices: 16-bit x with
// rows aligned to 16 bytes; weights are rounded to 16 bits, sums are floats.
//
// WM x WN subgroups of SG invocations share a BM x BN tile. The next tile of x
// and of codes waits in registers and is dequantized on its way into shared
// memory, where eight items are a uvec4.
#define BK 32
#define WG (WM * WN * SG)
#ifdef T_IS_bf16
#define Item bfloat16_t
#else
#define Item float16_t
#endif

#define FM (BM / (16 * WM)) // fragments of a subgroup
#define FN (BN / (16 * WN))
#define PITCH_X (BK / 8 + 1) // in uvec4, one more against bank conflicts
#if TRANSPOSE
#define ROWS_W BN
#define WIDTH_W (BK / 8)
#define LAYOUT_W gl_CooperativeMatrixLayoutColumnMajor
#else
#define ROWS_W BK
#define WIDTH_W (BN / 8)
#define LAYOUT_W gl_CooperativeMatrixLayoutRowMajor
#endif
#define PITCH_W (WIDTH_W + 1)
#define LOADS_X (BM * BK / 8 / WG)
// An invocation takes runs of 16 weights, which share a scale.
#define RUNS (BN * BK / 16 / WG)

#define MATRIX_X coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define MATRIX_W coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define MATRIX_Y                                                              \
  coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>

layout(local_size_x = WG) in;

shared uvec4 tile_x[BM * PITCH_X];
shared uvec4 tile_w[ROWS_W * PITCH_W];
shared float stage[WM * WN * 256];
#include "quant/tile.glsl"

uvec4 next_x[LOADS_X];
uvec2 next_codes[2 * RUNS];
float next_scale[RUNS];
float next_bias[RUNS];

uint pack2(float a, float b) {
#ifdef T_IS_bf16
  // Not bf16vec2(): which way that rounds is the driver's choice.
  return uint(f32_to_bf16(a)) | (uint(f32_to_bf16(b)) << 16);
#else
  return packHalf2x16(vec2(a, b));
#endif
}

void fetch(uint m0, uint begin, uint end, uint n0, uint k0) {
  uint t = gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < LOADS_X; ++i) {
    uint e = t + i * WG;
    uint m = m0 + e / (BK / 8);
    uint k = k0 + e % (BK / 8) * 8u;
    next_x[i] = uvec4(0);
    if (m >= begin && m < end && k < A.K) {
      int64_t at = x_item(m) + int64_t(k);
      next_x[i] = Ptr_u32x4(uint64_t(x_base) + uint64_t(at * 2)).v[0];
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
  [[unroll]] for (uint i = 0; i < LOADS_X; ++i) {
    uint e = t + i * WG;
    tile_x[e / (BK / 8) * PITCH_X + e % (BK / 8)] = next_x[i];
  }
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
    tile_w[e / WIDTH_W * PITCH_W + e % WIDTH_W] = q;
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
  MATRIX_Y acc[FM * FN];
  [[unroll]] for (uint i = 0; i < FM * FN; ++i) {
    acc[i] = MATRIX_Y(0.0);
  }
  fetch(m0, begin, end, n0, 0u);
  for (uint k0 = 0; k0 < A.K; k0 += BK) {
    barrier();
    stash();
    barrier();
    if (k0 + BK < A.K) {
      fetch(m0, begin, end, n0, k0 + BK);
    }
    [[unroll]] for (uint kk = 0; kk < BK; kk += 16) {
      MATRIX_X x[FM];
      MATRIX_W w;
      [[unroll]] for (uint i = 0; i < FM; ++i) {
        coopMatLoad(
            x[i], tile_x, (wm * FM + i) * 16 * PITCH_X + kk / 8, PITCH_X,
            gl_CooperativeMatrixLayoutRowMajor);
      }
      [[unroll]] for (uint j = 0; j < FN; ++j) {
        uint c = (wn * FN + j) * 16;
#if TRANSPOSE
        uint at = c * PITCH_W + kk / 8;
#else
        uint at = kk * PITCH_W + c / 8;
#endif
        coopMatLoad(w, tile_w, at, PITCH_W, LAYOUT_W);
        [[unroll]] for (uint i = 0; i < FM; ++i) {
          acc[i * FN + j] = coopMatMulAdd(x[i], w, acc[i * FN + j]);
        }
      }
    }
  }

  // Fragments go one by one through the subgroup's own corner of shared
  // memory: where their elements lie is not known otherwise.
  uint corner = gl_SubgroupID * 256;
  [[unroll]] for (uint i = 0; i < FM; ++i) {
    [[unroll]] for (uint j = 0; j < FN; ++j) {
      subgroupMemoryBarrierShared();
      subgroupBarrier();
      coopMatStore(
          acc[i * FN + j], stage, corner, 16,
          gl_CooperativeMatrixLayoutRowMajor);
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
