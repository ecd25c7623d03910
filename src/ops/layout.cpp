#include "ops/layout.h"

#include "mlx/backend/gpu/copy.h"
#include "runtime/device.h"

namespace mlx::core::vulkan {

void donate_or_alloc(const array& in, array& out) {
  if (in.flags().row_contiguous && is_donatable(in, out) &&
      in.size() == out.size()) {
    out.copy_shared_buffer(
        in, make_contiguous_strides(out.shape()), in.flags(), in.data_size());
  } else {
    out.set_data(allocator::malloc(out.nbytes()));
  }
}

void alloc_like(const array& in, array& out, bool donatable) {
  if (donatable && in.itemsize() == out.itemsize()) {
    out.copy_shared_buffer(in);
  } else {
    out.set_data(
        allocator::malloc(in.data_size() * out.itemsize()),
        in.data_size(),
        in.strides(),
        in.flags());
  }
}

void fill_with_zeros(array& out, StreamEncoder& enc) {
  array zero(0, out.dtype());
  enc.add_temporary(zero);
  fill_gpu(zero, out, enc.stream());
}

array zeros(Shape shape, Dtype dtype, StreamEncoder& enc) {
  array out(std::move(shape), dtype, nullptr, {});
  fill_with_zeros(out, enc);
  enc.add_temporary(out);
  return out;
}

array row_contiguous(const array& a, StreamEncoder& enc) {
  if (a.flags().row_contiguous) {
    return a;
  }
  array copy = contiguous_copy_gpu(a, enc.stream());
  enc.add_temporary(copy);
  return copy;
}

bool worth_fetching(const array& w, uint64_t rows, StreamEncoder& enc) {
  constexpr uint64_t few = 16;
  auto* b = buffer_of(w);
  if (rows <= few || !b || b->kind != BufferKind::Shared ||
      !enc.raw().device().memory().in_place(*b)) {
    return false;
  }
  uint64_t matrix = uint64_t(w.shape(-1)) * w.shape(-2);
  uint64_t bytes = w.data_size() * w.itemsize();
  // A third of what weights leave free.
  uint64_t room = enc.raw().device().memory().budget() / 18;
  return rows >= w.size() / matrix && w.flags().contiguous &&
      bytes <= std::min<uint64_t>(room, INT32_MAX);
}

std::optional<array> room_for_copy(uint64_t bytes, StreamEncoder& enc) {
  array room = enc.scratch({static_cast<int>(bytes)}, uint8);
  if (enc.raw().device().memory().in_place(*buffer_of(room))) {
    return std::nullopt;
  }
  return room;
}

std::optional<array>
fetched_weights(const array& w, uint64_t rows, StreamEncoder& enc) {
  if (!worth_fetching(w, rows, enc)) {
    return std::nullopt;
  }
  auto room = room_for_copy(w.data_size() * w.itemsize(), enc);
  if (!room) {
    return std::nullopt;
  }
  array fetched(w.shape(), w.dtype(), nullptr, {});
  fetched.copy_shared_buffer(*room, w.strides(), w.flags(), w.data_size());
  copy_gpu_inplace(w, fetched, CopyType::Vector, enc.stream());
  return fetched;
}

uint32_t mask_kind(const array* mask) {
  return !mask ? 0 : mask->dtype() == bool_ ? 1 : 2;
}

} // namespace mlx::core::vulkan
