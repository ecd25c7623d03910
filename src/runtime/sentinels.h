// A timestamp that the device writes behind all else of every submission, so
// that one it dropped is noticed: drivers reset a GPU that is at something for
// long and may go on with the next submission as if all were well ("soft
// recovery"), the timeline included. Then a submission has its ticket, but not
// its timestamp.
//
// A timestamp, as the next submission waits for everything else that tells the
// host: on an H200 it costs 1 us of a submission, an event 3, and a word with
// the barrier before it 5.
//
// A driver that does not show the first one is taken not to show any, and none
// is missed then.
//
// Threads: the recorder makes room and writes commands, anyone looks.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "vk/vk.h"

namespace mlx::core::vulkan {

class Sentinels {
 public:
  // So many submissions may be on the queue at once: their queries are a ring.
  static constexpr uint64_t count = 4096;

  // The device must have host_query_reset and timestamps. Throws VkError.
  Sentinels(const Vk& vk, VkDevice device);
  ~Sentinels(); // the device is done
  Sentinels(const Sentinels&) = delete;
  Sentinels& operator=(const Sentinels&) = delete;

  // Before the submission of `ticket`, which is one more than the last one's;
  // that of `count` before is known to be finished.
  void prepare(uint64_t ticket);
  // Appends the timestamp.
  void append(VkCommandBuffer commands, uint64_t ticket);

  // Of a ticket that the timeline has passed. True too for one that was known
  // to be finished when its query was taken for another.
  bool written(uint64_t ticket);

 private:
  bool available(uint64_t ticket);

  const Vk& vk_;
  VkDevice device_;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  std::mutex mutex_; // over the host's use of queries_
  uint64_t prepared_ = 0; // the last ticket; under it
  std::atomic<bool> shown_{false}, useless_{false};
};

} // namespace mlx::core::vulkan
