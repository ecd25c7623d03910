// The argument block and the addressing of quantized products: x (.., M, K),
// codes, scales and biases of a weight matrix, y (.., M, N) row-contiguous.
//
// BATCH 0: one matrix; the block fits push constants. BATCH 1: a stack, each
// operand with its own strides. BATCH 2: lhs and rhs index arrays say which
// matrix of x and of w each product takes.
#ifndef OPERANDS_GLSL
#define OPERANDS_GLSL

#include "common/index.glsl"
#include "quant/dequant.glsl"

#if !FP
#define SIDE_ARG T_PTR biases;
#elif GLOBAL
#define SIDE_ARG Ptr_f32 global;
#else
#define SIDE_ARG
#endif
#if BATCH == 2
#define INDEX_ARGS Ptr_u32 lhs; Ptr_u32 rhs;
#else
#define INDEX_ARGS
#endif
#if BATCH
#define STACK_ARGS                                                            \
  int64_t strides[4][8];                                                      \
  int64_t x_matrix; int64_t w_matrix; int64_t s_matrix; int64_t b_matrix;     \
  int shape[8];                                                               \
  int ndim; uint batch;
#else
#define STACK_ARGS
#endif
#define ARGS                                                                  \
  T_PTR x; Ptr_u32 w; SCALE_PTR scales; SIDE_ARG INDEX_ARGS T_PTR y;          \
  int64_t x_row; uint M; uint N; uint K; uint m_tiles; uint n_tiles;          \
  uint groups; STACK_ARGS
#include "common/args.glsl"

// The operands of one product; the addresses differ by workgroup only.
T_PTR x_base;
Ptr_u32 w_base;
SCALE_PTR scale_base;
#if !FP
T_PTR bias_base;
#endif
T_PTR y_base;
float y_factor;

#if BATCH == 2
// The matrix of w that an index names.
void locate_matrix(uint r) {
  x_base = A.x;
  y_base = A.y;
  w_base = WORDS_AT(A.w, int64_t(r) * A.w_matrix);
  scale_base = SCALES_AT(A.scales, int64_t(r) * A.s_matrix);
  y_factor = 1.0;
#if !FP
  bias_base = ITEMS_AT(A.biases, int64_t(r) * A.b_matrix);
#elif GLOBAL
  y_factor = load(A.global, int64_t(r) * A.b_matrix) / 2688.0;
#endif
}
#endif

// Product b of the batch.
void locate(uint b) {
  int64_t at[4] = int64_t[4](0L, 0L, 0L, 0L);
#if BATCH
  uint rest = b;
  for (int d = A.ndim - 1; d >= 0; --d) {
    int64_t i = int64_t(take_axis(rest, uint(A.shape[d])));
    [[unroll]] for (int o = 0; o < (BATCH == 2 ? 2 : 4); ++o) {
      at[o] += i * A.strides[o][d];
    }
  }
#endif
#if BATCH == 2
  locate_matrix(load(A.rhs, at[1]));
  x_base = ITEMS_AT(x_base, int64_t(load(A.lhs, at[0])) * A.x_matrix);
#else
  x_base = ITEMS_AT(A.x, at[0]);
  w_base = WORDS_AT(A.w, at[1]);
  scale_base = SCALES_AT(A.scales, at[2]);
#if !FP
  bias_base = ITEMS_AT(A.biases, at[3]);
#endif
  y_factor = 1.0;
#if FP && GLOBAL
  y_factor = load(A.global, 0) / 2688.0;
#endif
#endif
  y_base = ITEMS_AT(A.y, int64_t(b) * (int64_t(A.M) * A.N));
}

#endif
