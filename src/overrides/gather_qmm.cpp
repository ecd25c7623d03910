// Replaces gather_qmm(): MLX builds the same left indices in every call.
//
// Without left indices MLX adds an arange, a reshape and a broadcast to the
// graph, eight of the 54 primitives of a MoE layer's decode step. Here kept,
// evaluated arrays are passed to MLX's own function instead; the signature is
// in src/versions/members.cpp.
//
// What MLX could offer: docs/dev/upstream.md, "Left indices of gather_qmm".
#include "overrides/gather_qmm.h"

#include <mutex>
#include <vector>

#include "mlx/ops.h"
#include "mlx/utils.h"

namespace mlx::core {

namespace {

// Limits that suit decode steps; MLX computes larger indices in the graph.
constexpr size_t most_indices = 256, most_kept = 32;

struct KeptRows {
  Shape batch; // of x, without its matrices
  Shape indices; // of the right side
  array rows;
};

// The number of x's matrix for each right index: uint32, of the shape that both
// have when broadcast. Throws std::invalid_argument if they cannot be.
array make_rows(const Shape& batch, const Shape& shape) {
  size_t size = 1;
  for (int n : shape) {
    size *= n;
  }
  std::vector<uint32_t> rows(size);
  for (size_t i = 0; i < size; ++i) {
    size_t left = i, stride = 1;
    for (size_t d = 0; d < batch.size(); ++d) { // last axes first
      int n = batch[batch.size() - 1 - d];
      int of = shape[shape.size() - 1 - d];
      rows[i] += n > 1 ? stride * (left % of) : 0;
      left /= of;
      stride *= n;
    }
  }
  return array(rows.begin(), shape, uint32);
}

bool few(const Shape& shape) {
  size_t size = 1;
  for (int n : shape) {
    size *= n;
    if (size == 0 || size > most_indices) {
      return false;
    }
  }
  return true;
}

// Kept indices; empty if the graph must compute them.
std::optional<array> kept_rows(const array& x, const Shape& indices) {
  if (x.ndim() < 2 || !few(indices)) {
    return {};
  }
  Shape batch(x.shape().begin(), x.shape().end() - 2);
  static std::mutex mutex;
  // Leaked, since other static objects may free arrays at exit after this one.
  static auto* kept = new std::vector<KeptRows>;
  std::lock_guard lock(mutex);
  for (auto& k : *kept) {
    if (k.batch == batch && k.indices == indices) {
      return k.rows;
    }
  }
  if (kept->size() == most_kept || !few(batch)) {
    return {};
  }
  auto shape = broadcast_shapes(batch, indices);
  if (!few(shape)) {
    return {};
  }
  kept->push_back({batch, indices, make_rows(batch, shape)});
  return kept->back().rows;
}

} // namespace

namespace vulkan {

std::optional<array>
left_indices(const array& x, const std::optional<array>& right, bool sorted) {
  // For sorted indices MLX records in the primitive that none were given.
  return right && !sorted ? kept_rows(x, right->shape()) : std::nullopt;
}

} // namespace vulkan

} // namespace mlx::core
