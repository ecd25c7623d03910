#include "ops/gemm/gemm.h"

#include "ops/gemm/plan.h"
#include "ops/layout.h"

namespace mlx::core::vulkan {

array sorted_tiles(StreamEncoder& enc, const array& rhs, uint32_t height) {
  auto rows = static_cast<uint32_t>(rhs.size());
  array tiles = enc.temporary({static_cast<int>(rows) + 2}, uint32);
  enc.dispatch(
      plan_sorted_tiles(enc.target(), rows),
      {rhs},
      {tiles},
      SortedTilesArgs{rows, height},
      Grid{});
  return tiles;
}

bool run_sorted_gemm(StreamEncoder& enc, const GemmCall& call, array& out) {
  const array &a = call.a, &b = call.b;
  // Rows of a and matrices of b form one stack each.
  if (a.shape(-2) != 1 || !a.flags().row_contiguous || b.ndim() != 3 ||
      out.size() / out.shape(-1) > INT32_MAX - 2) {
    return false;
  }
  bool transposed = b.strides(-2) == 1;
  SortedProblem p{
      .type = type_of(out),
      .rows = static_cast<uint32_t>(out.size() / out.shape(-1)),
      .matrices = static_cast<uint32_t>(b.shape(0)),
      .n = static_cast<uint32_t>(out.shape(-1)),
      .k = static_cast<uint32_t>(a.shape(-1)),
      .b_transposed = transposed};
  // Rows consist of pieces of 16 bytes, none across an edge.
  int64_t pitch = b.strides(transposed ? -1 : -2);
  int64_t stride = b.strides(0);
  bool unit = transposed || b.strides(-1) == 1;
  p.aligned = unit && p.k % 8 == 0 && (transposed || p.n % 8 == 0) &&
      pitch % 8 == 0 && stride % 8 == 0 && a.offset() % 16 == 0 &&
      b.offset() % 16 == 0;
  auto plan = plan_sorted_gemm(enc.target(), p);
  if (!plan) {
    return false;
  }
  uint64_t groups = uint64_t(plan->m_tiles) * plan->n_tiles;
  array lhs = row_contiguous(*call.lhs, enc);
  array rhs = row_contiguous(*call.rhs, enc);
  array tiles = sorted_tiles(enc, rhs, plan->variant.BM);
  GemmSortedArgs args{
      .a_row = a.shape(-1),
      .b_matrix = stride,
      .b_pitch = pitch,
      .M = p.rows,
      .N = p.n,
      .K = p.k,
      .a_rows = static_cast<uint32_t>(a.size() / p.k),
      .b_matrices = p.matrices,
      .m_tiles = plan->m_tiles,
      .n_tiles = plan->n_tiles,
      .groups = static_cast<uint32_t>(groups)};
  enc.dispatch(
      plan->variant,
      {a, b, lhs, rhs, tiles},
      {out},
      args,
      linear(groups),
      Work{.flops = 2.0 * p.rows * p.n * p.k});
  return true;
}

} // namespace mlx::core::vulkan
