#include "mlx/primitives.h"
#include "ops/rows.h"

namespace mlx::core {

using namespace vulkan;

// Always in float32, so that `precise` asks for nothing more.
void Softmax::eval_gpu(const std::vector<array>& inputs, array& out) {
  if (!issubdtype(out.dtype(), floating)) {
    throw std::runtime_error(
        "[softmax] The Vulkan backend computes softmax of floating point "
        "types only. Cast the input first.");
  }
  if (out.size() == 0) {
    out.set_data(allocator::malloc(0));
    return;
  }
  auto& enc = encoder(stream());
  Rows rows = rows_of(inputs[0], enc, true);
  alloc_rows(rows, inputs[0], out);
  auto [lanes, chunks] = row_team(rows.count, rows.length);
  auto& k = enc.kernel(
      "softmax",
      {{"T", type_of(out)},
       {"LANES", lanes},
       {"CHUNKS", chunks},
       {"VEC", int(rows.vector4())}});
  enc.dispatch(
      k, {rows.x}, {out}, RowParams(rows), row_grid(rows.count, lanes));
}

} // namespace mlx::core
