// BlockMaskedMM and SegmentedMM.
#include <array>

#include "mlx/primitives.h"

#include "kernels/gemm/block_mm.h"
#include "ops/gemm/gemm.h"
#include "ops/layout.h"

namespace mlx::core {

using namespace vulkan;

namespace {

void run_blocks(
    const char* name,
    StreamEncoder& enc,
    const array* (&in)[BLOCK_OPERANDS],
    const array* segments,
    int block,
    array& out) {
  const array& a = *in[BLOCK_A];
  const array& b = *in[BLOCK_B];
  BlockMmArgs p{};
  p.m = out.shape(-2);
  p.n = out.shape(-1);
  p.k = a.shape(-1);
  p.block = block;
  uint32_t tile = segments ? 64 : block;
  p.tiles_m = ceil_div(p.m, tile);
  p.tiles_n = ceil_div(p.n, tile);
  uint64_t batches = out.size() / (uint64_t(p.m) * p.n);
  uint64_t groups = batches * p.tiles_m * p.tiles_n;
  p.batches = batches;

  Shape shape = leading(out.shape(), 2);
  std::array<Strides, BLOCK_OPERANDS> strides;
  strides.fill(Strides(shape.size(), 0));
  std::vector<Operand> reads;
  for (int i = 0; i < BLOCK_OPERANDS; ++i) {
    if (in[i]) {
      reads.emplace_back(*in[i]);
      p.rows[i] = in[i]->strides(-2);
      p.cols[i] = in[i]->strides(-1);
      if (!segments) {
        strides[i] = leading(in[i]->strides(), 2);
      }
    }
  }
  if (segments) {
    reads.emplace_back(*segments);
  }
  collapse(shape, strides);
  variant_ndim(shape.size(), name); // throws
  p.ndim = shape.size();
  assign(p.shape, shape);
  for (int i = 0; i < BLOCK_OPERANDS; ++i) {
    assign(p.batch[i], strides[i]);
  }
  p.a_t = p.rows[BLOCK_A] == 1 && p.cols[BLOCK_A] != 1;
  p.b_t = p.rows[BLOCK_B] == 1 && p.cols[BLOCK_B] != 1;

  BlockMmVariant variant{
      .T = type_of(out),
      .TILE = tile,
      .OPERAND_MASKS = mask_kind(in[BLOCK_A_MASK]),
      .OUT_MASK = mask_kind(in[BLOCK_Y_MASK]),
      .SEGMENTED = segments != nullptr,
      .LARGE = needs_large_index(a) || needs_large_index(b)};
  // Each segment has a range of k.
  double products = segments ? double(p.m) * p.n : double(out.size());
  enc.dispatch(
      variant, reads, {out}, p, linear(groups), {.flops = 2 * products * p.k});
}

} // namespace

void BlockMaskedMM::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& enc = encoder(stream());
  if (inputs[0].size() == 0) {
    return fill_with_zeros(out, enc);
  }
  out.set_data(allocator::malloc(out.nbytes()));
  size_t n = inputs.size();
  const array* in[BLOCK_OPERANDS] = {&inputs[0], &inputs[1]};
  if (n > 3) {
    in[BLOCK_A_MASK] = &inputs[n - 2];
    in[BLOCK_B_MASK] = &inputs[n - 1];
  }
  if (n % 2) {
    in[BLOCK_Y_MASK] = &inputs[2];
  }
  run_blocks("block_masked_mm", enc, in, nullptr, block_size_, out);
}

void SegmentedMM::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& enc = encoder(stream());
  if (inputs[0].size() == 0) {
    return fill_with_zeros(out, enc);
  }
  out.set_data(allocator::malloc(out.nbytes()));
  array segments = row_contiguous(inputs[2], enc);
  const array* in[BLOCK_OPERANDS] = {&inputs[0], &inputs[1]};
  run_blocks("segmented_mm", enc, in, &segments, 64, out);
}

} // namespace mlx::core
