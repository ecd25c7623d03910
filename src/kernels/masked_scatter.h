#include "common/interface.h"

BEGIN_INTERFACE

// Mask and source are (rows, row) and (rows, src_row) in row-major order; a row
// of the mask is cut into blocks of `chunks` workgroup sizes.
#ifdef __cplusplus
template <int NDIM>
#endif
struct MaskedScatterArgs {
  PTR(Ptr_bool, mask)
  PTR(Ptr_u32, counts) // of true items by block
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
  int WORD; // bytes an item
  int NDIM;
  bool LARGE;
  KERNEL_VARIANT("masked_scatter", COUNT, WORD, NDIM, LARGE)
};
#endif

END_INTERFACE
