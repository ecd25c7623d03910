// Dense grids, created by dense_grid() (ops/elementwise.h): enough workgroups
// to fill any GPU; invocations loop over the remaining units.
#pragma once

#define DENSE_GROUP 256u // invocations per workgroup
#define DENSE_GROUPS 65535u // largest number of workgroups

#ifndef __cplusplus
// Distance between units of an invocation; needs common/index.glsl. Computed
// from the unit count, because gl_NumWorkGroups covers only a part of the grid
// when the dispatch is split (runtime/work.h).
UIndex dense_stride(UIndex units) {
  UIndex groups = (units + UIndex(DENSE_GROUP - 1u)) / UIndex(DENSE_GROUP);
  return min(groups, UIndex(DENSE_GROUPS)) * UIndex(DENSE_GROUP);
}
#endif
