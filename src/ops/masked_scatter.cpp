// MaskedScatter: count the true items by block, then assign; masks of one
// block need no count.
#include "mlx/backend/gpu/copy.h"
#include "mlx/primitives.h"

#include "ops/indices.h"
#include "ops/strided.h"

namespace mlx::core {

void MaskedScatter::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& dst = inputs[0];
  auto& mask = inputs[1];
  auto& src = inputs[2];
  CopyType type = dst.data_size() == 1 ? CopyType::Scalar
      : dst.flags().row_contiguous     ? CopyType::Vector
                                       : CopyType::General;
  copy_gpu(dst, out, type, stream());
  if (mask.size() == 0 || src.size() == 0) {
    return;
  }
  auto& enc = vulkan::encoder(stream());

  uint32_t rows = mask.shape(0);
  uint64_t row = mask.size() / rows;
  uint64_t src_row = src.size() / rows;
  // Every block adds up the counts before it, so there are few of them.
  constexpr uint64_t group = 256, most_blocks = 4096;
  uint64_t per_row = std::max<uint64_t>(1, most_blocks / rows);
  uint32_t chunks = std::max<uint64_t>(8, row / (group * per_row) + 1);
  uint32_t blocks = (row + group * chunks - 1) / (group * chunks);
  bool wide = std::max(mask.size(), src.size()) >
      std::numeric_limits<uint32_t>::max() / 2;

  auto collapsed = [](const array& a) {
    Shape shape = a.shape();
    std::array<Strides, 1> strides{a.strides()};
    vulkan::collapse(shape, strides);
    return std::pair(shape, strides[0]);
  };
  auto small = [](const Shape& shape) {
    return vulkan::IndexTuples::small_ndim(shape.size(), "masked_scatter");
  };
  auto [mask_shape, mask_strides] = collapsed(mask);
  auto [src_shape, src_strides] = collapsed(src);
  int m_ndim = small(mask_shape), s_ndim = small(src_shape);

  vulkan::ArgBlock args;
  args.add<uint64_t>(row)
      .add<uint64_t>(src_row)
      .indices(mask_strides, m_ndim, true)
      .extents(mask_shape, m_ndim)
      .add<uint32_t>(mask_shape.size())
      .add<uint32_t>(blocks)
      .add<uint32_t>(rows)
      .add<uint32_t>(chunks);
  auto grid = vulkan::linear(uint64_t(blocks) * rows);

  array counts = enc.temporary({static_cast<int>(blocks * rows)}, uint32);
  if (blocks > 1) {
    auto& k = enc.kernel(
        "masked_scatter",
        {{"COUNT", 1}, {"M_NDIM", m_ndim}, {"WIDE", int(wide)}});
    vulkan::Operand read(mask);
    vulkan::dispatch(enc, k, {&read, 1}, counts, args, grid);
  }
  args.indices(src_strides, s_ndim, true)
      .extents(src_shape, s_ndim)
      .add<uint32_t>(src_shape.size());
  auto& k = enc.kernel(
      "masked_scatter",
      {{"COUNT", 0},
       {"WORD", out.itemsize()},
       {"M_NDIM", m_ndim},
       {"S_NDIM", s_ndim},
       {"WIDE", int(wide)}});
  const vulkan::Operand reads[] = {mask, counts, src};
  vulkan::dispatch(enc, k, reads, out, args, grid);
}

} // namespace mlx::core
