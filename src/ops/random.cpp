#include "kernels/random.h"
#include "mlx/primitives.h"
#include "ops/elementwise.h"
#include "ops/layout.h"

namespace mlx::core {

void RandomBits::eval_gpu(const std::vector<array>& inputs, array& out) {
  using namespace vulkan;
  // Keys (N1, ..., NK, 2) give (N1, ..., NK, M1, M2, ...).
  out.set_data(allocator::malloc(out.nbytes()));
  auto& enc = encoder(stream());
  array keys = row_contiguous(inputs[0], enc);
  RandomArgs p;
  p.num_keys = keys.size() / 2;
  p.bytes_per_key = out.nbytes() / p.num_keys;
  uint64_t words = ceil_div(p.bytes_per_key, 4);
  p.pairs_per_key = ceil_div(words, 2);
  p.odd = words % 2;
  RandomVariant variant{
      .WORDS = p.bytes_per_key % 4 == 0,
      .LARGE = needs_large_index(keys) || needs_large_index(out)};
  enc.dispatch(
      variant, {keys}, {out}, p, dense_grid(p.num_keys * p.pairs_per_key));
}

} // namespace mlx::core
