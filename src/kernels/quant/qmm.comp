// y = x @ W^T (TRANSPOSE) or x @ W for many rows of x, with tiles of x and of
// dequantized weights in shared memory and TM x TN outputs per invocation.
#define BK 32
#define NX (BN / TN)
#define NY (BM / TM)
#define WG (NX * NY)
#include "quant/tile.glsl"

layout(local_size_x = WG) in;

#if VEC
shared vec2 xs[BK][BM / 2];
shared vec2 ws[BK][BN / 2];
#define FOUR(tile, k, i) vec4(tile[k][2 * (i)], tile[k][2 * (i) + 1])
#else
shared vec4 xs[BK][BM / 4];
shared vec4 ws[BK][BN / 4];
#define FOUR(tile, k, i) tile[k][i]
#endif

#if VEC
#include "common/constants.glsl"
#include "common/vec4.glsl"

// An invocation's raw share of the next tile, in registers: X_ROWS rows of four
// items of x, and W_ROWS_HELD of eight codes of w with scale and bias.
#define X_ROWS (BM * BK / 4 / WG)
#define W_ROWS_HELD (BN * BK / 8 / WG)
#ifdef T_IS_f32
#define ITEMS4 vec4
#else
#define ITEMS4 uvec2
#endif
struct Share {
  ITEMS4 x[X_ROWS];
  uvec4 w[W_ROWS_HELD];
};

// First row of the share, and its position along k, a multiple of `width`.
// NEIGHBOURS invocations have the same position and store side by side.
#define NEIGHBOURS (WG < 64 ? 4 : 8)
uvec2 share_at(uint rows, uint width) {
  uint i = gl_LocalInvocationID.x, near = i % NEIGHBOURS, far = i / NEIGHBOURS;
  uint places = BK / width;
  return uvec2(far / places * NEIGHBOURS + near, far % places) *
      uvec2(rows, width);
}

Share fetch(uint m0, uint n0, uint end, uint k0) {
  Share s;
  uvec2 at = share_at(X_ROWS, 4);
  [[unroll]] for (uint i = 0; i < X_ROWS; ++i) {
    bool inside = true;
    int64_t row = x_item(min(m0 + at.x + i, end - 1u), inside);
    s.x[i] = ITEMS4(0);
    if (inside) {
      s.x[i] = VEC4_AT(x_base, row + (k0 + at.y));
    }
  }
  at = share_at(W_ROWS_HELD, 8);
  [[unroll]] for (uint i = 0; i < W_ROWS_HELD; ++i) {
    uint row = min(n0 + at.x + i, A.N - 1u);
    uint64_t group = group_of(row, A.K, k0 + at.y);
    vec2 sides = vec2(load_scale(scale_base, group), load_bias(group));
    s.w[i].xy = load_codes8(code_row(row, A.K), (k0 + at.y) / 8u);
    s.w[i].zw = floatBitsToUint(sides);
  }
  return s;
}

void stash(Share s) {
  REQUIRE(s.x.length() * WG * 4 == BM * BK && s.x.length() % 2 == 0)
  REQUIRE(s.w.length() * WG * 8 == BN * BK && s.w.length() % 2 == 0)
  uvec2 at = share_at(X_ROWS, 4);
  [[unroll]] for (uint i = 0; i < X_ROWS; i += 2) {
    vec4 a = UNPACK4(s.x[i]), b = UNPACK4(s.x[i + 1]);
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      xs[at.y + c][(at.x + i) / 2] = vec2(a[c], b[c]);
    }
  }
  at = share_at(W_ROWS_HELD, 8);
  [[unroll]] for (uint i = 0; i < W_ROWS_HELD; i += 2) {
    vec2 a = uintBitsToFloat(s.w[i].zw), b = uintBitsToFloat(s.w[i + 1].zw);
    [[unroll]] for (uint c = 0; c < 8; ++c) {
      ws[at.y + c][(at.x + i) / 2] = vec2(
          WEIGHT(code8(s.w[i].xy, c), a.x, a.y),
          WEIGHT(code8(s.w[i + 1].xy, c), b.x, b.y));
    }
  }
}
#else
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
#endif

void multiply(
    uint m0, uint n0, uint end, bool live, uint k_begin, uint k_end) {
  uint tx = gl_LocalInvocationID.x % NX;
  uint ty = gl_LocalInvocationID.x / NX;
  vec4 acc[TM][TN / 4];
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    [[unroll]] for (uint j = 0; j < TN / 4; ++j) {
      acc[i][j] = vec4(0.0);
    }
  }
#if VEC
  Share next = fetch(m0, n0, end, 0);
#endif
  for (uint k0 = 0; k0 < A.K; k0 += BK) {
#if VEC
    stash(next);
#else
    load_x_tile(m0, end, k0);
    load_w_tile(n0, k0);
#endif
    barrier();
#if VEC
    if (k0 + BK < A.K) {
      next = fetch(m0, n0, end, k0 + BK);
    }
#endif
    for (uint k = 0; k < BK; ++k) {
      vec4 w[TN / 4];
      [[unroll]] for (uint j = 0; j < TN / 4; ++j) {
        w[j] = FOUR(ws, k, tx + j * NX);
      }
      [[unroll]] for (uint i = 0; i < TM / 4; ++i) {
        vec4 x = FOUR(xs, k, ty + i * NY);
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
