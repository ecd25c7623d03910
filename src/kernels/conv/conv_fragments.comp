// Convolution of 16-bit floats as an implicit matrix product with
// gemm/fragment_tile.glsl, for NVIDIA's element layout of matrices; otherwise
// as conv_coopmat.comp. Channels are contiguous and a multiple of a step's
// depth; tiles lie inside the matrices.
#include "common/index.glsl"
#include "common/types.glsl"
#if SPLIT
#define Y_PTR Ptr_f32
#define Y_SIZE 4
#endif

#include "conv/product.h"
#define ARGS_BLOCK ConvProductArgs
#include "common/args.glsl"

#define THREADS (WM * WN * SG)
#include "conv/gather.glsl"

// Columns of a tile are less than 2^32 items apart, so 32 bits suffice.
#define COLUMN(from, c, k) ((from) + uint64_t((c) * depth + (k)) * 2)
#include "gemm/fragment_tile.glsl"

// Offset of a tap from a row's base, and its bits for row_inside.
shared Index tap_offset[MOST_TAPS];
shared uint tap_bits[MOST_TAPS];

uint taps;
uint tap, channel; // position of the next tile along k

void find_taps() {
  for (uint i = gl_LocalInvocationIndex; i < taps; i += WG) {
    Tap t = tap_at(i * channels);
    tap_offset[i] = t.offset;
    tap_bits[i] = t.bits;
  }
}

#define OWN_PIECE Index(gl_LocalInvocationIndex % WIDTH * 8)
#define OWN_ROW(i) (gl_LocalInvocationIndex / WIDTH + (i) * STRIDE)

// Base and mask of the rows whose pieces the invocation loads.
Index own_base[LOADS];
uint own_inside[LOADS];
uint inside_a; // bit i: next_a[i] is not padding

void set_position(uint k_begin) {
  tap = k_begin / channels;
  channel = k_begin - tap * channels;
  UNROLL for (uint i = 0; i < LOADS; ++i) {
    own_base[i] = row_base[OWN_ROW(i)] + OWN_PIECE;
    own_inside[i] = row_inside[OWN_ROW(i)];
  }
}

// Fetches the next tile of a and returns its k. Padding reads a valid address
// instead of branching. Without `more` the position does not advance.
uint fetch(bool more) {
  uint k = tap * channels + channel;
  uint bits = tap_bits[tap];
  Index from = tap_offset[tap] + Index(channel);
  inside_a = 0;
  UNROLL for (uint i = 0; i < LOADS; ++i) {
    bool inside = (own_inside[i] & bits) == bits;
    int64_t at = int64_t(inside ? own_base[i] + from : Index(0));
    next_a[i] = Ptr_u32x4(uint64_t(base_x) + uint64_t(at * 2)).v[0];
    inside_a |= uint(inside) << i;
  }
  if (more) {
    channel += BK;
    if (channel == channels) {
      channel = 0;
      ++tap;
    }
  }
  return k;
}

void clear_padding() {
  UNROLL for (uint i = 0; i < LOADS; ++i) {
    next_a[i] = (inside_a >> i & 1u) != 0u ? next_a[i] : uvec4(0);
  }
}

#define PUT(r, c, v)                                                          \
  if (r >= first_row && c >= first_column) {                                  \
    int64_t at = int64_t(r) * int64_t(outputs) + int64_t(c);                  \
    store_eight(uint64_t(base_y) + uint64_t(at * Y_SIZE), v);                 \
  }

void main() {
  uint wm = SUBGROUP % WM, wn = SUBGROUP / WM;
  if (find_tile()) { // uniform in the workgroup
    take_arguments();
    taps = depth / channels;
    uint outputs = A.outputs;
    uint k_begin = split * A.k_split;
    uint k_end = min(depth, k_begin + A.k_split);
    // The last tiles are shifted to lie inside and skip items of earlier tiles.
    uint first_row = row0, first_column = col0;
    row0 = min(row0, rows - BM);
    col0 = min(col0, group_outputs - BN);
    find_rows();
    find_taps();
    barrier();

    MATRIX_C acc[FM * FN];
    CLEAR_FRAGMENTS(acc)
    set_position(k_begin);
    int64_t b = int64_t(col0) * int64_t(depth);
    set_column_addresses(uint64_t(base_w) + uint64_t(b * 2), wn);
    uint k_next = fetch(k_begin + BK < k_end);
    LOAD_OWN(k_next)
    clear_padding();
    stash(0);
    k_next = fetch(k_begin + 2 * BK < k_end);
    uint from = 0;
    for (uint k0 = k_begin; k0 < k_end; k0 += BK) {
      barrier();
      uint k_after;
      MULTIPLY_STEP(acc, from, k_next, {
        clear_padding();
        stash(TILE - from);
        k_after = fetch(k0 + 3 * BK < k_end);
      })
      k_next = k_after;
      from = TILE - from;
    }

    PUT_FRAGMENTS(acc, row0, col0, PUT)
  }
}
