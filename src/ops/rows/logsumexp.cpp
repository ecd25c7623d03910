#include "mlx/primitives.h"
#include "ops/rows/rows.h"

namespace mlx::core {

using namespace vulkan;

void LogSumExp::eval_gpu(const std::vector<array>& inputs, array& out) {
  check_floating(out, "logsumexp");
  out.set_data(allocator::malloc(out.nbytes()));
  auto& enc = encoder(stream());
  Rows rows = rows_of(inputs[0], enc, false);
  uint64_t count = rows.args.count;
  auto [parts, chunk] = row_parts(count, rows.args.n);
  bool whole = parts == 1;
  int lanes = whole ? row_team(rows.args.n).lanes : 256;
  array to = whole
      ? out
      : enc.temporary(
            {static_cast<int>(count), static_cast<int>(parts)}, complex64);
  LogSumExpVariant variant{
      .T = type_of(out),
      .LANES = lanes,
      .VEC = rows.vector4(),
      .PARTS = !whole};
  enc.dispatch(
      variant,
      {rows.x},
      {to},
      LogSumExpArgs{rows.args, parts, chunk},
      row_grid(count * parts, lanes));
  if (!whole) {
    LogSumExpJoinVariant join{.T = type_of(out), .LANES = 32};
    enc.dispatch(
        join,
        {to},
        {out},
        LogSumExpJoinArgs{count, parts},
        row_grid(count, 32));
  }
}

} // namespace mlx::core
