#include "common/interface.h"

BEGIN_INTERFACE

// Mask and source have shapes (rows, row) and (rows, src_row), row-major. A
// mask row is split into blocks of `chunks` times the workgroup size.
#ifdef __cplusplus
template <int NDIM>
#endif
struct MaskedScatterArgs {
  PTR(Ptr_bool, mask)
  PTR(Ptr_u32, counts) // true items per block
#if !COUNT
  PTR(WordPtr, src)
  PTR(WordPtr, dst)
#endif
  uint64_t row, src_row;
  int64_t mask_strides[NDIM], src_strides[NDIM];
  uint mask_shape[NDIM], src_shape[NDIM];
  uint mask_ndim, src_ndim;
  uint blocks, rows, chunks;
};

#ifdef __cplusplus
struct MaskedScatterVariant {
  bool COUNT;
  int WORD; // bytes per item
  int NDIM;
  bool LARGE;
  KERNEL_VARIANT("masked_scatter", MaskedScatterArgs, COUNT, WORD, NDIM, LARGE)
};
#endif

END_INTERFACE
