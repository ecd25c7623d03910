// Convolution as an implicit matrix product with cooperative matrices, 16-bit
// float inputs and float32 accumulators: rows_tile.glsl's loop over tiles
// gathered from x (gather.glsl).
#include "common/index.glsl"
#include "common/types.glsl"

#include "conv/product.h"
#define ARGS_BLOCK ConvProductArgs
#include "common/args.glsl"

#define A_T 0
#define B_T 1
#define OWN_CORNERS
#include "gemm/matrix_tile.glsl"
#define THREADS WG
#include "conv/gather.glsl"

#define LOADS_B (BN * BK / 8 / WG)
uvec4 next_b[LOADS_B];

#if VA
Tap own_tap; // all pieces of the invocation have the same k
uint inside_a; // bit i: next_a[i] is not padding

// Padding reads a valid address instead of branching; clear_padding() zeroes
// it.
void fetch_a(uint k0) {
  uint t = gl_LocalInvocationIndex;
  bool real = k0 + t % WIDTH_A * 8 < depth;
  inside_a = 0;
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    uint r = (t + i * WG) / WIDTH_A;
    bool inside = real && is_inside(own_tap, r);
    int64_t at = inside ? int64_t(item_of(own_tap, r)) * 2 : 0l;
    next_a[i] = Ptr_u32x4(uint64_t(base_x) + uint64_t(at)).v[0];
    inside_a |= uint(inside) << i;
  }
  ADVANCE(own_tap, BK, WRAPS)
}

void clear_padding() {
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    next_a[i] = (inside_a >> i & 1u) != 0u ? next_a[i] : uvec4(0);
  }
}
#else
void fetch_a(uint k0) {
  uint t = gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    next_a[i] = uvec4(0);
  }
  [[dont_unroll]] for (uint e = 0; e < 8; ++e) {
    uint k = k0 + t % WIDTH_A * 8 + e;
    Tap tap = tap_at(k);
    [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
      uint r = (t + i * WG) / WIDTH_A;
      uint item = 0;
      if (k < depth && is_inside(tap, r)) {
        int64_t at = int64_t(item_of(tap, r)) * 2;
        item = uint(Ptr_u16(uint64_t(base_x) + uint64_t(at)).v[0]);
      }
      uint shifted = item << (16 * (e & 1));
      next_a[i].x |= e / 2 == 0 ? shifted : 0u;
      next_a[i].y |= e / 2 == 1 ? shifted : 0u;
      next_a[i].z |= e / 2 == 2 ? shifted : 0u;
      next_a[i].w |= e / 2 == 3 ? shifted : 0u;
    }
  }
}
#endif

void fetch_b(uint k0) {
  uint t = gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    uint e = t + i * WG;
    uint c = col0 + e / WIDTH_B;
    uint k = k0 + e % WIDTH_B * 8;
#if VB
    // Outputs beyond the last repeat it and are not stored.
    c = min(c, group_outputs - 1);
    Index at = Index(c) * Index(depth) + Index(min(k, depth - 8));
    uvec4 q = Ptr_u32x4(uint64_t(base_w) + uint64_t(int64_t(at) * 2)).v[0];
#else
    Index at = Index(c) * Index(depth) + Index(k);
    uvec4 q = uvec4(0);
    [[unroll]] for (uint j = 0; j < 8; ++j) {
      if (c < group_outputs && k + j < depth) {
        uint64_t from = uint64_t(base_w) + uint64_t(int64_t(at + Index(j)) * 2);
        q[j / 2] |= uint(Ptr_u16(from).v[0]) << (16 * (j % 2));
      }
    }
#endif
    next_b[i] = q;
  }
}

void fetch(uint k0) {
  fetch_a(k0);
  fetch_b(k0);
}

// Zeroes the items that were fetched in place of zeros.
void clear(uint k0) {
#if VA
  clear_padding();
#endif
#if VB
  if (k0 + BK > depth) {
    [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
      uint k = k0 + (gl_LocalInvocationIndex + i * WG) % WIDTH_B * 8;
      next_b[i] = k < depth ? next_b[i] : uvec4(0);
    }
  }
#endif
}

// One fragment per subgroup, four items per element.
shared vec4 corners[WM * WN * ITEMS_C / 4];

// Stores eight items of a fragment, from `at` on, to row r from column c on.
void put8(uint r, uint c, uint at, uint outputs) {
  if (r < rows && c < group_outputs) {
    int64_t to = int64_t(r) * int64_t(outputs) + int64_t(c);
    vec4 x = corners[at], y = corners[at + 1];
#if VY
    Ptr_u32x4(uint64_t(base_y) + uint64_t(to * 2)).v[0] =
        uvec4(pack2(x.x, x.y), pack2(x.z, x.w), pack2(y.x, y.y), pack2(y.z, y.w));
#else
    [[unroll]] for (uint e = 0; e < 8; ++e) {
      if (c + e < group_outputs) {
        store(base_y, to + int64_t(e), e < 4 ? x[e % 4] : y[e % 4]);
      }
    }
#endif
  }
}

void main() {
  uint wm = SUBGROUP % WM;
  uint wn = SUBGROUP / WM;
  if (find_tile()) { // uniform in the workgroup
    take_arguments();
    uint outputs = A.outputs;
    find_rows();
    barrier();
#if VA
    own_tap = tap_at(gl_LocalInvocationIndex % WIDTH_A * 8);
#endif

    MATRIX_C acc[FM * FN];
    CLEAR_FRAGMENTS(acc)
    fetch(0);
    for (uint k0 = 0; k0 < depth; k0 += BK) {
      barrier();
      clear(k0);
      STASH(tile_a, next_a, LOADS_A, WIDTH_A)
      STASH(tile_b, next_b, LOADS_B, WIDTH_B)
      barrier();
      if (VA != 0 || k0 + BK < depth) {
        fetch(k0 + BK);
      }
      MULTIPLY_TILES(acc, wm, wn)
    }

    uint corner = SUBGROUP * (ITEMS_C / 4);
    UNROLL for (uint i = 0; i < FM; ++i) {
      UNROLL for (uint j = 0; j < FN; ++j) {
        barrier();
        STORE_C4(acc[i * FN + j], corners, corner, MN / 4);
        barrier();
        [[unroll]] for (uint e = 0; e < ITEMS_C / 8; e += SG) {
          uint piece = e + LANE;
          if (piece < ITEMS_C / 8) {
            put8(
                row0 + (wm * FM + i) * MM + piece / (MN / 8),
                col0 + (wn * FN + j) * MN + piece % (MN / 8) * 8,
                corner + piece * 2,
                outputs);
          }
        }
      }
    }
  }
}
