// Joins the partial results of a split decode: one workgroup for the rows of one
// of decode.comp's, where its last one does not.
#extension GL_EXT_control_flow_attributes : enable
#include "common/types.glsl"
#include "attention/merge.h"
#define ARGS_BLOCK MergeArgs
#include "common/args.glsl"
#define PARTS PARTS_JOINED // there are some to join
#define HEADS (A.gqa * A.kv_heads)
#include "attention/softmax.glsl"
#include "attention/join.glsl"

layout(local_size_x = 128) in;

void main() {
  uint group = group_index();
  // Uniform over the workgroup.
  if (group < A.groups) {
    join(group, rows_of(group));
  }
}
