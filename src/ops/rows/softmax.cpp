#include "mlx/primitives.h"
#include "ops/rows/rows.h"

namespace mlx::core {

using namespace vulkan;

// Always computes in float32, so `precise` changes nothing.
void Softmax::eval_gpu(const std::vector<array>& inputs, array& out) {
  check_floating(out, "softmax");
  auto& enc = encoder(stream());
  Rows rows = rows_of(inputs[0], enc, true);
  alloc_rows(rows, inputs[0], out);
  auto [lanes, chunks] = softmax_team(rows.args.count, rows.args.n);
  SoftmaxVariant variant{
      .T = type_of(out),
      .LANES = lanes,
      .CHUNKS = chunks,
      .VEC = rows.vector4()};
  Descriptor descriptor;
  if (rows.dense && rows.args.count <= UINT32_MAX) {
    auto count = static_cast<uint32_t>(rows.args.count);
    descriptor = SoftmaxRecord{variant, count, rows.args.n};
  }
  enc.dispatch(
      variant,
      {rows.x},
      {out},
      SoftmaxArgs{rows.args},
      row_grid(rows.args.count, lanes),
      {},
      descriptor);
}

} // namespace mlx::core
