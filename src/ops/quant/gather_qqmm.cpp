#include "ops/quant/qmm.h"

namespace mlx::core {

void GatherQQMM::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& enc = vulkan::encoder(stream());
  auto format = vulkan::format_of(mode_, bits_, group_size_);
  auto operands = vulkan::qq_operands(enc, inputs, 2, format);
  operands.lhs = inputs[2];
  operands.rhs = inputs[3];
  operands.sorted = right_sorted_;
  vulkan::quantized_product(enc, std::move(operands), out);
}

} // namespace mlx::core
