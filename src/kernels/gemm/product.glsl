// Common part of the kernels of gemm.h: selects the workgroup's part of the
// work and calls the kernel's multiply(), which calls put() for each item of y.
#include "common/index.glsl"
#include "gemm/acc.glsl"

#if SPLIT
#define Y_PTR PART_PTR
#define Y_SIZE PART_SIZE
#else
#define Y_PTR T_PTR
#define Y_SIZE T_SIZE
#endif
// Index of y's item (r, c); a kernel may override it.
#ifndef Y_AT
#define Y_AT(r, c) (Index(r) * Index(A.N) + Index(c))
#endif

#include "gemm/gemm.h"
#define ARGS_BLOCK GemmArgs
#include "common/args.glsl"
#include "gemm/batch.glsl"

// The workgroup's range of k, part of k and batch item.
uint k_begin, k_end;
uint split, batch;
T_PTR base_a, base_b;
#if AXPBY
T_PTR base_c;
#endif

// Computes block `tile` of a matrix.
void multiply(uint tile);
#include "gemm/bands.glsl"

// The matrix of y that put() writes to.
Y_PTR y_matrix() {
  int64_t item = int64_t(batch);
#if SPLIT
  item += int64_t(split) * int64_t(A.batches);
#endif
  return MOVED(Y, A.y, item * (int64_t(A.M) * int64_t(A.N)));
}

void put(Y_PTR y, uint r, uint c, Acc v) {
#if AXPBY
  v = A.alpha * v +
      A.beta * load(base_c, Index(r) * A.c_row + Index(c) * A.c_col);
#endif
  store(y, Y_AT(r, c), v);
}

void main() {
  uint group = group_index();
  uint per_matrix = A.m_tiles * A.n_tiles;
  // The condition is uniform in the workgroup.
  if (group < per_matrix * A.splits * A.batches) {
    uint outer = group / per_matrix;
    split = outer % A.splits;
    batch = outer / A.splits;
    k_begin = split * A.k_split;
    k_end = min(A.K, k_begin + A.k_split);
    int64_t ao, bo, co;
    bool inside;
    batch_offsets(batch, ao, bo, co, inside);
    // If a matrix index is out of range, the sum is empty.
    k_end = inside ? k_end : k_begin;
    base_a = MOVED(T, A.a, ao);
    base_b = MOVED(T, A.b, bo);
#if AXPBY
    base_c = MOVED(T, A.c, co);
#endif
    multiply(group % per_matrix);
  }
}
