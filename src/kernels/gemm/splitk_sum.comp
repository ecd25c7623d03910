// Sums the partial products [split][batch][m][n] of a split-k matrix product
// and computes y = alpha * sum + beta * c.
#include "gemm/acc.glsl"
#include "gemm/splitk_sum.h"
#define ARGS_BLOCK SplitSumArgs
#include "common/args.glsl"
#include "gemm/batch.glsl"

layout(local_size_x = 128) in;

void main() {
  uint64_t i = thread_index64();
  uint64_t matrix = uint64_t(A.m) * uint64_t(A.n);
  uint64_t total = matrix * uint64_t(A.batches);
  if (i < total) {
    Acc sum = Acc(0.0);
    for (uint s = 0; s < A.splits; ++s) {
      sum += load(A.parts, uint64_t(s) * total + i);
    }
#if AXPBY
    uint batch = uint(i / matrix);
    uint64_t rest = i - uint64_t(batch) * matrix;
    uint r = uint(rest / uint64_t(A.n));
    uint c = uint(rest - uint64_t(r) * uint64_t(A.n));
    int64_t ao, bo, co;
    bool inside;
    batch_offsets(batch, ao, bo, co, inside);
    co += int64_t(r) * A.c_row + int64_t(c) * A.c_col;
    sum = A.alpha * sum + A.beta * load(A.c, co);
#endif
    store(A.y, i, sum);
  }
}
