// QuantizedMatmul and QQMatmul.
#include <stdexcept>

#include "ops/layout.h"
#include "ops/quant/quantized_product.h"

namespace mlx::core {

void QuantizedMatmul::eval_gpu(const std::vector<array>& inputs, array& out) {
  bool last_use = inputs[0].is_donatable();
  vulkan::QuantOperands operands{inputs[0], inputs[1], inputs[2], {}, {}, {}};
  if (inputs.size() == 4) {
    operands.side = inputs[3];
  }
  operands.last_use = last_use;
  vulkan::quantized_product(
      vulkan::encoder(stream()),
      std::move(operands),
      out,
      vulkan::format_of(mode_, bits_, group_size_),
      transpose_);
}

namespace vulkan {

namespace {

// The weights of a qq product, quantized here if they are not yet.
std::pair<array, array> quantized_weights(
    StreamEncoder& enc,
    const array& w,
    const array* scales,
    const std::optional<array>& global_scale,
    const QuantFormat& format) {
  if (scales) {
    return {w, *scales};
  }
  auto codes_shape = w.shape();
  codes_shape.back() = w.shape(-1) * format.bits / 32;
  auto scales_shape = w.shape();
  scales_shape.back() = w.shape(-1) / format.group;
  std::vector<array> out{
      array(std::move(codes_shape), uint32, nullptr, {}),
      array(std::move(scales_shape), uint8, nullptr, {})};
  quantize(enc, w, global_scale, out, format);
  enc.add_temporary(out[0]);
  enc.add_temporary(out[1]);
  return {out[0], out[1]};
}

} // namespace

QuantOperands qq_operands(
    StreamEncoder& enc,
    const std::vector<array>& inputs,
    size_t between,
    const QuantFormat& format) {
  bool quantized = inputs[1].dtype() == uint32;
  size_t base = 2 + between + (quantized ? 1 : 0);
  // mx.gather_qqmm does not check what mx.qqmm checks.
  if (!issubdtype(inputs[0].dtype(), floating) ||
      !(quantized || issubdtype(inputs[1].dtype(), floating)) ||
      inputs.size() < base) {
    throw std::invalid_argument(
        "[gather_qqmm] x has to be of a real floating type, and w too or "
        "packed in uint32 and given with its scales.");
  }
  std::optional<array> x_scale, w_scale;
  if (inputs.size() == base + 2) {
    x_scale = inputs[base];
    w_scale = inputs[base + 1];
  }
  auto [w, scales] = quantized_weights(
      enc,
      inputs[1],
      quantized ? &inputs[2 + between] : nullptr,
      w_scale,
      format);
  array x = quantize_roundtrip(enc, inputs[0], x_scale, format);
  return {x, w, scales, w_scale, {}, {}};
}

} // namespace vulkan

void QQMatmul::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& enc = vulkan::encoder(stream());
  auto format = vulkan::format_of(mode_, bits_, group_size_);
  vulkan::quantized_product(
      enc, vulkan::qq_operands(enc, inputs, 0, format), out, format, true);
}

void GatherQMM::eval_gpu(const std::vector<array>& inputs, array& out) {
  size_t n = inputs.size();
  vulkan::QuantOperands operands{
      inputs[0],
      inputs[1],
      inputs[2],
      {},
      inputs[n - 2],
      inputs[n - 1],
      right_sorted_};
  if (n == 6) {
    operands.side = inputs[3];
  }
  vulkan::quantized_product(
      vulkan::encoder(stream()),
      std::move(operands),
      out,
      vulkan::format_of(mode_, bits_, group_size_),
      transpose_);
}

} // namespace mlx::core
