// BlockMaskedMM and SegmentedMM.
#include <sstream>

#include "mlx/primitives.h"
#include "mlx/utils.h"

#include "ops/layout.h"

namespace mlx::core {

using namespace vulkan;

namespace {

enum { A, B, AMask, BMask, YMask, Operands };

struct BlockParams { // mirrors kernels/gemm/block_mm.comp
  uint32_t m, n, k, block;
  uint32_t tiles_m, tiles_n, batches;
  uint32_t a_t, b_t, pad;
  int64_t rows[Operands], cols[Operands];
  StridedParams<Operands> batch;
};

int kind_of(const array* mask) {
  return !mask ? 0 : mask->dtype() == bool_ ? 1 : 2;
}

void run_blocks(
    const char* name,
    StreamEncoder& enc,
    const array* (&in)[Operands],
    const array* segments,
    int block,
    array& out) {
  BlockParams p{};
  p.m = out.shape(-2);
  p.n = out.shape(-1);
  p.k = in[A]->shape(-1);
  p.block = block;
  uint32_t tile = segments ? 64 : block;
  p.tiles_m = (p.m + tile - 1) / tile;
  p.tiles_n = (p.n + tile - 1) / tile;
  uint64_t batches = out.size() / (uint64_t(p.m) * p.n);
  uint64_t groups = batches * p.tiles_m * p.tiles_n;
  if (groups > UINT32_MAX) {
    std::ostringstream msg;
    msg << "[" << name << "] The product of " << in[A]->shape() << " and "
        << in[B]->shape() << " needs " << groups
        << " workgroups; the Vulkan backend starts at most 2^32 - 1. Split the "
           "batch.";
    throw std::invalid_argument(msg.str());
  }
  p.batches = batches;

  std::vector<Strides> strides(Operands, Strides(out.ndim() - 2, 0));
  std::vector<Operand> reads;
  for (int i = 0; i < Operands; ++i) {
    if (!in[i]) {
      continue;
    }
    reads.push_back(*in[i]);
    p.rows[i] = in[i]->strides(-2);
    p.cols[i] = in[i]->strides(-1);
    if (!segments) {
      strides[i] = {in[i]->strides().begin(), in[i]->strides().end() - 2};
    }
  }
  if (segments) {
    reads.push_back(*segments);
  } else {
    Shape shape(out.shape().begin(), out.shape().end() - 2);
    auto [collapsed, by_operand] = collapse_contiguous_dims(shape, strides);
    p.batch = strided_params<Operands>(name, collapsed, by_operand);
  }

  p.a_t = p.rows[A] == 1 && p.cols[A] != 1;
  p.b_t = p.rows[B] == 1 && p.cols[B] != 1;

  bool large = needs_large_index(*in[A]) || needs_large_index(*in[B]);
  auto& k = enc.kernel(
      "gemm/block_mm",
      {{"T", type_of(out)},
       {"TILE", tile},
       {"OPERAND_MASKS", kind_of(in[AMask])},
       {"OUT_MASK", kind_of(in[YMask])},
       {"SEGMENTED", int(segments != nullptr)},
       {large ? "LARGE" : "SMALL", 1}});
  Operand written[] = {out};
  enc.dispatch_bytes(k, reads, written, &p, sizeof(p), linear(groups));
}

// Allocates out; false if that is all: there is nothing to add up, or to write.
bool prepare_output(const array& a, array& out, StreamEncoder& enc) {
  if (out.size() != 0 && a.size() == 0) {
    fill_with_zeros(out, enc);
    return false;
  }
  out.set_data(allocator::malloc(out.nbytes()));
  return out.size() != 0;
}

} // namespace

void BlockMaskedMM::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& enc = encoder(stream());
  if (!prepare_output(inputs[0], out, enc)) {
    return;
  }
  size_t n = inputs.size();
  const array* in[Operands] = {&inputs[0], &inputs[1]};
  if (n > 3) {
    in[AMask] = &inputs[n - 2];
    in[BMask] = &inputs[n - 1];
  }
  if (n % 2) {
    in[YMask] = &inputs[2];
  }
  run_blocks("block_masked_mm", enc, in, nullptr, block_size_, out);
}

void SegmentedMM::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& enc = encoder(stream());
  if (!prepare_output(inputs[0], out, enc)) {
    return;
  }
  array segments = row_contiguous(inputs[2], enc);
  const array* in[Operands] = {&inputs[0], &inputs[1]};
  run_blocks("segmented_mm", enc, in, &segments, 64, out);
}

} // namespace mlx::core
