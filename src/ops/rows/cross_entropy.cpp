#include "mlx/fast_primitives.h"
#include "ops/layout.h"
#include "ops/rows/rows.h"

namespace mlx::core::fast {

using namespace vulkan;

bool CrossEntropy::use_fallback(Stream s) {
  return s.device == mlx::core::Device::cpu;
}

namespace {

Rows rows_of_logits(const array& logits, StreamEncoder& enc) {
  if (logits.shape(-1) == 0) {
    throw std::invalid_argument(
        "[cross_entropy] The logits are empty: there is no class to choose.");
  }
  return rows_of(logits, enc, false);
}

template <typename Variant, typename Args>
void launch(
    StreamEncoder& enc,
    const Rows& rows,
    const std::vector<Operand>& reads,
    array& out) {
  const RowArgs& args = rows.args;
  int lanes = row_team(args.n).lanes;
  Variant variant{.T = type_of(rows.x), .LANES = lanes, .VEC = rows.vector4()};
  enc.dispatch(variant, reads, {out}, Args{args}, row_grid(args.count, lanes));
}

} // namespace

void CrossEntropy::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& out = outputs[0];
  auto& enc = encoder(stream());
  Rows rows = rows_of_logits(inputs[0], enc);
  array targets = row_contiguous(inputs[1], enc);
  out.set_data(allocator::malloc(out.nbytes()));
  launch<CrossEntropyVariant, CrossEntropyArgs>(
      enc, rows, {rows.x, targets}, out);
}

void CrossEntropyVJP::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& out = outputs[0];
  auto& enc = encoder(stream());
  Rows rows = rows_of_logits(inputs[0], enc);
  array targets = row_contiguous(inputs[1], enc);
  array loss = row_contiguous(inputs[2], enc);
  array cotangent = row_contiguous(inputs[3], enc);
  alloc_rows(rows, inputs[0], out);
  launch<CrossEntropyVjpVariant, CrossEntropyVjpArgs>(
      enc, rows, {rows.x, targets, loss, cotangent}, out);
}

} // namespace mlx::core::fast
