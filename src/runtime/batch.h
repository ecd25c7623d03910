// What the encoder fills and the recorder submits: plain records of dispatches
// and copies, with all that they need. A Batch belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/allocation.h"
#include "runtime/descriptor.h"
#include "runtime/hazards.h"
#include "runtime/host_group.h"
#include "runtime/pins.h"
#include "runtime/timeline.h"

namespace mlx::core::vulkan {

struct Kernel; // pipeline/pipeline.h

struct Grid {
  uint32_t x = 1, y = 1, z = 1;
};

// A one-dimensional number of workgroups, folded so that no axis exceeds
// 65,535 (pair with group_index() in GLSL and compare with the real count).
Grid linear(uint64_t groups);

// Workgroups for n items at `per_group` items each, folded likewise.
inline Grid linear(uint64_t n, uint64_t per_group) {
  return linear((n + per_group - 1) / per_group);
}

// What a dispatch does, for the estimate of its time (work.h).
struct Work {
  double flops = 0; // or what takes as long; 0: its bytes say all
  double bytes = 0; // read and written; 0: its operands' ranges
};

constexpr size_t max_push_bytes = 128;

struct Record {
  Record() {} // not = default: that would fill `pushed` with zeros
  enum class Kind : uint8_t { Dispatch, Copy };
  Kind kind = Kind::Dispatch;
  const Kernel* kernel = nullptr;
  Grid grid;
  // The argument block: `pushed`, or bytes of Batch::arguments.
  bool args_in_memory = false;
  uint32_t args_offset = 0, args_size = 0;
  uint32_t first_access = 0, access_count = 0;
  uint64_t bytes = 0; // touched, for the profile
  float seconds = 0; // that it is expected to take
  uint32_t parts = 1; // more: `kernel` can be run in parts, and is
  uint32_t meeting = 0; // 1 + its index in Batch::meetings
  // Copy: whole buffers, from their first byte
  VkBuffer src = VK_NULL_HANDLE, dst = VK_NULL_HANDLE;
  uint64_t copy_size = 0;
  Descriptor what;
  alignas(8) std::byte pushed[max_push_bytes];
};

// Where the argument block of a record is to be written; `arguments` are those
// of its batch.
std::byte* room_for_args(std::vector<std::byte>& arguments, Record& r);

// Bytes copied on the host just before submission, when every wait of the
// batch is over (memory that existed before the device started).
struct HostCopy {
  void* dst;
  const void* src;
  size_t size;
};

// The host's writes to show to the device just before submission, if it can
// have written: not until `download`, the last one to this memory, is done, and
// its cache holds what was there before until then.
struct Flush {
  Allocation memory;
  std::shared_ptr<Completion> download;
};

struct Batch {
  explicit Batch(uint32_t stream_id) : stream_id(stream_id), pins(stream_id) {}

  uint32_t stream_id;
  std::vector<Record> records;
  std::vector<Access> accesses;
  std::vector<std::byte> arguments; // argument blocks too large to be pushed
  std::vector<HostCopy> host_copies;
  // What the host wrote, shown to the device after those; and what the device
  // writes, shown to the host before anyone is told that the batch is done.
  std::vector<Flush> flushes;
  std::vector<Allocation> invalidations;
  std::vector<EventPoint> waits;
  // Of the batch before it in its stream, if that may yet fail: then this one,
  // which may read what it did not write, fails too.
  std::shared_ptr<Completion> follows;
  // Records that other processes take part in: all of its own while the batch
  // is held, in its order; then those that it has started.
  std::shared_ptr<HostGroup> group;
  std::vector<Meeting> meetings;
  bool host_read = false; // copies what was done before to the host
  bool prepared = false; // rewritten, and its kernels are built
  Pins pins;
  std::shared_ptr<Completion> completion;
  std::function<void()> on_retired; // runs on the thread that retires it
  uint64_t pinned_bytes = 0;
  double encode_begin = 0; // profile, seconds
  std::string call; // MLX_VK_DEBUG=bounds: the one primitive that it is

  // That its records are expected to take.
  double seconds() const;
  bool empty() const {
    return records.empty() && waits.empty() && host_copies.empty() &&
        invalidations.empty() && pins.empty();
  }
};

// Takes the records before `record` out of a batch, with all that must come
// before them. What it keeps alive stays behind: that is retired later.
std::unique_ptr<Batch> split(Batch& batch, uint32_t record);

// The memory of batches that are done, for new ones: their vectors are large,
// and would be freed on another thread than the one that fills them.
// Thread-safe.
class BatchPool {
 public:
  std::unique_ptr<Batch> take(uint32_t stream_id);
  // Ends the batch: lets go of all that it keeps.
  void give_back(std::unique_ptr<Batch> batch);

 private:
  // All empty, with memory.
  struct Vectors {
    std::vector<Record> records;
    std::vector<Access> accesses;
    std::vector<std::byte> arguments;
    Pins::Lists kept;
  };
  static constexpr size_t most = 16, most_records = 4096;
  std::mutex mutex_;
  std::vector<Vectors> free_;
};

} // namespace mlx::core::vulkan
