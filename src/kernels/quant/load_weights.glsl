// Tiles of weights for rows_tile.glsl, dequantized on their way to shared
// memory. FINITE_FIRST rounds weights of finite scales and biases to bfloat16
// without tests for NaN.
#define ENDS_INSIDE (TRANSPOSE == 0 || GROUP < BK)
#define INFINITE uintBitsToFloat(0x7f800000u)
// Each invocation loads runs of 16 weights, which share a scale.
#define RUNS (BN * BK / 16 / WG)
uvec2 next_codes[2 * RUNS];
float next_scale[RUNS];
float next_bias[RUNS];

// The invocation's rows of weights; kept across the loop because the arguments
// may be in memory (common/args.glsl). Rows and columns beyond the last repeat it
// and are not stored.
#if TRANSPOSE
Ptr_u32 from_codes[RUNS];
uint64_t from_group[RUNS];
#endif
uint first_column;

void set_b(uint m0, uint end, uint n0, bool inside) {
  first_column = n0;
#if TRANSPOSE
  [[unroll]] for (uint i = 0; i < RUNS; ++i) {
    uint row = min(n0 + (INVOCATION + i * WG) / (BK / 16), A.N - 1u);
    from_codes[i] = code_row(row, A.K);
    from_group[i] = group_of(row, A.K, 0);
  }
#endif
}

// Offset along k in a tile of run i.
uint own_k(uint i) {
  uint e = INVOCATION + i * WG;
  return TRANSPOSE != 0 ? e % (BK / 16) * 16u : e / (BN / 16);
}

void fetch_b(uint span, uint k0, uint depth, bool inside) {
  [[unroll]] for (uint i = 0; i < RUNS; ++i) {
#if TRANSPOSE
    uint at = min(k0 + own_k(i), depth - 16u);
    Ptr_u32 words = from_codes[i];
    uint64_t group = from_group[i] + at / GROUP;
#else
    uint e = INVOCATION + i * WG;
    uint at = min(first_column + e % (BN / 16) * 16u, A.N - 16u);
    uint row = min(k0 + own_k(i), depth - 1u);
    Ptr_u32 words = code_row(row, A.N);
    uint64_t group = group_of(row, A.N, at);
#endif
    next_codes[2 * i] = load_codes8(words, at / 8u);
    next_codes[2 * i + 1] = load_codes8(words, at / 8u + 1u);
    next_scale[i] = load_scale(scale_base, group);
    next_bias[i] = load_bias(group);
  }
}

void clear_b(uint k0, uint depth) {
  [[unroll]] for (uint i = 0; i < RUNS; ++i) {
    if (k0 + own_k(i) >= depth) {
      next_codes[2 * i] = next_codes[2 * i + 1] = uvec2(0);
      next_scale[i] = next_bias[i] = 0.0;
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

void stash_b(uint span) {
  REQUIRE(RUNS * WG * 2 / WIDTH_B * PITCH_B == tile_b.length())
  [[unroll]] for (uint i = 0; i < 2 * RUNS; ++i) {
    uint e = (INVOCATION + i / 2 * WG) * 2 + i % 2;
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
