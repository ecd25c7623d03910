// Decides after how many operations of MLX a batch is closed. Pure.
//
// A batch costs its caller about 10 us, and rewrites do not join records of two
// batches: long batches are better for both. Short ones start an idle device
// earlier and release memory earlier. So the batches of an eval start short and
// double in length; they stay long while the device has a whole batch to begin;
// and an eval that its caller waits for ends with short batches, because the
// device then waits for the last one alone.
//
// A seam is a place in a model that no rewrite joins across. Batches end at
// seams, so that the kernels that a layer uses do not depend on how busy the
// device is.
#pragma once

#include <algorithm>
#include <cstdint>

namespace mlx::core::vulkan {

class BatchPolicy {
 public:
  static constexpr uint32_t first = 25; // operations
  static constexpr uint32_t usual = 100;
  static constexpr uint32_t longest = 400;
  // Bytes; a batch that pins more stays at the usual length. Decoding pins less
  // in 400 operations, prompts and training pin more.
  static constexpr uint64_t light = 32ull << 20;
  static constexpr uint32_t unknown = ~0u;
  // A due batch stays open for its next seam until this many operations follow
  // the last one. Half a layer has 20 to 30 operations.
  static constexpr uint32_t patience = 48;

  // Closes batches after `most` operations; `usual` lets the policy decide.
  explicit BatchPolicy(uint32_t most) : fixed_(most == usual ? 0 : most) {
    begin();
  }

  // Begins an eval. `operations` is its length, if that is known and the caller
  // waits for the eval.
  void begin(uint32_t operations = unknown) {
    left_ = operations;
    ramp_ = first;
    start();
  }
  // A batch of `operations` was closed and the eval continues.
  void closed(uint32_t operations) {
    if (left_ != unknown) {
      left_ -= std::min(left_, operations);
    }
    ramp_ = std::min(2 * ramp_, longest);
    start();
  }

  // The next operation is the first behind a seam. Returns true if the batch is
  // to be closed before it; the next batch then calls seam() again.
  bool seam(uint32_t operations) {
    seam_by_ = fixed_ ? 0 : operations + patience;
    return due_;
  }

  // enough() is false below this many operations.
  uint32_t look_at() const {
    return look_;
  }
  // Whether the open batch is to be closed. `no_hurry` returns whether an
  // earlier batch has not started on the device.
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

  uint32_t fixed_; // operations of each batch; 0: the policy decides
  uint32_t left_, ramp_, look_;
  uint32_t seam_by_; // operations from which a due batch is closed anywhere
  bool due_; // the batch is long enough and ends at the next seam
};

} // namespace mlx::core::vulkan
