// A word that the device writes last in every submission, so that one it
// dropped is noticed: drivers reset a GPU that is at something for long and may
// go on with the next submission as if all were well ("soft recovery"), the
// timeline included. Then a submission has its ticket, but not its word.
//
// Threads: the recorder writes commands, anyone looks.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/allocation.h"

namespace mlx::core::vulkan {

class Device;

class Sentinels {
 public:
  // So many submissions may be on the queue at once: their words are a ring.
  static constexpr uint64_t count = 16384;

  explicit Sentinels(Device& device);
  ~Sentinels(); // the device is done
  Sentinels(const Sentinels&) = delete;
  Sentinels& operator=(const Sentinels&) = delete;

  // Appends the write; what comes before must be done by a barrier, and another
  // shows it to the host.
  void append(VkCommandBuffer commands, uint64_t ticket);

  // Of a ticket that the timeline has passed, no more than `count` ago.
  bool written(uint64_t ticket) const {
    return std::atomic_ref(words_[ticket % count])
               .load(std::memory_order_acquire) ==
        static_cast<uint32_t>(ticket);
  }

 private:
  Device& device_;
  Allocation memory_;
  uint32_t* words_ = nullptr;
};

} // namespace mlx::core::vulkan
