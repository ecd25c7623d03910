// Conversions of operands: fast::Quantize in both directions, QQMatmul, which
// quantizes x too, rows packed for products, and fast::ConvertFP8.
#include "mlx/backend/common/unary.h"
#include "mlx/fast_primitives.h"

#include "kernels/quant/convert_fp8.h"
#include "kernels/quant/half_rows.h"
#include "kernels/quant/quantize.h"
#include "ops/gemm/gemm.h"
#include "ops/layout.h"
#include "ops/quant/qmm.h"

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
  uint32_t lanes = quantize_lanes(enc.target(), format);
  QuantizeVariant variant{format, roundtrip, by_fours(w), lanes};
  uint32_t invocations = count32(call, w, w.size() / f.group * lanes);
  QuantizeArgs args{.groups = invocations / lanes};
  enc.dispatch(variant, inputs, outputs, args, linear(invocations, 64));
}

// Writes dequantized values to `out`, which has memory.
void dequantize(
    StreamEncoder& enc,
    const array& w,
    const array& scales,
    const std::optional<array>& side,
    array& out,
    const QuantFormat& f) {
  array codes = row_contiguous(w, enc);
  array factors = row_contiguous(scales, enc);
  array last = side ? row_contiguous(*side, enc) : factors;
  FewOperands operands{codes, factors};
  if (side) {
    operands.add(last);
  }
  DequantizeVariant variant{{type_of(out), f, side.has_value()}};
  DequantizeArgs args{.units = count32("dequantize", out, out.size() / 8)};
  Grid grid = linear(args.units, DEQUANTIZE_WG * DEQUANTIZE_UNITS);
  enc.dispatch(variant, operands, {out}, args, grid);
}

} // namespace

void dequantized_product(
    StreamEncoder& enc,
    const QuantOperands& o,
    const ProductArgs& args,
    array& out) {
  int m = args.M, n = args.N, k = args.K;
  array w = enc.scratch(o.transpose ? Shape{n, k} : Shape{k, n}, out.dtype());
  dequantize(enc, o.w, o.scales, o.side, w, o.format);
  if (o.transpose) {
    w = view(w, {k, n}, {1, k});
  }
  array x = view(o.x, {m, k}, {args.x_row, 1});
  array y = view(out, {m, n}, {n, 1});
  run_gemm(enc, {x, w}, y);
}

void pack_rows(
    StreamEncoder& enc,
    const QuantPlan& plan,
    const QuantShape& shape,
    array& x,
    uint32_t rows,
    int64_t& x_row) {
  uint32_t k = shape.k;
  if (auto* v = std::get_if<QmmDotVariant>(&plan.kernel)) {
    uint32_t words = packed_row_words(k);
    array packed = enc.scratch({int(rows), int(words)}, uint32);
    PackRowsArgs pack{
        .x_row = x_row,
        .K = k,
        .row_words = words,
        .blocks = rows * (k / DOT_BLOCK)};
    PackRowsVariant variant{v->T, v->even_odd(), shape.x_aligned};
    Grid grid = linear(uint64_t(pack.blocks) * PACK_LANES, PACK_WG);
    enc.dispatch(variant, {x}, {packed}, pack, grid);
    x = packed;
    x_row = words;
  }
  auto* v = std::get_if<QmmCoopmatVariant>(&plan.kernel);
  if (v && v->units.halves) {
    uint32_t pitch = half_row_pitch(k, v->GROUP);
    array packed = enc.scratch({int(rows), int(pitch)}, x.dtype());
    HalfRowsArgs pack{
        .x_row = x_row,
        .K = k,
        .pitch = pitch,
        .groups = rows * (k / v->GROUP)};
    Grid grid = linear(uint64_t(pack.groups) * HALF_ROWS_LANES, HALF_ROWS_WG);
    enc.dispatch(HalfRowsVariant{v->T, v->GROUP}, {x}, {packed}, pack, grid);
    x = packed;
    x_row = pitch;
  }
}

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
  array w = inputs[1], scales = quantized ? inputs[2 + between] : w;
  if (!quantized) {
    auto codes_shape = w.shape(), scales_shape = w.shape();
    codes_shape.back() = w.shape(-1) * format.bits / 32;
    scales_shape.back() = w.shape(-1) / format.group;
    array codes = enc.temporary(std::move(codes_shape), uint32);
    scales = enc.temporary(std::move(scales_shape), uint8);
    quantize(enc, "quantize", w, w_scale, {codes, scales}, format, false);
    w = codes;
  }
  // Rounded to what the format can hold.
  array x = enc.temporary(inputs[0].shape(), inputs[0].dtype());
  quantize(enc, "qqmm", inputs[0], x_scale, {x}, format, true);
  return {.x = x, .w = w, .scales = scales, .format = format, .side = w_scale};
}

} // namespace vulkan

void fast::Quantize::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& enc = vulkan::encoder(stream());
  auto format = vulkan::format_of(mode_, bits_, group_size_);
  size_t at = dequantize_ ? 2 : 1;
  std::optional<array> last; // biases or the global scale
  if (inputs.size() > at) {
    last = inputs[at];
  }
  if (dequantize_) {
    auto& out = outputs[0];
    out.set_data(allocator::malloc(out.nbytes()));
    return vulkan::dequantize(enc, inputs[0], inputs[1], last, out, format);
  }
  for (auto& o : outputs) {
    o.set_data(allocator::malloc(o.nbytes()));
  }
  std::vector<vulkan::Operand> out(outputs.begin(), outputs.end());
  vulkan::quantize(enc, "quantize", inputs[0], last, out, format, false);
}

void QQMatmul::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& enc = vulkan::encoder(stream());
  auto format = vulkan::format_of(mode_, bits_, group_size_);
  vulkan::quantized_product(
      enc, vulkan::qq_operands(enc, inputs, 0, format), out);
}

void fast::ConvertFP8::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& enc = vulkan::encoder(stream());
  auto& out = outputs[0];
  array in = vulkan::row_contiguous(inputs[0], enc);
  out.set_data(allocator::malloc(out.nbytes()));
  vulkan::ConvertFp8Variant variant{
      .T = vulkan::type_of(to_fp8_ ? in : out), .TO_FP8 = to_fp8_};
  vulkan::ConvertFp8Args args{.n = out.size()};
  enc.dispatch(variant, {in}, {out}, args, vulkan::linear(out.size(), 256));
}

} // namespace mlx::core
