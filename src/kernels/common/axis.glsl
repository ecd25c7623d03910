// Common part of GatherAxis and ScatterAxis. The kernel defines UPDATES.
#pragma once

#include "common/indices.glsl"
#include "gather_scatter_axis.h"
#define ARGS_BLOCK AxisArgs
#include "common/args.glsl"

Place place(UIndex i) {
  UIndex post = UIndex(A.post);
  UIndex row = i / post;
  UIndex pre = row / A.index_size;
  UIndex rest = pre * post + (i - row * post);
  int64_t along = int64_t(row - pre * A.index_size);
  int64_t index = along * A.axis_strides[1];
  Place at = Place(0, 0, true);
#if UPDATES
  at.update = along * A.axis_strides[2];
#endif
  for (int d = LAST_AXIS; d >= 0; --d) {
    int64_t here = int64_t(TAKE_AXIS(d, rest, UIndex(A.shape[d])));
    at.target += here * A.strides[0][d];
    index += here * A.strides[1][d];
#if UPDATES
    at.update += here * A.strides[2][d];
#endif
  }
  uint size = uint(A.axis_size);
  uint k = named(load(A.index, index), size, i, at.inside);
  at.target += int64_t(k) * A.axis_strides[0];
  return at;
}
