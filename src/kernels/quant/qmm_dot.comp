// y = x @ W^T for many rows of x packed as bytes (quant/qmm_dot.h), with tiles
// of bytes in shared memory, integer dot products and TM x TN outputs per
// invocation.
//
// The integer sum over a block of 32 is exact; it is scaled by both scales and
// accumulated in float32. The bias multiplies the sum of x.
#define TRANSPOSE 1
#define SORTED 0
#define NX (BN / TN)
#define NY (BM / TM)
#define WG (NX * NY)
#include "quant/tile.glsl"
#include "quant/qmm_dot.h"

#define PIECE 16 // items per uvec4
#define PIECES (BK / PIECE)
#define PITCH (PIECES + 1) // padded against bank conflicts
#define BLOCKS (BK / DOT_BLOCK)
#define SPAN (GROUP < BK ? GROUP : BK) // items of k that share a scale of w
#define SPANS (BK / SPAN)

// Loads per invocation.
#define LOADS(n) (((n) + WG - 1) / WG)
#define LOADS_X LOADS(BM * PIECES)
#define LOADS_W LOADS(BN * PIECES)
#define LOADS_XS LOADS(BM * BLOCKS)
#define LOADS_WS LOADS(BN * SPANS)
#define LOAD(i) (gl_LocalInvocationIndex + (i) * WG)

// A code's value is CODE_UNIT * (byte - CODE_OFFSET).
#if CODE == CODE_E2M1
#define CODE_UNIT 0.5
#else
#define CODE_UNIT 1.0
#endif
#if CODE == CODE_E2M1 && MIXED
#define CODE_OFFSET 12
#elif CODE == CODE_INTEGER && BITS == 8 && !MIXED
#define CODE_OFFSET -128
#else
#define CODE_OFFSET 0
#endif

layout(local_size_x = WG) in;

shared uvec4 xs[BM * PITCH];
shared uvec4 ws[BN * PITCH];
shared vec2 x_sides[BLOCKS * BM]; // scale, sum
shared vec2 w_sides[SPANS * BN]; // scale, factor of the sum of x

// Registers of the prefetched next tile.
uvec4 x_next[LOADS_X];
uvec2 w_next[LOADS_W][2];
vec2 x_side_next[LOADS_XS];
vec2 w_side_next[LOADS_WS];

uint64_t packed_row(uint m) {
  return uint64_t(x_base) + uint64_t(m) * uint64_t(A.x_row) * 4;
}

// Rows beyond the last repeat it; items beyond K are zero.
void fetch_x(uint m0, uint k0) {
  [[unroll]] for (uint i = 0; i < LOADS_X; ++i) {
    uint m = min(m0 + LOAD(i) / PIECES, A.M - 1);
    uint k = k0 + LOAD(i) % PIECES * PIECE;
    x_next[i] = uvec4(0);
    if (k < A.K) {
      x_next[i] = Ptr_u32x4(packed_row(m) + k).v[0];
    }
  }
  [[unroll]] for (uint i = 0; i < LOADS_XS; ++i) {
    uint m = min(m0 + LOAD(i) % BM, A.M - 1);
    uint k = k0 + LOAD(i) / BM * DOT_BLOCK;
    x_side_next[i] = vec2(0.0);
    if (k < A.K) {
      uvec2 side = Ptr_u32x2(packed_row(m) + A.K + k / DOT_BLOCK * 8u).v[0];
      x_side_next[i] = uintBitsToFloat(side);
    }
  }
}

void fetch_w(uint n0, uint k0) {
  [[unroll]] for (uint i = 0; i < LOADS_W; ++i) {
    uint n = min(n0 + LOAD(i) / PIECES, A.N - 1);
    uint k = k0 + LOAD(i) % PIECES * PIECE;
    w_next[i][0] = w_next[i][1] = uvec2(0);
    if (k < A.K) {
      Ptr_u32 row = code_row(n, A.K);
      w_next[i][0] = load_codes8(row, k / 8u);
      w_next[i][1] = load_codes8(row, k / 8u + 1u);
    }
  }
  [[unroll]] for (uint i = 0; i < LOADS_WS; ++i) {
    uint n = min(n0 + LOAD(i) % BN, A.N - 1);
    uint k = k0 + LOAD(i) / BN * SPAN;
    w_side_next[i] = vec2(0.0);
    if (k < A.K) {
      uint64_t group = group_of(n, A.K, k);
      float scale = load_scale(scale_base, group) * CODE_UNIT;
      w_side_next[i] =
          vec2(scale, fma(float(CODE_OFFSET), -scale, load_bias(group)));
    }
  }
}

// Expands eight codes to bytes; four-bit codes in the order 0, 2, 4, 6, 1, 3,
// 5, 7.
uvec2 code_bytes(uvec2 codes) {
#if BITS == 8
  uvec2 bytes = codes;
#elif BITS == 4
  uvec2 bytes = uvec2(codes.x, codes.x >> 4) & 0x0f0f0f0fu;
#else
  uvec2 bytes = uvec2(0);
  [[unroll]] for (uint i = 0; i < 8; ++i) {
    bytes[i / 4] |= code8(codes, i) << (i % 4 * 8);
  }
#endif
#if CODE == CODE_E2M1
  uvec2 values = uvec2(0);
  [[unroll]] for (uint i = 0; i < 8; ++i) {
    uint code = bytes[i / 4] >> (i % 4 * 8) & 15u;
    int twice = int(code_value(code) * 2.0) + CODE_OFFSET;
    values[i / 4] |= (uint(twice) & 255u) << (i % 4 * 8);
  }
  return values;
#elif CODE_OFFSET == -128
  return bytes ^ 0x80808080u;
#else
  return bytes;
#endif
}

void stash() {
  [[unroll]] for (uint i = 0; i < LOADS_X; ++i) {
    if (BM * PIECES % WG == 0 || LOAD(i) < BM * PIECES) {
      xs[LOAD(i) / PIECES * PITCH + LOAD(i) % PIECES] = x_next[i];
    }
  }
  [[unroll]] for (uint i = 0; i < LOADS_W; ++i) {
    if (BN * PIECES % WG == 0 || LOAD(i) < BN * PIECES) {
      ws[LOAD(i) / PIECES * PITCH + LOAD(i) % PIECES] =
          uvec4(code_bytes(w_next[i][0]), code_bytes(w_next[i][1]));
    }
  }
  [[unroll]] for (uint i = 0; i < LOADS_XS; ++i) {
    if (BM * BLOCKS % WG == 0 || LOAD(i) < BM * BLOCKS) {
      x_sides[LOAD(i)] = x_side_next[i];
    }
  }
  [[unroll]] for (uint i = 0; i < LOADS_WS; ++i) {
    if (BN * SPANS % WG == 0 || LOAD(i) < BN * SPANS) {
      w_sides[LOAD(i)] = w_side_next[i];
    }
  }
}

int dot16(uvec4 x, uvec4 w, int sum) {
  [[unroll]] for (uint i = 0; i < 4; ++i) {
#if MIXED
    sum += dotPacked4x8EXT(int(x[i]), w[i]);
#else
    sum += dotPacked4x8EXT(int(x[i]), int(w[i]));
#endif
  }
  return sum;
}

#define ROW(i) (ty + (i) * NY)
#define COLUMN(j) (tx + (j) * NX)

float acc[TM][TN];

void multiply_block(uint tx, uint ty, uint b) {
  int sums[TM][TN];
  [[unroll]] for (uint p = 0; p < DOT_BLOCK / PIECE; ++p) {
    uint at = b * (DOT_BLOCK / PIECE) + p;
    uvec4 w[TN];
    [[unroll]] for (uint j = 0; j < TN; ++j) {
      w[j] = ws[COLUMN(j) * PITCH + at];
    }
    [[unroll]] for (uint i = 0; i < TM; ++i) {
      uvec4 x = xs[ROW(i) * PITCH + at];
      [[unroll]] for (uint j = 0; j < TN; ++j) {
        sums[i][j] = dot16(x, w[j], p == 0 ? 0 : sums[i][j]);
      }
    }
  }
  vec2 w_side[TN];
  [[unroll]] for (uint j = 0; j < TN; ++j) {
    w_side[j] = w_sides[b * DOT_BLOCK / SPAN * BN + COLUMN(j)];
  }
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    vec2 x_side = x_sides[b * BM + ROW(i)];
    [[unroll]] for (uint j = 0; j < TN; ++j) {
      float scale = x_side.x * w_side[j].x;
      acc[i][j] = fma(float(sums[i][j]), scale, acc[i][j]);
#if SIDE == SIDE_BIASES || CODE_OFFSET != 0
      acc[i][j] = fma(x_side.y, w_side[j].y, acc[i][j]);
#endif
    }
  }
}

void multiply(
    uint m0, uint n0, uint end, bool live, uint k_begin, uint k_end) {
  uint tx = gl_LocalInvocationIndex % NX;
  uint ty = gl_LocalInvocationIndex / NX;
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    [[unroll]] for (uint j = 0; j < TN; ++j) {
      acc[i][j] = 0.0;
    }
  }
  fetch_x(m0, 0);
  fetch_w(n0, 0);
  for (uint k0 = 0; k0 < A.K; k0 += BK) {
    barrier();
    stash();
    barrier();
    fetch_x(m0, k0 + BK);
    fetch_w(n0, k0 + BK);
    [[unroll]] for (uint b = 0; b < BLOCKS; ++b) {
      multiply_block(tx, ty, b);
    }
  }
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    [[unroll]] for (uint j = 0; j < TN; ++j) {
      store_y(live, m0 + ROW(i), n0 + COLUMN(j), acc[i][j]);
    }
  }
}

void main() {
  multiply_tile();
}
