// Detects dropped submissions. Drivers reset a GPU that runs one submission for
// too long and may continue with the next one without an error ("soft
// recovery"), signalling the timeline as usual. Each submission therefore ends
// with a timestamp query: a ticket that the timeline has passed without its
// timestamp was dropped.
//
// Of the ways to leave a mark, a timestamp delays the next submission least: 1
// us on an H200; an event takes 3 us, and a stored word with its barrier 5 us.
//
// If the first timestamp of a device is missing, the driver is assumed to
// support none and none is checked.
//
// Threads: the recorder calls prepare() and append(), any thread calls
// written().
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "vk/vk.h"

namespace mlx::core::vulkan {

class Sentinels {
 public:
  // The size of the ring of queries: at most this many submissions are in
  // flight.
  static constexpr uint64_t count = 4096;

  // The device must have host_query_reset and timestamps. Throws VkError.
  Sentinels(const Vk& vk, VkDevice device);
  ~Sentinels(); // the device must be idle
  Sentinels(const Sentinels&) = delete;
  Sentinels& operator=(const Sentinels&) = delete;

  // Resets the query of `ticket`, which is one more than the last ticket.
  // Ticket `ticket - count` must be finished.
  void prepare(uint64_t ticket);
  // Appends the timestamp of `ticket` to a command buffer.
  void append(VkCommandBuffer commands, uint64_t ticket);

  // Whether the timestamp of `ticket`, which the timeline has passed, was
  // written. True for tickets whose query is in use by a later one.
  bool written(uint64_t ticket);

 private:
  bool available(uint64_t ticket);

  const Vk& vk_;
  VkDevice device_;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  std::mutex mutex_; // guards the host's use of queries_, and prepared_
  uint64_t prepared_ = 0; // the last ticket
  std::atomic<bool> shown_{false}, useless_{false};
};

} // namespace mlx::core::vulkan
