// Matmul, AddMM and GatherMM.
#include <sstream>

#include "mlx/primitives.h"
#include "mlx/utils.h"

#include "backend/stream_encoder.h"
#include "ops/gemm/gemm.h"
#include "ops/layout.h"

namespace mlx::core {

namespace {

void require_inexact(const char* name, const array& out) {
  if (!issubdtype(out.dtype(), inexact)) {
    std::ostringstream msg;
    msg << "[" << name << "] The Vulkan backend multiplies floating point and "
        << "complex matrices only, not " << out.dtype()
        << "; cast the operands first.";
    throw std::runtime_error(msg.str());
  }
}

} // namespace

void Matmul::eval_gpu(const std::vector<array>& inputs, array& out) {
  require_inexact("matmul", out);
  out.set_data(allocator::malloc(out.nbytes()));
  auto& enc = vulkan::encoder(stream());
  auto b = vulkan::fetched_weights(inputs[1], out.size() / out.shape(-1), enc);
  vulkan::run_gemm(enc, {inputs[0], b ? *b : inputs[1]}, out);
}

void AddMM::eval_gpu(const std::vector<array>& inputs, array& out) {
  require_inexact("addmm", out);
  out.set_data(allocator::malloc(out.nbytes()));
  auto& enc = vulkan::encoder(stream());
  auto b = vulkan::fetched_weights(inputs[1], out.size() / out.shape(-1), enc);
  vulkan::run_gemm(
      enc, {inputs[0], b ? *b : inputs[1], &inputs[2], alpha_, beta_}, out);
}

void GatherMM::eval_gpu(const std::vector<array>& inputs, array& out) {
  require_inexact("gather_mm", out);
  auto& enc = vulkan::encoder(stream());
  if (inputs[0].size() == 0 || inputs[1].size() == 0) {
    return vulkan::fill_with_zeros(out, enc);
  }
  out.set_data(allocator::malloc(out.nbytes()));
  auto b = vulkan::fetched_weights(inputs[1], out.size() / out.shape(-1), enc);
  vulkan::GemmCall call{
      inputs[0], b ? *b : inputs[1], nullptr, 1, 0, &inputs[2], &inputs[3]};
  if (!right_sorted_ || !vulkan::run_sorted_gemm(enc, call, out)) {
    vulkan::run_gemm(enc, call, out);
  }
}

} // namespace mlx::core
