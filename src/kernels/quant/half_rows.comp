// Packs rows of bfloat16 x as float16 (format in quant/half_rows.h).
#include "common/halves.glsl"
#include "quant/half_rows.h"
#define ARGS_BLOCK HalfRowsArgs
#include "common/args.glsl"

#define WG_SIZE HALF_ROWS_WG
#define LANES HALF_ROWS_LANES
#include "common/lanes.glsl"
#define PIECES (GROUP / 8 / LANES) // of eight items

layout(local_size_x = WG_SIZE) in;

float sum_of(uvec4 q) {
  float sum = 0.0;
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    sum += uintBitsToFloat(q[i] << 16) + uintBitsToFloat(q[i] & 0xffff0000u);
  }
  return sum;
}

void main() {
  uint group = min(thread_index() / LANES, A.groups - 1u);
  uint m = group / (A.K / GROUP);
  uint g = group % (A.K / GROUP);
  uint at = g * (GROUP / 8) + LANE * PIECES;
  uint64_t from = uint64_t(MOVED(T, A.x, int64_t(m) * A.x_row));
  uvec4 q[PIECES];
  uint largest = 0;
  float sum = 0.0;
  [[unroll]] for (uint i = 0; i < PIECES; ++i) {
    q[i] = Ptr_u32x4(from).v[at + i];
    uint most, least;
    span_of(q[i], most, least);
    largest = max(largest, most);
    sum += sum_of(q[i]);
  }
  [[unroll]] for (uint mask = LANES / 2; mask > 0; mask /= 2) {
    largest = max(largest, shuffle_xor(largest, mask));
    sum += shuffle_xor(sum, mask);
  }
  // The factor must be a normal float.
  int top = max(int(largest >> 7) - 127, LEAST_TOP + 1);
  if (thread_index() / LANES < A.groups) {
    uint64_t row = uint64_t(A.halves) + uint64_t(m) * A.pitch * 2;
    [[unroll]] for (uint i = 0; i < PIECES; ++i) {
      Ptr_u32x4(row).v[at + i] = half_items(q[i], top);
    }
    if (LANE == 0) {
      float factor = uintBitsToFloat(uint(top - 15 + 127) << 23);
      Ptr_u32x2(row + A.K * 2).v[g] =
          uvec2(floatBitsToUint(factor), floatBitsToUint(sum));
    }
  }
}
