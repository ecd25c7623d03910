// y = x @ W for few rows of x. W is (K, N), quantized along N.
//
// A workgroup computes 8 * TX outputs of ROWS rows. An invocation takes 8
// columns of every TY-th row of W; the TY partial sums are reduced in shared
// memory.
#include "quant/operands.glsl"

layout(local_size_x = TX * TY) in;

shared float partial[TY][TX * 8 * ROWS];

void main() {
  Tile tile = own_tile();
  uint m0 = tile.m * ROWS;
  locate(tile.product);

  uint tx = gl_LocalInvocationID.x % TX;
  uint ty = gl_LocalInvocationID.x / TX;
  uint unit = min(tile.n * TX + tx, A.N / 8u - 1u);

  T_PTR x_rows[ROWS];
  float acc[ROWS][8];
  [[unroll]] for (uint m = 0; m < ROWS; ++m) {
    x_rows[m] = x_row(min(m0 + m, A.M - 1u));
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      acc[m][i] = 0.0;
    }
  }
  for (uint k = ty; k < A.K; k += TY) {
    uvec2 codes = load_codes8(code_row(k, A.N), unit);
    uint64_t group = group_of(k, A.N, unit * 8u);
    float scale = load_scale(scale_base, group);
    float bias = load_bias(group);
    float w[8];
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      w[i] = WEIGHT(code8(codes, i), scale, bias);
    }
    [[unroll]] for (uint m = 0; m < ROWS; ++m) {
      float x = load(x_rows[m], k);
      [[unroll]] for (uint i = 0; i < 8; ++i) {
        acc[m][i] += x * w[i];
      }
    }
  }
  [[unroll]] for (uint m = 0; m < ROWS; ++m) {
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      partial[ty][m * TX * 8 + tx * 8 + i] = acc[m][i];
    }
  }
  barrier();
  for (uint j = gl_LocalInvocationID.x; j < TX * 8 * ROWS; j += TX * TY) {
    float sum = 0.0;
    for (uint t = 0; t < TY; ++t) {
      sum += partial[t][j];
    }
    store_y(
        tile.live, m0 + j / (TX * 8), tile.n * (TX * 8) + j % (TX * 8), sum);
  }
}
