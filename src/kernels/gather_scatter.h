// Interfaces of Gather and Scatter, which index by tuples.
#include "common/interface.h"

BEGIN_INTERFACE

// Item i is item i % slice of the slice at index tuple i / slice. tuple_strides
// are those of the index arrays, slice_strides those of the indexed array; a
// scatter (UPDATES = 1) appends the strides of its updates to both. An NIDX
// above 3 is an upper bound on nidx.
#ifdef __cplusplus
template <int NIDX, int I_NDIM, int S_NDIM, int UPDATES>
#endif
struct TupleArgs {
  PTR(ITEM_PTR, src)
  PTR(uint64_t, index[NIDX])
  PTR(ITEM_PTR, dst)
  uint64_t count, slice;
  int64_t axis_strides[NIDX]; // strides of the indexed array
  int64_t tuple_strides[NIDX + UPDATES][I_NDIM];
  int64_t slice_strides[1 + UPDATES][S_NDIM];
  // Length of each indexed axis, and the number of valid slice starts along it.
  int axis_sizes[NIDX];
  uint axis_starts[NIDX];
  uint tuple_shape[I_NDIM], slice_shape[S_NDIM];
  uint nidx, tuple_ndim, slice_ndim;
};

#ifdef __cplusplus
struct GatherVariant {
  int WORD; // bytes per word
  Type I = Type::u32;
  int NIDX = 1, I_NDIM = 1, S_NDIM = 1;
  bool LARGE = false;
  uint WORDS = 1; // words per invocation
  KERNEL_VARIANT(
      "gather", TupleArgs, WORD, I, NIDX, I_NDIM, S_NDIM, LARGE, WORDS)
};

// Assignments move words; with WORD 0, REDUCE combines items of type T.
struct ScatterVariant {
  Type T = Type::u8;
  const char* REDUCE = "none";
  bool SUM = false;
  int WORD = 0; // bytes per invocation
  Type I = Type::u32;
  int NIDX = 1, I_NDIM = 1, S_NDIM = 1;
  bool LARGE = false;
  KERNEL_VARIANT(
      "scatter", TupleArgs, T, REDUCE, SUM, WORD, I, NIDX, I_NDIM, S_NDIM,
      LARGE)
};
#endif

END_INTERFACE
