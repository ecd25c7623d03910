// Interfaces of GatherAxis and ScatterAxis.
#include "common/interface.h"

BEGIN_INTERFACE

// Strides over all axes except the indexed one, which has axis_strides.
// Operands are the indexed array, the index and, for a scatter, its updates.
#ifdef __cplusplus
template <int NDIM, int UPDATES>
#endif
struct AxisArgs {
  PTR(ITEM_PTR, src)
  PTR(I_PTR, index)
  PTR(ITEM_PTR, dst)
  uint64_t count;
  uint64_t post; // items of the index after the axis
  int64_t axis_strides[2 + UPDATES];
  int64_t strides[2 + UPDATES][NDIM];
  uint shape[NDIM];
  uint ndim;
  uint index_size; // length of the index along the axis
  int axis_size; // length of the indexed array along the axis
};

#ifdef __cplusplus
struct GatherAxisVariant {
  int WORD; // bytes per invocation
  Type I = Type::u32;
  int NDIM = 1;
  bool LARGE = false;
  KERNEL_VARIANT("gather_axis", AxisArgs, WORD, I, NDIM, LARGE)
};

// Assignments move words; with WORD 0, REDUCE combines items of type T.
struct ScatterAxisVariant {
  Type T = Type::u8;
  const char* REDUCE = "none";
  bool SUM = false;
  int WORD = 0;
  Type I = Type::u32;
  int NDIM = 1;
  bool LARGE = false;
  KERNEL_VARIANT("scatter_axis", AxisArgs, T, REDUCE, SUM, WORD, I, NDIM, LARGE)
};
#endif

END_INTERFACE
