// Where the matrices of one batch item start.
//
// ND=0: one batch stride per operand. ND=1: collapsed batch dimensions.
// GATHER=1: the batch item names, through two index arrays, the matrices of a
// and b. Offsets are in elements and always 64-bit.
// Mirrors BatchParams, BatchDims and GatherDims in ops/gemm/params.h.
#ifndef GEMM_BATCH_GLSL
#define GEMM_BATCH_GLSL

#include "common/index.glsl"

#define BATCH_DIMS 8

#define BATCH_ARGS_1 int64_t a_batch; int64_t b_batch; int64_t c_batch;

#if GATHER
#define BATCH_ARGS                                                            \
  BATCH_ARGS_1                                                                \
  int nd; int a_nd; int b_nd; int pad_nd;                                     \
  int shape[BATCH_DIMS]; int a_shape[BATCH_DIMS]; int b_shape[BATCH_DIMS];    \
  int64_t l_strides[BATCH_DIMS]; int64_t r_strides[BATCH_DIMS];               \
  int64_t a_strides[BATCH_DIMS]; int64_t b_strides[BATCH_DIMS];
#define GATHER_POINTERS Ptr_u32 lhs; Ptr_u32 rhs;
#elif ND
#define BATCH_ARGS                                                            \
  BATCH_ARGS_1                                                                \
  int nd; int pad_nd; int shape[BATCH_DIMS];                                  \
  int64_t a_strides[BATCH_DIMS]; int64_t b_strides[BATCH_DIMS];               \
  int64_t c_strides[BATCH_DIMS];
#define GATHER_POINTERS
#else
#define BATCH_ARGS BATCH_ARGS_1
#define GATHER_POINTERS
#endif

#define BATCH_OFFSET_(result, flat, ndim, extents, strides)                   \
  {                                                                           \
    uint rest_ = flat;                                                        \
    for (int d_ = ndim - 1; d_ >= 0; --d_) {                                  \
      result += int64_t(take_axis(rest_, uint(extents[d_]))) * strides[d_];   \
    }                                                                         \
  }

// Sets ao, bo and co from the batch item.
#if GATHER
#define BATCH_OFFSETS(batch, ao, bo, co)                                      \
  int64_t lo_ = 0l, ro_ = 0l;                                                 \
  ao = 0l; bo = 0l; co = 0l;                                                  \
  BATCH_OFFSET_(lo_, batch, A.nd, A.shape, A.l_strides)                       \
  BATCH_OFFSET_(ro_, batch, A.nd, A.shape, A.r_strides)                       \
  uint li_ = load(A.lhs, lo_);                                                \
  uint ri_ = load(A.rhs, ro_);                                                \
  BATCH_OFFSET_(ao, li_, A.a_nd, A.a_shape, A.a_strides)                      \
  BATCH_OFFSET_(bo, ri_, A.b_nd, A.b_shape, A.b_strides)
#elif ND
#define BATCH_OFFSETS(batch, ao, bo, co)                                      \
  ao = 0l; bo = 0l; co = 0l;                                                  \
  BATCH_OFFSET_(ao, batch, A.nd, A.shape, A.a_strides)                        \
  BATCH_OFFSET_(bo, batch, A.nd, A.shape, A.b_strides)                        \
  BATCH_OFFSET_(co, batch, A.nd, A.shape, A.c_strides)
#else
#define BATCH_OFFSETS(batch, ao, bo, co)                                      \
  ao = int64_t(batch) * A.a_batch;                                            \
  bo = int64_t(batch) * A.b_batch;                                            \
  co = int64_t(batch) * A.c_batch;
#endif

#endif
