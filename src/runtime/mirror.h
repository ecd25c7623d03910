// What memory.cpp and memory_moves.cpp share. Free of MLX.
#pragma once

#include <atomic>

#include "runtime/batch.h"
#include "runtime/memory.h"
#include "runtime/work.h"

namespace mlx::core::vulkan {

// A buffer's host side and which sides are valid; under mirror_mutex_.
struct Buffer::Mirror {
  Allocation host; // mapped; or only `heap` below
  void* heap = nullptr; // malloc'ed before the device started
  bool host_valid = false;
  bool device_valid = false;
  bool download_recorded = false; // an open or submitted batch downloads it
  // Batches that upload the buffer and may not be on the queue yet.
  std::vector<std::shared_ptr<Completion>> uploads;
  std::shared_ptr<Completion> last_write;
  std::shared_ptr<Completion> download; // the batch of the last one
  // A download outside of any stream that a host reader has to wait for.
  std::shared_ptr<Completion> fetch;
  // Signalled when a CPU stream has written the host side. Until then its
  // worker may ask for the pointer at any time.
  EventPoint cpu_writer;
  // Shared memory: the host's cache may hold dirty lines.
  bool touched = false;
  // Pointers given to the host; from kept_pointers on its side is kept.
  uint32_t pointers = 0;
  // The stream of a copy to the host's memory, which becomes the array's unless
  // somebody uses it meanwhile: then 0.
  uint32_t moving = 0;
  Allocation orphan; // the device side of a buffer that was freed meanwhile
  // The number of unretired batches that read a host side which is then freed:
  // with one memory, or of an array that has returned to the card.
  uint32_t uploading = 0;
  bool returned = false; // the device alone wrote the host side

  // Returns false while a download to the host side is under way, and after one
  // has failed.
  bool arrived() const {
    return !download || (download->reached() && download->error().empty());
  }
};

// Copies the first bytes of `src` to those from `begin` of `dst`.
void append_copy(
    Batch& batch,
    const Allocation& src,
    const Allocation& dst,
    size_t size,
    const Rates& rates,
    size_t begin = 0);

// For a copy that belongs to no stream.
inline uint32_t next_own_stream() {
  static std::atomic<uint32_t> next{0x80000000u};
  return next++;
}

// Smaller arrays of the device do not move to the host's memory.
constexpr size_t least_moved = 1 << 20; // bytes

} // namespace mlx::core::vulkan
