#include "mlx/fast_primitives.h"
#include "ops/layout.h"
#include "ops/rows/rows.h"

namespace mlx::core::fast {

using namespace vulkan;

bool CrossEntropy::use_fallback(Stream s) {
  return s.device == mlx::core::Device::cpu;
}

namespace {

void refuse_empty(const array& logits) {
  if (logits.size() == 0) {
    throw std::invalid_argument(
        "[cross_entropy] The logits are empty: there is no class to choose.");
  }
}

} // namespace

void CrossEntropy::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& out = outputs[0];
  refuse_empty(inputs[0]);
  auto& enc = encoder(stream());
  Rows rows = rows_of(inputs[0], enc, false);
  array targets = row_contiguous(inputs[1], enc);
  out.set_data(allocator::malloc(out.nbytes()));
  int lanes = row_team(rows.args.count, rows.args.n).lanes;
  auto& k = enc.kernel(CrossEntropyVariant{
      .T = type_of(rows.x), .LANES = lanes, .VEC = rows.vector4()});
  enc.dispatch(
      k,
      {rows.x, targets},
      {out},
      CrossEntropyArgs{rows.args},
      row_grid(rows.args.count, lanes));
}

void CrossEntropyVJP::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& out = outputs[0];
  refuse_empty(inputs[0]);
  auto& enc = encoder(stream());
  Rows rows = rows_of(inputs[0], enc, false);
  array targets = row_contiguous(inputs[1], enc);
  array loss = row_contiguous(inputs[2], enc);
  array cotangent = row_contiguous(inputs[3], enc);
  alloc_rows(rows, inputs[0], out);
  int lanes = row_team(rows.args.count, rows.args.n).lanes;
  auto& k = enc.kernel(CrossEntropyVjpVariant{
      .T = type_of(rows.x), .LANES = lanes, .VEC = rows.vector4()});
  enc.dispatch(
      k,
      {rows.x, targets, loss, cotangent},
      {out},
      CrossEntropyVjpArgs{rows.args},
      row_grid(rows.args.count, lanes));
}

} // namespace mlx::core::fast
