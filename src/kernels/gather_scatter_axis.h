// GatherAxis and ScatterAxis.
#include "common/interface.h"

BEGIN_INTERFACE

// A nest over the axes without the indexed one, whose strides stand apart. The
// operands are the indexed array, the index and a scatter's updates.
#ifdef __cplusplus
template <int NDIM, int UPDATES>
#endif
struct AxisArgs {
  PTR(ITEM_PTR, src)
  PTR(I_PTR, index)
  PTR(ITEM_PTR, dst)
  uint64_t count;
  uint64_t post; // items of the index behind the axis
  int64_t axis_strides[2 + UPDATES];
  int64_t strides[2 + UPDATES][NDIM];
  uint shape[NDIM];
  uint ndim;
  uint index_size; // along the axis
  int axis_size; // of the indexed array
};

#ifdef __cplusplus
struct GatherAxisVariant {
  int WORD; // bytes that an invocation moves
  Type I = Type::u32;
  int NDIM = 1;
  bool LARGE = false;
  KERNEL_VARIANT("gather_axis", WORD, I, NDIM, LARGE)
};

// Assignments move words; with WORD 0, REDUCE combines items of T.
struct ScatterAxisVariant {
  Type T = Type::u8;
  const char* REDUCE = "none";
  bool SUM = false;
  int WORD = 0;
  Type I = Type::u32;
  int NDIM = 1;
  bool LARGE = false;
  KERNEL_VARIANT("scatter_axis", T, REDUCE, SUM, WORD, I, NDIM, LARGE)
};
#endif

END_INTERFACE
