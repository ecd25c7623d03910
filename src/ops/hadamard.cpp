#include "mlx/backend/common/hadamard.h"

#include <algorithm>
#include <string_view>

#include "kernels/hadamard.h"
#include "mlx/primitives.h"
#include "ops/layout.h"

namespace mlx::core {

using namespace vulkan;

namespace {

// Parses MLX's matrices: text with a line of + and - for each row.
void read_signs(uint32_t (&signs)[28], int m) {
  auto matrices = hadamard_matrices();
  auto found = matrices.find(m);
  if (found == matrices.end()) {
    return;
  }
  int row = 0, col = 0;
  for (char c : found->second.substr(1)) {
    if (c == '\n') {
      ++row;
      col = 0;
    } else {
      signs[row] |= uint32_t(c == '+') << col++;
    }
  }
}

} // namespace

void Hadamard::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& enc = encoder(stream());
  auto [n, m] = decompose_hadamard(out.shape(-1));
  donate_or_alloc(inputs[0], out);
  array x = row_contiguous(inputs[0], enc);
  HadamardArgs p{};
  p.size = out.size();
  p.n = n;
  read_signs(p.signs, m);

  constexpr uint32_t most = 4096; // floats in 16 KiB of shared memory
  array at = x;
  auto pass = [&](const char* step, uint32_t tile, uint64_t groups, bool last) {
    // Items stay float between passes.
    array to = last || out.dtype() == float32
        ? out
        : enc.temporary(out.shape(), float32);
    p.scale = last ? scale_ : 1;
    HadamardVariant variant{
        .T = type_of(at),
        .U = type_of(to),
        .M = step == std::string_view("Tiles") ? 1 : m,
        .STEP = step,
        .TILE = tile};
    enc.dispatch(variant, {at}, {to}, p, linear(groups));
    at = to;
  };
  if (m > 1 && uint32_t(n * m) <= most) {
    pass("Rows", n * m, p.size / (n * m), true);
    return;
  }
  for (uint64_t done = 1; done < uint64_t(n);) {
    p.stride = done;
    // Later passes keep at least 32 columns, for whole cache lines.
    uint64_t reach = done == 1 ? most : most / 32;
    uint64_t span = std::min<uint64_t>(n / done, reach);
    uint32_t tile = done == 1 && n <= 1024 ? 1024 : most;
    p.columns = done == 1 ? 1 : tile / span;
    p.high = p.columns * span;
    done *= span;
    pass("Tiles", tile, ceil_div(p.size, tile), m == 1 && done == n);
  }
  if (m > 1) {
    pass("Across", 1, ceil_div(p.size / m, 256), true);
  }
}

} // namespace mlx::core
