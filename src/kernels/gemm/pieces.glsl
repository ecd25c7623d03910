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

// Item by item, zero beyond the last line and beyond depth.
#define FETCH_ITEMS(                                                          \
    next, base, first, lines, line_stride, k_stride, WIDTH, ALONG_K)          \
  [[unroll]] for (uint i = 0; i < next.length(); ++i) {                       \
    next[i] = uvec4(0);                                                       \
    [[unroll]] for (uint e = 0; e < 8; ++e) {                                 \
      uint line = first + LINE_OF(i, WIDTH, ALONG_K) + (ALONG_K ? 0 : e);     \
      uint k = k0 + K_OF(i, WIDTH, ALONG_K) + (ALONG_K ? e : 0);              \
      if (line < lines && k < depth) {                                        \
        Index at = Index(line) * line_stride + Index(k) * k_stride;           \
        uint x = Ptr_u16(uint64_t(base) + uint64_t(int64_t(at) * 2)).v[0];    \
        next[i][e / 2] |= x << (16 * (e % 2));                                \
      }                                                                       \
    }                                                                         \
  }
