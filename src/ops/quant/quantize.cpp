// fast::Quantize in both directions and all modes, and fast::ConvertFP8.
#include "mlx/backend/common/unary.h"
#include "mlx/fast_primitives.h"

#include "kernels/quant/convert_fp8.h"
#include "kernels/quant/quantize.h"
#include "ops/layout.h"
#include "ops/quant/plan.h"
#include "ops/quant/quantized_product.h"

namespace mlx::core {

namespace vulkan {

namespace {

uint32_t count32(const char* call, const array& a, uint64_t n) {
  if (n > UINT32_MAX) {
    throw std::invalid_argument(
        std::string("[") + call +
        "] The Vulkan backend takes at most 2^32 "
        "groups at a time; the array has " +
        std::to_string(a.size()) + " elements. Split it along its first axis.");
  }
  return static_cast<uint32_t>(n);
}

// Writes codes and scales, or dequantized values, to allocated outputs.
void quantize(
    StreamEncoder& enc,
    const char* call,
    const array& w_in,
    const std::optional<array>& global_scale,
    const std::vector<Operand>& outputs,
    const QuantFormat& f,
    bool roundtrip) {
  if (w_in.size() == 0) {
    return;
  }
  array w = row_contiguous(w_in, enc);
  std::vector<Operand> inputs{w};
  if (global_scale) {
    inputs.emplace_back(*global_scale);
  }
  FormatVariant format{type_of(w), f, global_scale.has_value()};
  uint32_t lanes = quantize_lanes(enc.caps(), format);
  auto& k = enc.kernel(QuantizeVariant{format, roundtrip, by_fours(w), lanes});
  uint32_t invocations = count32(call, w, w.size() / f.group * lanes);
  QuantizeArgs args{.groups = invocations / lanes};
  enc.dispatch(k, inputs, outputs, args, linear(invocations, 64));
}

} // namespace

void dequantize(
    StreamEncoder& enc,
    const array& w,
    const array& scales,
    const std::optional<array>& side,
    array& out,
    const QuantFormat& f) {
  std::vector<Operand> operands{w, scales};
  if (side) {
    operands.emplace_back(*side);
  }
  auto& k = enc.kernel(DequantizeVariant{{type_of(out), f, side.has_value()}});
  DequantizeArgs args{.units = count32("dequantize", out, out.size() / 8)};
  Grid grid = linear(args.units, DEQUANTIZE_WG * DEQUANTIZE_UNITS);
  enc.dispatch(k, operands, {out}, args, grid);
}

void quantize(
    StreamEncoder& enc,
    const array& w,
    const std::optional<array>& global_scale,
    std::vector<array>& outputs,
    const QuantFormat& f) {
  for (auto& o : outputs) {
    o.set_data(allocator::malloc(o.nbytes()));
  }
  std::vector<Operand> out(outputs.begin(), outputs.end());
  quantize(enc, "quantize", w, global_scale, out, f, false);
}

array quantize_roundtrip(
    StreamEncoder& enc,
    const array& x,
    const std::optional<array>& global_scale,
    const QuantFormat& f) {
  array out = enc.temporary(x.shape(), x.dtype());
  quantize(enc, "qqmm", x, global_scale, {out}, f, true);
  return out;
}

} // namespace vulkan

void fast::Quantize::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& enc = vulkan::encoder(stream());
  auto format = vulkan::format_of(mode_, bits_, group_size_);
  if (dequantize_) {
    auto& out = outputs[0];
    out.set_data(allocator::malloc(out.nbytes()));
    auto rows = [&](size_t i) {
      return vulkan::row_contiguous(inputs[i], enc);
    };
    std::optional<array> side;
    if (inputs.size() > 2) {
      side = rows(2);
    }
    vulkan::dequantize(enc, rows(0), rows(1), side, out, format);
    return;
  }
  std::optional<array> global_scale;
  if (inputs.size() > 1) {
    global_scale = inputs[1];
  }
  vulkan::quantize(enc, inputs[0], global_scale, outputs, format);
}

void fast::ConvertFP8::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& enc = vulkan::encoder(stream());
  auto& out = outputs[0];
  array in = vulkan::row_contiguous(inputs[0], enc);
  out.set_data(allocator::malloc(out.nbytes()));
  auto& k = enc.kernel(vulkan::ConvertFp8Variant{
      .T = vulkan::type_of(to_fp8_ ? in : out), .TO_FP8 = to_fp8_});
  vulkan::ConvertFp8Args args{.n = out.size()};
  enc.dispatch(k, {in}, {out}, args, vulkan::linear(out.size(), 256));
}

} // namespace mlx::core
