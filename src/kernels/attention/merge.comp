// Joins the partial results of decode.comp with PARTS_MERGED; one workgroup per
// row group.
#include "common/types.glsl"
#include "attention/merge.h"
#define ARGS_BLOCK MergeArgs
#include "common/args.glsl"
#define PARTS PARTS_JOINED // enables join()
#define HEADS (A.gqa * A.kv_heads)
#include "attention/softmax.glsl"
#include "attention/join.glsl"

layout(local_size_x = 128) in;

void main() {
  uint group = group_index();
  // The condition is uniform in the workgroup.
  if (group < A.groups) {
    join(group, rows_of(group));
  }
}
