// Tiles of gemm/skinny_tile.glsl.
#pragma once

#include "common/interface.h"

#ifdef __cplusplus
BEGIN_INTERFACE

struct SkinnyTile {
  uint SG;
  uint FM, FN; // 16 x 16 fragments per subgroup, along rows and columns of y
  uint WN, WK; // subgroups along columns, and along k

  constexpr uint rows() const {
    return 16 * FM;
  }
  constexpr uint outputs() const {
    return 16 * FN * WN;
  }
  // Shared memory in bytes; `sides`: scales and biases per subgroup.
  constexpr uint shared_memory(uint sides = 0) const {
    uint a = 2 * (16 * FM * 3 + 4) * 16;
    uint b = 2 * (16 * FN * 3 + 4) * 16;
    return WK * (a + WN * (b + sides + 1024));
  }
};

END_INTERFACE
#endif
