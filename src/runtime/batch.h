// What the encoder fills and the recorder submits: plain records of dispatches
// and copies, with all that they need. A Batch belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/hazards.h"
#include "runtime/keeper.h"
#include "runtime/timeline.h"

namespace mlx::core::vulkan {

struct Kernel; // pipeline/pipeline.h

struct Grid {
  uint32_t x = 1, y = 1, z = 1;
};

// What a dispatch does, for the estimate of its time (work.h).
struct Work {
  double flops = 0; // or what takes as long; 0: its bytes say all
  double bytes = 0; // read and written; 0: its operands' ranges
};

constexpr size_t max_push_bytes = 128;

struct Record {
  enum class Kind : uint8_t { Dispatch, Copy };
  Kind kind = Kind::Dispatch;
  const Kernel* kernel = nullptr;
  Grid grid;
  // The argument block: `pushed`, or bytes of Batch::arguments.
  bool args_in_memory = false;
  uint32_t args_offset = 0, args_size = 0;
  uint32_t first_access = 0, access_count = 0;
  uint64_t bytes = 0; // touched, for the profile
  float seconds = 0; // that a dispatch is expected to take
  uint32_t parts = 1; // more: `kernel` can be run in parts, and is
  // Copy: whole buffers, from their first byte
  VkBuffer src = VK_NULL_HANDLE, dst = VK_NULL_HANDLE;
  uint64_t copy_size = 0;
  alignas(8) std::byte pushed[max_push_bytes];
};

// Bytes copied on the host just before submission, when every wait of the
// batch is over (memory that existed before the device started).
struct HostCopy {
  void* dst;
  const void* src;
  size_t size;
};

struct Batch {
  explicit Batch(uint32_t stream_id) : stream_id(stream_id), keeper(stream_id) {
    records.reserve(128);
    accesses.reserve(512);
  }

  uint32_t stream_id;
  std::vector<Record> records;
  std::vector<Access> accesses;
  std::vector<std::byte> arguments; // argument blocks too large to be pushed
  std::vector<HostCopy> host_copies;
  std::vector<EventPoint> waits;
  Keeper keeper;
  std::shared_ptr<Completion> completion;
  std::function<void()> on_retired; // runs on the thread that retires it
  uint64_t pinned_bytes = 0;
  double encode_begin = 0; // profile, seconds

  bool empty() const {
    return records.empty() && waits.empty() && host_copies.empty() &&
        keeper.empty();
  }
};

} // namespace mlx::core::vulkan
