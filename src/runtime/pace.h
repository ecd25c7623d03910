// After how many operations of MLX a batch is closed. Pure, free of Vulkan
// calls.
//
// A batch costs its caller some 10 us and its end cuts what rewrite.h joins, so
// few are better; but an idle device waits for what is not submitted, and so
// does the memory that it pins. So the first batches of an eval are short, each
// twice the one before; while the device has a whole batch to begin, or the
// recorder is behind, there is no hurry; and an eval that its caller waits for
// ends with short ones too, as the device is at the last one when all is
// encoded.
//
// Where models have seams, which no rewrite joins over, batches end at those:
// else what a rewrite makes of a layer, and so which kernels a start compiles,
// would change with how busy the device happens to be.
#pragma once

#include <algorithm>
#include <cstdint>

namespace mlx::core::vulkan {

class Pace {
 public:
  static constexpr uint32_t first = 25; // operations
  static constexpr uint32_t usual = 100;
  static constexpr uint32_t longest = 400;
  // A batch that pins more stays at the usual length. Decoding pins less in 400
  // operations; prompts and training more.
  static constexpr uint64_t light = 32ull << 20;
  static constexpr uint32_t unknown = ~0u;
  // A batch waits for its next seam until so many operations follow the last
  // one; half a layer has 20 to 30.
  static constexpr uint32_t patience = 48;

  // `most` operations a batch; the usual number leaves it to the pace.
  explicit Pace(uint32_t most) : fixed_(most == usual ? 0 : most) {
    begin();
  }

  // With the next batch an eval begins; of so many operations if they are known
  // and its caller waits for it.
  void begin(uint32_t operations = unknown) {
    left_ = operations;
    ramp_ = first;
    start();
  }
  // A batch of so many was closed, and the eval goes on.
  void closed(uint32_t operations) {
    if (left_ != unknown) {
      left_ -= std::min(left_, operations);
    }
    ramp_ = std::min(2 * ramp_, longest);
    start();
  }

  // The next operation is the first behind a seam. True: the batch is to be
  // closed before it, and this said again in the next one.
  bool seam(uint32_t operations) {
    seam_by_ = fixed_ ? 0 : operations + patience;
    return due_;
  }

  // Before so many operations enough() need not be asked.
  uint32_t look_at() const {
    return look_;
  }
  // Whether the open batch is to be closed. `no_hurry`: what was closed before
  // it has not all begun on the device.
  template <typename F>
  bool enough(uint32_t operations, uint64_t pinned, F&& no_hurry) {
    if (fixed_) {
      return operations >= fixed_;
    }
    if (!due_) {
      uint32_t most = std::min(pinned > light ? usual : longest, tail());
      due_ = operations >= most || (operations >= ramp_ && !no_hurry());
    }
    look_after(operations);
    return due_ && operations >= seam_by_;
  }

 private:
  void start() {
    due_ = false;
    seam_by_ = 0;
    look_after(0);
  }
  void look_after(uint32_t operations) {
    look_ = fixed_ ? fixed_ : due_ ? seam_by_ : operations + first;
  }
  uint32_t tail() const {
    return left_ == unknown ? longest : std::max(2 * first, left_ / 2);
  }

  uint32_t fixed_; // 0: none
  uint32_t left_, ramp_, look_;
  uint32_t seam_by_; // no waiting for a seam from so many operations
  bool due_; // there are enough
};

} // namespace mlx::core::vulkan
