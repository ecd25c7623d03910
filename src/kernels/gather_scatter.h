// Gather and Scatter by index tuples.
#include "common/interface.h"

BEGIN_INTERFACE

// Item i is that of slice i % slice at index tuple i / slice. Of the strides by
// operand the tuples' are those of the index arrays, the slices' those of the
// indexed array; a scatter's updates (UPDATES is 1) come last in both. An NIDX
// above 3 is a bound, and nidx arrays are real.
#ifdef __cplusplus
template <int NIDX, int I_NDIM, int S_NDIM, int UPDATES>
#endif
struct TupleArgs {
  PTR(ITEM_PTR, src)
  PTR(uint64_t, index[NIDX])
  PTR(ITEM_PTR, dst)
  uint64_t count, slice;
  int64_t axis_strides[NIDX]; // of the indexed array
  int64_t tuple_strides[NIDX + UPDATES][I_NDIM];
  int64_t slice_strides[1 + UPDATES][S_NDIM];
  // Of each axis: its items, and where a slice may begin.
  int axis_sizes[NIDX];
  uint axis_starts[NIDX];
  uint tuple_shape[I_NDIM], slice_shape[S_NDIM];
  uint nidx, tuple_ndim, slice_ndim;
};

#ifdef __cplusplus
struct GatherVariant {
  int WORD; // bytes
  Type I = Type::u32;
  int NIDX = 1, I_NDIM = 1, S_NDIM = 1;
  bool LARGE = false;
  uint WORDS = 1; // of an invocation
  KERNEL_VARIANT("gather", WORD, I, NIDX, I_NDIM, S_NDIM, LARGE, WORDS)
};

// Assignments move words; with WORD 0, REDUCE combines items of T.
struct ScatterVariant {
  Type T = Type::u8;
  const char* REDUCE = "none";
  bool SUM = false;
  int WORD = 0; // bytes that an invocation moves
  Type I = Type::u32;
  int NIDX = 1, I_NDIM = 1, S_NDIM = 1;
  bool LARGE = false;
  KERNEL_VARIANT(
      "scatter",
      T,
      REDUCE,
      SUM,
      WORD,
      I,
      NIDX,
      I_NDIM,
      S_NDIM,
      LARGE)
};
#endif

END_INTERFACE
