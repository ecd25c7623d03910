// A batch: plain records of dispatches and copies with everything they need.
// The encoder fills it and the recorder submits it; one thread at a time owns
// it.
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
#include "runtime/gate.h"
#include "runtime/hazards.h"
#include "runtime/pins.h"
#include "runtime/timeline.h"
#include "vk/integers.h"

namespace mlx::core::vulkan {

struct Kernel; // pipeline/pipeline.h

struct Grid {
  uint32_t x = 1, y = 1, z = 1;
};

// A grid of at least `groups` workgroups with no axis over 65,535. The kernel
// computes its index by group_index() and compares it with the real count.
Grid linear(uint64_t groups);

// A grid of workgroups for n items with `per_group` items each.
inline Grid linear(uint64_t n, uint64_t per_group) {
  return linear(ceil_div(n, per_group));
}

// The work of a dispatch, for the estimate of its time (work.h).
struct Work {
  double flops = 0; // or operations that take as long; 0: memory-bound
  double bytes = 0; // read and written; 0: the ranges of its operands
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
  uint64_t bytes = 0; // read and written, for the profile
  float flops = 0; // for the profile
  float seconds = 0; // expected run time
  uint32_t parts = 1; // dispatches that the grid is split into
  uint32_t hold = 0; // 1 + its index in Batch::holds
  // Copy: buffers, and their first bytes
  VkBuffer src = VK_NULL_HANDLE, dst = VK_NULL_HANDLE;
  uint64_t src_offset = 0, dst_offset = 0;
  uint64_t copy_size = 0;
  Descriptor descriptor;
  alignas(8) std::byte pushed[max_push_bytes];
};

// Memory for the argument block of `r`: in the record, or at the end of
// `arguments`, which is that of its batch.
std::byte* room_for_args(std::vector<std::byte>& arguments, Record& r);

// A copy on the host, done just before submission, when all waits of the batch
// are over. For memory that was allocated before the device started.
struct HostCopy {
  void* dst;
  const void* src;
  size_t size;
};

// A flush of the host's writes just before submission. Skipped until
// `download`, the last download to this memory, is done: the host cannot have
// written before, and its cache is stale.
struct Flush {
  Allocation memory;
  std::shared_ptr<Completion> download;
};

struct Batch {
  explicit Batch(uint32_t stream_id) : stream_id(stream_id), pins(stream_id) {}

  uint32_t stream_id;
  uint64_t serial = 0; // of Memory::begin_batch()
  std::vector<Record> records;
  std::vector<Access> accesses;
  std::vector<std::byte> arguments; // argument blocks too large to be pushed
  std::vector<HostCopy> host_copies;
  // Flushes run after host_copies, before submission. Invalidations run when
  // the device has finished, before waiters are notified.
  std::vector<Flush> flushes;
  std::vector<Allocation> invalidations;
  std::vector<EventPoint> waits;
  // The previous batch of this stream, if it may still fail. If it fails, this
  // batch fails too, because it may read results that were never written.
  std::shared_ptr<Completion> follows;
  // Records that a gate holds, in order. While the batch is held these are all
  // of its own, afterwards those that it has started.
  std::shared_ptr<Gate> gate;
  std::vector<std::shared_ptr<const Hold>> holds;
  bool host_read = false; // downloads results of earlier batches to the host
  const Kernel* awaits = nullptr; // one of its kernels that is being compiled
  bool rewritten = false; // all are compiled, or failed to
  bool prepared = false; // rewritten, and nothing but a gate holds it
  bool new_kernels = false; // some run for the first time
  Pins pins;
  std::shared_ptr<Completion> completion;
  std::function<void()> on_retired; // runs on the thread that retires it
  uint64_t pinned_bytes = 0;
  double encode_begin = 0; // profile, seconds
  std::string call; // its only primitive, with MLX_VK_DEBUG=bounds

  // Expected run time of its records.
  double seconds() const;
  bool empty() const {
    return records.empty() && waits.empty() && host_copies.empty() &&
        invalidations.empty() && pins.empty();
  }
};

// Moves the records before `record`, and everything that must precede them, to
// a new batch. Pins stay with `batch`, which is retired later.
std::unique_ptr<Batch> split(Batch& batch, uint32_t record);

// Reuses the vectors of finished batches, which are large and would otherwise
// be freed on another thread than the one that fills them. Thread-safe.
class BatchPool {
 public:
  std::unique_ptr<Batch> take(uint32_t stream_id);
  // Destroys the batch and releases its pins.
  void give_back(std::unique_ptr<Batch> batch);

 private:
  // Empty vectors with capacity.
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
