#include "ops/indices.h"

namespace mlx::core::vulkan {

TupleMove::TupleMove(
    const std::vector<array>& inputs,
    const std::vector<int>& axes,
    const array& target,
    const Shape& slice,
    const array* updates)
    : index_(&inputs[1], axes.size()),
      axes_(axes),
      target_(target),
      tuples_{inputs[1].shape(), {}},
      slices_{slice, {target.strides()}} {
  for (int axis : axes) {
    starts_.push_back(target.shape(axis) - slice[axis] + 1);
  }
  for (auto& index : index_) {
    tuples_.strides.push_back(index.strides());
  }
  if (updates) {
    auto& all = updates->strides();
    auto split = all.begin() + tuples_.shape.size();
    tuples_.strides.emplace_back(all.begin(), split);
    slices_.strides.emplace_back(split, all.end());
  }
  collapse(tuples_.shape, tuples_.strides);
  collapse(slices_.shape, slices_.strides);
}

void TupleMove::check_count(const char* op) const {
  if (index_.size() > max_index_arrays) {
    throw std::invalid_argument(
        std::string("[") + op + "] The Vulkan backend takes at most " +
        std::to_string(max_index_arrays) + " index arrays; got " +
        std::to_string(index_.size()) + ".");
  }
}

int TupleMove::widen(const array& other) {
  Alignment alignment(target_.itemsize());
  alignment.bytes(target_.offset());
  alignment.bytes(other.offset());
  alignment.elements(slices_.shape.back());
  for (auto& strides : slices_.strides) {
    alignment.operand(strides);
  }
  for (int axis : axes_) {
    alignment.elements(target_.strides(axis));
  }
  bool updates = tuples_.strides.size() > index_.size();
  if (updates) {
    for (auto stride : tuples_.strides.back()) {
      alignment.elements(stride);
    }
  }
  ratio_ = alignment.word() / static_cast<int>(target_.itemsize());
  if (ratio_ > 1) {
    slices_.shape.back() /= ratio_;
    for (auto& strides : slices_.strides) {
      std::for_each(
          strides.begin(), strides.end() - 1, [&](auto& s) { s /= ratio_; });
    }
    if (updates) {
      for (auto& stride : tuples_.strides.back()) {
        stride /= ratio_;
      }
    }
  }
  return alignment.word();
}

} // namespace mlx::core::vulkan
