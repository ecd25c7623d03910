// Dense grids, which the host makes by dense_grid() (ops/elementwise.h): enough
// workgroups to fill any GPU, whose invocations loop over the rest of the
// units.
#ifndef KERNELS_COMMON_DENSE_H
#define KERNELS_COMMON_DENSE_H

#define DENSE_GROUP 256u // invocations
#define DENSE_GROUPS 65535u // at most

#ifndef __cplusplus
// From one unit of an invocation to its next, for common/index.glsl's UIndex.
// Of the units, as gl_NumWorkGroups counts a part of the grid alone where the
// dispatch is split (runtime/work.h).
UIndex dense_stride(UIndex units) {
  UIndex groups = (units + UIndex(DENSE_GROUP - 1u)) / UIndex(DENSE_GROUP);
  return min(groups, UIndex(DENSE_GROUPS)) * UIndex(DENSE_GROUP);
}
#endif

#endif
