// MaskedScatter: counts the true items by block, then assigns; a mask of one
// block needs no count.
#include "mlx/primitives.h"

#include "kernels/masked_scatter.h"
#include "ops/indices.h"

namespace mlx::core {

using namespace vulkan;

void MaskedScatter::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& mask = inputs[1];
  auto& src = inputs[2];
  copy_to_update(inputs[0], out, stream());
  if (mask.size() == 0 || src.size() == 0) {
    return;
  }
  auto& enc = encoder(stream());

  uint32_t rows = mask.shape(0);
  uint64_t row = mask.size() / rows;
  // Each block sums the counts before it, so there must be few blocks.
  constexpr uint64_t group = 256, most_blocks = 4096;
  uint64_t per_row = std::max<uint64_t>(1, most_blocks / rows);
  uint32_t chunks = std::max<uint64_t>(8, row / (group * per_row) + 1);
  uint32_t blocks = (row + group * chunks - 1) / (group * chunks);
  auto [mask_shape, mask_strides] = collapsed(mask.shape(), mask.strides());
  auto [src_shape, src_strides] = collapsed(src.shape(), src.strides());
  auto& longest = mask_shape.size() > src_shape.size() ? mask_shape : src_shape;
  int ndim = variant_ndim(longest.size(), "masked_scatter");
  with_constant<1, max_ndim>(ndim, [&](auto ndim) {
    MaskedScatterArgs<ndim> args{
        .row = row,
        .src_row = src.size() / rows,
        .mask_ndim = uint32_t(mask_shape.size()),
        .src_ndim = uint32_t(src_shape.size()),
        .blocks = blocks,
        .rows = rows,
        .chunks = chunks};
    assign(args.mask_strides, mask_strides);
    assign(args.src_strides, src_strides);
    assign(args.mask_shape, mask_shape);
    assign(args.src_shape, src_shape);

    auto grid = linear(uint64_t(blocks) * rows);
    array counts = enc.temporary({static_cast<int>(blocks * rows)}, uint32);
    MaskedScatterVariant variant{
        .COUNT = true,
        .WORD = 1,
        .NDIM = ndim,
        .LARGE = needs_large_count(std::max(mask.size(), src.size()))};
    if (blocks > 1) {
      enc.dispatch(variant, {mask}, {counts}, args, grid);
    }
    variant.COUNT = false;
    variant.WORD = out.itemsize();
    enc.dispatch(variant, {mask, counts, src}, {out}, args, grid);
  });
}

} // namespace mlx::core
