// Joins the partial results of a split decode: one workgroup a row.
#define WG_SIZE 128
#include "common/types.glsl"
#include "attention/merge.h"
#define ARGS_BLOCK MergeArgs
#include "common/args.glsl"
#include "attention/softmax.glsl"

layout(local_size_x = WG_SIZE) in;
#include "common/subgroup.glsl"

void merge(uint row) {
  uint t = gl_LocalInvocationIndex;
  uint64_t at = uint64_t(row) * A.splits * (DV + 2);
  float part_max = ABSENT;
  for (uint s = t; s < A.splits; s += WG_SIZE) {
    part_max = max(part_max, load(A.parts, at + s * (DV + 2) + DV));
  }
  part_max = workgroup_max(part_max);
  float total = 0.0;
  for (uint s = t; s < A.splits; s += WG_SIZE) {
    uint64_t part = at + s * (DV + 2) + DV;
    total +=
        load(A.parts, part + 1) * exp2_diff(load(A.parts, part), part_max);
  }
  total = workgroup_sum(total);
  float row_max = part_max;
  float keep = add_sink(row % A.heads, row_max, total);
  if (t == 0) {
    uint query = row / A.heads;
    store_lse(
        query / A.queries,
        row % A.heads,
        query % A.queries,
        row_max,
        total);
  }
  for (uint d = t; d < DV; d += WG_SIZE) {
    float x = 0.0;
    for (uint s = 0; s < A.splits; ++s) {
      uint64_t part = at + s * (DV + 2);
      x += load(A.parts, part + d) *
          exp2_diff(load(A.parts, part + DV), part_max);
    }
    store(
        A.y,
        uint64_t(row) * DV + d,
        total == 0.0 ? 0.0 : x * keep / total);
  }
}

void main() {
  uint row = group_index();
  // Uniform over the workgroup.
  if (row < A.rows) {
    merge(row);
  }
}
