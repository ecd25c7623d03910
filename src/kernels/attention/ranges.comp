// A workgroup finds the range of a KV head's q, k or v (attention/ranges.h).
#include "common/halves.glsl"
#include "attention/ranges.h"
#define ARGS_BLOCK RangesArgs
#include "common/args.glsl"

#define WG_SIZE RANGES_WG
#define LANES RANGES_WG
#include "common/lanes.glsl"

layout(local_size_x = WG_SIZE) in;

TEAM_REDUCE(largest_of, uint, max, largest_parts)
TEAM_REDUCE(smallest_of, uint, min, smallest_parts)

uint largest = 0, smallest = ~0u; // of the invocation

// `columns`: groups of eight items of a row.
void scan(T_PTR head, int64_t pitch, uint rows, uint columns) {
  for (uint e = LANE; e < rows * columns; e += WG_SIZE) {
    int64_t at = int64_t(e / columns) * pitch + int64_t(e % columns * 8);
    uvec4 q = Ptr_u32x4(uint64_t(head) + uint64_t(at * 2)).v[0];
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      uint x = q[i / 2] >> (16 * (i % 2)) & 0x7fffu;
      largest = max(largest, x);
      smallest = min(smallest, x - 1u);
    }
  }
}

void main() {
  uint which = group_index() % 3, head = group_index() / 3;
  uint batch = head / A.kv_heads, kv_head = head % A.kv_heads;
  if (which == 0) {
    uint gqa = A.heads / A.kv_heads;
    for (uint h = kv_head * gqa; h < (kv_head + 1) * gqa; ++h) {
      T_PTR q = AT_HEAD(A.q, A.q_strides, batch, h);
      scan(q, A.q_strides.row, A.queries, D / 8);
    }
  } else if (which == 1) {
    T_PTR k = AT_HEAD(A.k, A.k_strides, batch, kv_head);
    scan(k, A.k_strides.row, A.keys, D / 8);
  } else {
    T_PTR v = AT_HEAD(A.v, A.v_strides, batch, kv_head);
    scan(v, A.v_strides.row, A.keys, DV / 8);
  }
  uint most = largest_of(largest), least = smallest_of(smallest);
  if (LANE == 0) {
    store(A.ranges, group_index() * 2, most);
    store(A.ranges, group_index() * 2 + 1, least);
  }
}
