// y = x @ W^T (TRANSPOSE) or x @ W for many rows of x, with tiles of x and of
// dequantized weights in shared memory and TM x TN outputs per invocation.
#define BK 32
#define NX (BN / TN)
#define NY (BM / TM)
#define WG (NX * NY)
#include "quant/tile.glsl"

layout(local_size_x = WG) in;

shared vec4 xs[BK][BM / 4];
shared vec4 ws[BK][BN / 4];

void load_x_tile(uint m0, uint end, uint k0) {
  for (uint u = gl_LocalInvocationID.x; u < BM * (BK / 8); u += WG) {
    uint m = u / (BK / 8);
    uint k = (u % (BK / 8)) * 8u;
    bool inside = m0 + m < end;
    int64_t at = x_item(min(m0 + m, end - 1u), inside);
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      float v = 0.0;
      if (inside && k0 + k + i < A.K) {
        v = load(x_base, at + (k0 + k + i));
      }
      xs[k + i][m >> 2][m & 3u] = v;
    }
  }
}

void load_w_tile(uint n0, uint k0) {
  for (uint u = gl_LocalInvocationID.x; u < BK * (BN / 8); u += WG) {
    Run run = weight_run(u, 8, n0, k0);
    uvec2 codes = uvec2(0);
    float scale = 0.0;
    float bias = 0.0;
    if (run.inside) {
      uint64_t group = group_of(run.row, W_ITEMS, run.at);
      codes = load_codes8(code_row(run.row, W_ITEMS), run.at / 8u);
      scale = load_scale(scale_base, group);
      bias = load_bias(group);
    }
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      float v = WEIGHT(code8(codes, i), scale, bias);
#if TRANSPOSE
      uint n = run.row - n0;
      ws[run.at - k0 + i][n >> 2][n & 3u] = v;
#else
      ws[run.row - k0][(run.at - n0 + i) >> 2][i & 3u] = v;
#endif
    }
  }
}

void multiply(uint m0, uint n0, uint end, bool live) {
  uint tx = gl_LocalInvocationID.x % NX;
  uint ty = gl_LocalInvocationID.x / NX;
  vec4 acc[TM][TN / 4];
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    [[unroll]] for (uint j = 0; j < TN / 4; ++j) {
      acc[i][j] = vec4(0.0);
    }
  }
  for (uint k0 = 0; k0 < A.K; k0 += BK) {
    load_x_tile(m0, end, k0);
    load_w_tile(n0, k0);
    barrier();
    for (uint k = 0; k < BK; ++k) {
      vec4 w[TN / 4];
      [[unroll]] for (uint j = 0; j < TN / 4; ++j) {
        w[j] = ws[k][tx + j * NX];
      }
      [[unroll]] for (uint i = 0; i < TM / 4; ++i) {
        vec4 x = xs[k][ty + i * NY];
        [[unroll]] for (uint j = 0; j < TN / 4; ++j) {
          acc[4 * i][j] += x.x * w[j];
          acc[4 * i + 1][j] += x.y * w[j];
          acc[4 * i + 2][j] += x.z * w[j];
          acc[4 * i + 3][j] += x.w * w[j];
        }
      }
    }
    barrier();
  }
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    uint m = m0 + (ty + i / 4 * NY) * 4u + i % 4;
    if (m < end) {
      [[unroll]] for (uint j = 0; j < TN / 4; ++j) {
        [[unroll]] for (uint c = 0; c < 4; ++c) {
          store_y(live, m, n0 + (tx + j * NX) * 4u + c, acc[i][j][c]);
        }
      }
    }
  }
}

void main() {
  multiply_tile();
}
