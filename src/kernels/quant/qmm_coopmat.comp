// y = x @ W^T (TRANSPOSE) or x @ W with cooperative matrices, for 16-bit x with
// rows aligned to 16 bytes. Weights are rounded to 16 bits; sums are float32.
//
// Tiles are those of gemm/matrix_tile.glsl with a = x and b = weights. The next
// tile of codes is prefetched into registers and dequantized on its way to
// shared memory. FINITE_FIRST rounds weights of finite scales and biases to
// bfloat16 without tests for NaN.
#define A_T 0
#define B_T TRANSPOSE
#include "gemm/matrix_tile.glsl"
#include "quant/tile.glsl"
#include "gemm/store_rows.glsl"

#define INFINITE uintBitsToFloat(0x7f800000u)
// Each invocation loads runs of 16 weights, which share a scale.
#define RUNS (BN * BK / 16 / WG)
uvec2 next_codes[2 * RUNS];
float next_scale[RUNS];
float next_bias[RUNS];

// Addresses of the invocation's pieces of x and rows of weights. They are kept
// across the loop because the arguments may be in memory (common/args.glsl).
// Rows beyond the last repeat it and are not stored.
uint64_t from_x[LOADS_A];
#if TRANSPOSE
Ptr_u32 from_codes[RUNS];
uint64_t from_group[RUNS];
#endif

void set_addresses(uint m0, uint end, uint n0) {
  uint t = gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    uint m = min(m0 + (t + i * WG) / (BK / 8), end - 1u);
    from_x[i] = uint64_t(x_base) + uint64_t(x_item(m) * 2);
  }
#if TRANSPOSE
  [[unroll]] for (uint i = 0; i < RUNS; ++i) {
    uint row = min(n0 + (t + i * WG) / (BK / 16), A.N - 1u);
    from_codes[i] = code_row(row, A.K);
    from_group[i] = group_of(row, A.K, 0);
  }
#endif
}

void fetch(uint n0, uint k0, uint rows, uint items) {
  uint t = gl_LocalInvocationIndex;
  uint k_end = TRANSPOSE != 0 ? items : rows;
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    uint k = k0 + (t + i * WG) % (BK / 8) * 8u;
    next_a[i] = uvec4(0);
    if (k < k_end) {
      next_a[i] = Ptr_u32x4(from_x[i]).v[k / 8u];
    }
  }
  [[unroll]] for (uint i = 0; i < RUNS; ++i) {
    Run run = weight_run(t + i * WG, 16, n0, k0);
    next_codes[2 * i] = uvec2(0);
    next_codes[2 * i + 1] = uvec2(0);
    next_scale[i] = 0.0;
    next_bias[i] = 0.0;
#if TRANSPOSE
    if (run.at < items) {
      Ptr_u32 words = from_codes[i];
      uint64_t group = from_group[i] + run.at / GROUP;
#else
    if (run.row < rows && run.at < items) {
      Ptr_u32 words = code_row(run.row, items);
      uint64_t group = group_of(run.row, items, run.at);
#endif
      next_codes[2 * i] = load_codes8(words, run.at / 8u);
      next_codes[2 * i + 1] = load_codes8(words, run.at / 8u + 1u);
      next_scale[i] = load_scale(scale_base, group);
      next_bias[i] = load_bias(group);
    }
  }
}

// Eight weights of run i / 2.
#define DEQUANTIZE(q, i, PACK)                                                \
  [[unroll]] for (uint c = 0; c < 4; ++c) {                                   \
    float a = code_value(code8(next_codes[i], 2 * c));                        \
    float b = code_value(code8(next_codes[i], 2 * c + 1));                    \
    q[c] = PACK(                                                              \
        fma(next_scale[i / 2], a, next_bias[i / 2]),                          \
        fma(next_scale[i / 2], b, next_bias[i / 2]));                         \
  }

void stash() {
  uint t = gl_LocalInvocationIndex;
  STASH(tile_a, next_a, LOADS_A, WIDTH_A)
  REQUIRE(RUNS * WG * 2 / WIDTH_B * PITCH_B == tile_b.length())
  [[unroll]] for (uint i = 0; i < 2 * RUNS; ++i) {
    uint e = (t + i / 2 * WG) * 2 + i % 2;
    uvec4 q;
#if FINITE_FIRST
    // Codes are finite, so that no weight is NaN.
    if (abs(next_scale[i / 2]) + abs(next_bias[i / 2]) < INFINITE) {
      DEQUANTIZE(q, i, PACK2_NUMBERS)
    } else {
      DEQUANTIZE(q, i, pack2)
    }
#else
    DEQUANTIZE(q, i, pack2)
#endif
    tile_b[AT_PIECE(e, WIDTH_B)] = q;
  }
}

void multiply(uint m0, uint n0, uint end, bool live) {
  uint wm = SUBGROUP % WM;
  uint wn = SUBGROUP / WM;
  MATRIX_C acc[FM * FN];
  BEGIN_FRAGMENTS(acc)
  const uint depth = A.K, rows = W_ROWS, items = W_ITEMS;
  set_addresses(m0, end, n0);
  fetch(n0, 0u, rows, items);
  uint rows_inside = find_rows_inside(m0 + wm * FM * MM, end);
  for (uint k0 = 0; k0 < depth; k0 += BK) {
    barrier();
    stash();
    barrier();
    if (k0 + BK < depth) {
      fetch(n0, k0 + BK, rows, items);
    }
    MULTIPLY_TILES(acc, wm, wn)
  }
  STORE_FRAGMENTS(acc, m0, n0, end, live, rows_inside)
}

void main() {
  multiply_tile();
}
