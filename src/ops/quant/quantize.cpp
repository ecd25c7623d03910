// fast::Quantize in both directions, every mode, and fast::ConvertFP8.
#include "mlx/backend/common/unary.h"
#include "mlx/fast_primitives.h"

#include "ops/layout.h"
#include "ops/quant/product.h"

namespace mlx::core {

namespace vulkan {

namespace {

struct GroupParams { // mirrors kernels/quant/quantize.comp
  uint32_t groups;
};

const Kernel& quantize_kernel(
    StreamEncoder& enc,
    const array& w,
    const QuantFormat& f,
    bool global,
    bool roundtrip) {
  return enc.kernel(
      "quant/quantize",
      {{"T", type_of(w)},
       {"BITS", f.bits},
       {"GROUP", f.group_size},
       {"FP", f.fp()},
       {"GLOBAL", global},
       {"ROUNDTRIP", roundtrip}});
}

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

void dequantize(
    StreamEncoder& enc,
    const std::vector<array>& inputs,
    array& out,
    const QuantFormat& f) {
  out.set_data(allocator::malloc(out.nbytes()));
  if (out.size() == 0) {
    return;
  }
  array w = row_contiguous(inputs[0], enc);
  array scales = row_contiguous(inputs[1], enc);
  std::vector<array> sides;
  if (inputs.size() > 2) {
    sides.push_back(row_contiguous(inputs[2], enc));
  }
  std::vector<Operand> operands{w, scales};
  for (auto& s : sides) {
    operands.emplace_back(s);
  }
  auto& k = enc.kernel(
      "quant/dequantize",
      {{"T", type_of(out)},
       {"BITS", f.bits},
       {"GROUP", f.group_size},
       {"FP", f.fp()},
       {"GLOBAL", f.fp() && !sides.empty()}});
  struct {
    uint32_t units;
  } params{count32("dequantize", out, out.size() / 8)};
  std::vector<Operand> outputs{out};
  enc.dispatch_bytes(
      k, operands, outputs, &params, sizeof(params), linear(params.units, 64));
}

} // namespace

void quantize(
    StreamEncoder& enc,
    const array& w_in,
    const std::optional<array>& global_scale,
    std::vector<array>& outputs,
    const QuantFormat& f) {
  for (auto& o : outputs) {
    o.set_data(allocator::malloc(o.nbytes()));
  }
  if (w_in.size() == 0) {
    return;
  }
  array w = row_contiguous(w_in, enc);
  std::vector<Operand> in{w};
  if (global_scale) {
    in.emplace_back(*global_scale);
  }
  std::vector<Operand> out(outputs.begin(), outputs.end());
  auto& k = quantize_kernel(enc, w, f, global_scale.has_value(), false);
  GroupParams params{count32("quantize", w, w.size() / f.group_size)};
  enc.dispatch_bytes(
      k, in, out, &params, sizeof(params), linear(params.groups, 64));
}

array quantize_roundtrip(
    StreamEncoder& enc,
    const array& x_in,
    const std::optional<array>& global_scale,
    const QuantFormat& f) {
  array x = row_contiguous(x_in, enc);
  array out = enc.temporary(x.shape(), x.dtype());
  if (x.size() == 0) {
    return out;
  }
  std::vector<Operand> in{x};
  if (global_scale) {
    in.emplace_back(*global_scale);
  }
  std::vector<Operand> outputs{out};
  auto& k = quantize_kernel(enc, x, f, global_scale.has_value(), true);
  GroupParams params{count32("qqmm", x, x.size() / f.group_size)};
  enc.dispatch_bytes(
      k, in, outputs, &params, sizeof(params), linear(params.groups, 64));
  return out;
}

} // namespace vulkan

void fast::Quantize::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& enc = vulkan::encoder(stream());
  vulkan::QuantFormat format{group_size_, bits_, mode_};
  if (dequantize_) {
    vulkan::dequantize(enc, inputs, outputs[0], format);
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
  if (out.size() == 0) {
    return;
  }
  auto& k = enc.kernel(
      "quant/convert_fp8",
      {{"T", vulkan::type_of(to_fp8_ ? in : out)}, {"TO_FP8", to_fp8_}});
  struct {
    uint64_t n;
  } params{out.size()};
  enc.dispatch(k, {in}, {out}, params, vulkan::linear(out.size(), 256));
}

} // namespace mlx::core
