// Loads of dense operands of rows_tile.glsl, in pieces of eight 16-bit items:
// those of the invocation, of the tile at k0, from addresses `from` of their
// lines (rows of a, columns of b). A row of the tile has WIDTH pieces, of items
// along k (ALONG_K) or of eight lines.
#pragma once

uint64_t from_a[LOADS_A];

// Bytes between adjacent k, and between an invocation's pieces.
struct Steps {
  int64_t k, piece;
};
#define STEPS(k_stride, line_stride, WIDTH, ALONG_K)                          \
  Steps(                                                                      \
      int64_t(ALONG_K ? 1 : k_stride) * 2,                                    \
      int64_t(ALONG_K ? line_stride : k_stride) * (WG / WIDTH * 2))

// Line and place along k, in the tile, of piece i.
#define LINE_OF(i, WIDTH, ALONG_K)                                            \
  (ALONG_K ? (INVOCATION + (i) * WG) / WIDTH : INVOCATION % WIDTH * 8)
#define K_OF(i, WIDTH, ALONG_K)                                               \
  (ALONG_K ? INVOCATION % WIDTH * 8 : (INVOCATION + (i) * WG) / WIDTH)

// Aligned pieces of whole tiles, without comparisons; BEGIN_INSIDE precedes.
#define BEGIN_INSIDE(from, steps, WIDTH, ALONG_K)                             \
  from[0] += uint64_t(int64_t(K_OF(0, WIDTH, ALONG_K)) * steps.k);
#define FETCH_INSIDE(next, from, steps)                                       \
  [[unroll]] for (uint i = 0; i < next.length(); ++i) {                       \
    uint64_t at = from[0] + uint64_t(int64_t(min(k0, depth - BK)) * steps.k); \
    next[i] = Ptr_u32x4(at + uint64_t(int64_t(i) * steps.piece)).v[0];        \
  }

// Aligned pieces. Places beyond depth are clamped, because a branch around the
// loads costs 10 % of the time; CLEAR_PIECES zeroes what they load.
#define FETCH_PIECES(next, from, steps, WIDTH, ALONG_K)                       \
  [[unroll]] for (uint i = 0; i < next.length(); ++i) {                       \
    uint k = min(k0 + K_OF(i, WIDTH, ALONG_K), depth - (ALONG_K ? 8u : 1u));  \
    if (ALONG_K) {                                                            \
      next[i] = Ptr_u32x4(from[i]).v[k / 8u];                                 \
    } else {                                                                  \
      next[i] = Ptr_u32x4(from[i] + uint64_t(int64_t(k) * steps.k)).v[0];     \
    }                                                                         \
  }
#define CLEAR_PIECES(next, WIDTH, ALONG_K)                                    \
  [[unroll]] for (uint i = 0; i < next.length(); ++i) {                       \
    next[i] = k0 + K_OF(i, WIDTH, ALONG_K) < depth ? next[i] : uvec4(0);      \
  }

// Item by item, at clamped places, so that all loads are under way at once; zero
// beyond depth.
#define FETCH_ITEMS(                                                          \
    next, base, first, lines, line_stride, k_stride, WIDTH, ALONG_K)          \
  [[unroll]] for (uint i = 0; i < next.length(); ++i) {                       \
    uint line = min(first + LINE_OF(i, WIDTH, ALONG_K), lines - 1);           \
    uint k = k0 + K_OF(i, WIDTH, ALONG_K);                                    \
    uint last = ALONG_K ? depth - 1 : lines - 1;                              \
    uint x[8];                                                                \
    [[unroll]] for (uint e = 0; e < 8; ++e) {                                 \
      uint at_line = ALONG_K ? line : min(line + e, last);                    \
      uint at_k = ALONG_K ? min(k + e, last) : min(k, depth - 1);             \
      Index at = Index(at_line) * line_stride + Index(at_k) * k_stride;       \
      x[e] = Ptr_u16(uint64_t(base) + uint64_t(int64_t(at) * 2)).v[0];        \
      x[e] = k + (ALONG_K ? e : 0) < depth ? x[e] : 0u;                       \
    }                                                                         \
    next[i] = uvec4(x[0], x[2], x[4], x[6]) |                                 \
        uvec4(x[1], x[3], x[5], x[7]) << 16;                                  \
  }
