// Packs rows of x to bytes for qmm_dot.comp (format in quant/qmm_dot.h).
#include "common/math.glsl"
#include "common/vector.glsl"
#include "quant/qmm_dot.h"
#define ARGS_BLOCK PackRowsArgs
#include "common/args.glsl"

#define WG_SIZE PACK_WG
#define LANES PACK_LANES
#include "common/lanes.glsl"
#define ITEMS (DOT_BLOCK / LANES)

layout(local_size_x = WG_SIZE) in;

float[ITEMS] load_items(T_PTR row, uint at) {
  float x[ITEMS];
#if VEC
  [[unroll]] for (uint i = 0; i < ITEMS / 4; ++i) {
    float four[4] = LOAD_FOUR(T_PTR, row, at / 4 + i);
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      x[4 * i + j] = four[j];
    }
  }
#else
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    x[i] = load(row, at + i);
  }
#endif
  return x;
}

// Largest magnitude of the block as bits, by which NaN exceeds Inf.
uint block_top(float x[ITEMS]) {
  uint top = 0;
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    top = max(top, floatBitsToUint(x[i]) & 0x7fffffffu);
  }
  [[unroll]] for (uint mask = LANES / 2; mask > 0; mask /= 2) {
    top = max(top, shuffle_xor(top, mask));
  }
  return top;
}

void main() {
  uint block = min(thread_index() / LANES, A.blocks - 1u);
  uint row_blocks = A.K / DOT_BLOCK;
  uint m = block / row_blocks;
  uint b = block % row_blocks;
  uint at = b * DOT_BLOCK + LANE * ITEMS;
  float x[ITEMS] = load_items(MOVED(T, A.x, int64_t(m) * A.x_row), at);
  uint top = block_top(x);
  bool finite = top < 0x7f800000u;
  // 127 * 2^-126: below it the scale would be denormal.
  bool counts = finite && top >= 0x03fe0000u;
  float most = counts ? uintBitsToFloat(top) : 127.0;
  precise float scale = math_divide(most, 127.0);
  precise float inverse = math_divide(127.0, most);

  uvec2 words = uvec2(0);
  int sum = 0;
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    precise float scaled = counts ? x[i] * inverse : 0.0;
    int q = int(roundEven(scaled));
    sum += q;
#if EVEN_ODD
    uint to = i / 2 + i % 2 * 4;
#else
    uint to = i;
#endif
    words[to / 4] |= (uint(q) & 255u) << (to % 4 * 8);
  }
  [[unroll]] for (uint mask = LANES / 2; mask > 0; mask /= 2) {
    sum += shuffle_xor(sum, mask);
  }
  if (thread_index() / LANES < A.blocks) {
    uint64_t row = uint64_t(A.packed) + uint64_t(m) * A.row_words * 4;
    Ptr_u32x2(row + at).v[0] = words;
    if (LANE == 0) {
      scale = finite ? counts ? scale : 0.0 : NAN_F;
      precise float total = scale * float(sum);
      Ptr_u32x2(row + A.K + b * 8u).v[0] =
          uvec2(floatBitsToUint(scale), floatBitsToUint(total));
    }
  }
}
