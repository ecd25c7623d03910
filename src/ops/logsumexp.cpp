#include <algorithm>

#include "mlx/primitives.h"
#include "ops/rows.h"

namespace mlx::core {

using namespace vulkan;

namespace {

struct LogSumExpParams { // mirrors kernels/logsumexp.comp
  RowParams rows;
  uint32_t parts, chunk;
};

} // namespace

void LogSumExp::eval_gpu(const std::vector<array>& inputs, array& out) {
  if (!issubdtype(out.dtype(), floating)) {
    throw std::runtime_error(
        "[logsumexp] The Vulkan backend computes logsumexp of floating point "
        "types only. Cast the input first.");
  }
  out.set_data(allocator::malloc(out.nbytes()));
  if (out.size() == 0) {
    return;
  }
  auto& enc = encoder(stream());
  Rows rows = rows_of(inputs[0], enc, false);
  int vec = rows.vector4();
  auto kernel = [&](int lanes, int mode) -> const Kernel& {
    return enc.kernel(
        "logsumexp",
        {{"T", type_of(out)},
         {"LANES", lanes},
         {"VEC", mode == 2 ? 0 : vec},
         {"MODE", mode}});
  };
  // A few long rows, such as a vocabulary's logits: in parts.
  constexpr uint32_t part = 4096;
  if (rows.count < 64 && rows.length >= 4 * part) {
    uint32_t parts = std::min<uint32_t>((rows.length + part - 1) / part, 128);
    uint32_t chunk = ((rows.length + parts - 1) / parts + 3) / 4 * 4;
    parts = (rows.length + chunk - 1) / chunk;
    LogSumExpParams params{RowParams(rows), parts, chunk};
    array partial = enc.temporary(
        {static_cast<int>(rows.count), static_cast<int>(parts)}, complex64);
    enc.dispatch(
        kernel(256, 1),
        {rows.x},
        {partial},
        params,
        row_grid(rows.count * parts, 256));
    enc.dispatch(
        kernel(32, 2), {partial}, {out}, params, row_grid(rows.count, 32));
    return;
  }
  int lanes = row_team(rows.count, rows.length).lanes;
  enc.dispatch(
      kernel(lanes, 0),
      {rows.x},
      {out},
      LogSumExpParams{RowParams(rows), 1, rows.length},
      row_grid(rows.count, lanes));
}

} // namespace mlx::core
