// Quantized products: of rows and one matrix, as in a linear layer (qmm.cpp),
// of stacks and by index (stacked.cpp), and with operands that are converted
// first (quantize.cpp).
#pragma once

#include <optional>

#include "backend/stream_encoder.h"
#include "mlx/primitives.h"
#include "ops/quant/plan.h"

namespace mlx::core::vulkan {

inline QuantFormat format_of(QuantizationMode mode, int bits, int group) {
  return quant_modes[static_cast<int>(mode)].format(bits, group);
}

// `side`: the biases (affine), or the global scale (nvfp4): one value, or one
// for each matrix of w with indices.
struct QuantOperands {
  array x, w, scales;
  QuantFormat format;
  bool transpose = true; // w is (n, k)
  std::optional<array> side;
  // The matrix of x and of w for each product; both or none.
  std::optional<array> lhs, rhs;
  uint32_t experts = 0; // w holds some of so many (expert_cache.h); 0: all
  bool sorted = false; // equal rhs indices are adjacent
  bool last_use = false; // x is not read again
};

// out = x @ w^T (transpose) or x @ w; allocates out. The caller or the encoder
// keeps operands alive; only matrices with non-contiguous rows are copied.
void quantized_product(StreamEncoder& enc, QuantOperands&& o, array& out);

// quantized_product() for any batch dimensions of x and w, and by index.
// Expects matrices with contiguous rows, and memory in `out`.
void stacked_product(StreamEncoder& enc, QuantOperands& o, array& out);

// The kernel of a product; none if w is to be dequantized first, which happens
// only for rows times one matrix.
std::optional<QuantPlan> plan_product(StreamEncoder& enc, QuantShape& shape);

// Runs the planned kernel, with a `stack` unless it is null; sets tiles and
// groups of `args`. `descriptor` describes the product to rewrites, which do
// not see products whose parts of k are summed afterwards.
void run_planned(
    StreamEncoder& enc,
    const QuantPlan& plan,
    const QuantShape& shape,
    const FewOperands& inputs,
    ProductArgs& args,
    const ProductStack* stack,
    array& out,
    const Descriptor& descriptor);

// Packs rows of x, `x_row` items apart, if the kernel needs that; sets x_row to
// the distance between the packed ones.
void pack_rows(
    StreamEncoder& enc,
    const QuantPlan& plan,
    const QuantShape& shape,
    array& x,
    uint32_t rows,
    int64_t& x_row);

// The distance between the matrices of the last n axes; none if they are not
// evenly spaced.
std::optional<int64_t> even_stride(const array& a, int n);

// Whether an operand starts at a multiple of 16 bytes at each of these strides,
// which are combined bit by bit.
inline bool aligned16(const array& a, int64_t strides = 0) {
  return (a.offset() | strides * static_cast<int64_t>(a.itemsize())) % 16 == 0;
}

// Operands of a product that quantizes x too. Inputs: x, w, `between` others,
// scales if w is quantized, and for nvfp4 optionally both global scales.
QuantOperands qq_operands(
    StreamEncoder& enc,
    const std::vector<array>& inputs,
    size_t between,
    const QuantFormat& format);

// Rows times one matrix that is dequantized first, for a dense product.
void dequantized_product(
    StreamEncoder& enc,
    const QuantOperands& o,
    const ProductArgs& args,
    array& out);

} // namespace mlx::core::vulkan
