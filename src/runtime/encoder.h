// Step one of the two-step encoder: eval_gpu appends plain records, a closed
// batch is levelled, recorded and submitted by the recorder thread
// (recorder.h). Free of MLX.
//
// Ownership: a Batch holds its records and whatever retain() was given until
// the GPU has finished it. Threads: one encoder is used by one thread at a
// time; everything behind close() is thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/hazards.h"
#include "runtime/memory.h"
#include "runtime/timeline.h"

namespace mlx::core::vulkan {

class Device;
struct Kernel; // pipeline/pipeline.h

struct Grid {
  uint32_t x = 1, y = 1, z = 1;
};

// A buffer bound to a record: address = buffer address + offset; [begin, end)
// is the byte range in the buffer that the record may touch.
struct Binding {
  Buffer* buffer = nullptr; // null: an array without elements, address 0
  int64_t offset = 0;
  uint64_t begin = 0, end = 0;
};

constexpr size_t max_push_bytes = 128;

struct Record {
  enum class Kind : uint8_t { Dispatch, Copy };
  Kind kind = Kind::Dispatch;
  const Kernel* kernel = nullptr;
  Grid grid;
  uint32_t push_size = 0; // 0 with ring_size != 0: arguments in the ring
  uint32_t ring_offset = 0, ring_size = 0;
  uint32_t first_access = 0, access_count = 0;
  uint64_t bytes = 0; // touched, for the profile
  // Copy: whole buffers, from their first byte
  VkBuffer src = VK_NULL_HANDLE, dst = VK_NULL_HANDLE;
  uint64_t copy_size = 0;
  alignas(8) std::byte push[max_push_bytes];
};

// Bytes copied on the host just before submission, when every wait of the
// batch is over (memory that existed before the device started).
struct HostCopy {
  void* dst;
  const void* src;
  size_t size;
};

struct Batch {
  std::vector<Record> records;
  std::vector<Access> accesses;
  std::vector<std::byte> ring;
  std::vector<HostCopy> host_copies;
  std::vector<std::shared_ptr<void>> retained;
  std::vector<Buffer*> kept; // this batch is or was their keeper
  std::vector<EventPoint> waits;
  std::shared_ptr<Completion> completion;
  std::function<void()> on_retired; // runs on the retiring thread
  uint32_t stream_id = 0;
  uint64_t sequence = 0; // order of closing, over all streams
  uint64_t pinned_bytes = 0;
  double encode_begin = 0; // profile, seconds

  ~Batch();
  // Before a batch goes that never ran: an earlier one may still be reading
  // what this one keeps.
  void hand_over_kept(Batch& later);
};

class Encoder {
 public:
  Encoder(Device& device, uint32_t stream_id);
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // Appends one dispatch: addresses of `reads` then `writes`, then `params`.
  void dispatch(
      const Kernel& kernel,
      std::span<const Binding> reads,
      std::span<const Binding> writes,
      const void* params,
      size_t params_size,
      Grid grid);

  // Makes the host copy of a buffer follow its device copy in this batch, so
  // that a CPU stream can read it once the batch is done. No-op for coherent
  // memory.
  void copy_to_host(Buffer& buffer);

  void retain(std::shared_ptr<void> object) {
    open().retained.push_back(std::move(object));
  }

  // Keeps `buffer`, through its owner, until this batch is done. As long as
  // one stream alone uses it, a buffer has a single keeper, which moves from
  // batch to batch and which release_keeper() takes away. So an array that its
  // stream still reads counts as unshared to MLX and can be donated: what
  // writes it comes later on the same queue.
  void keep(Buffer& buffer, std::shared_ptr<void> owner);
  // The caller owns the buffer itself until it has called keep() again.
  void release_keeper(Buffer& buffer);

  // Later records start only after `point`; earlier ones are closed first.
  void wait(EventPoint point);

  // The completion that a signal after everything encoded so far stands for.
  // Null when the stream never had work: already complete.
  std::shared_ptr<Completion> current_completion();

  // Hands the open batch to the recorder. With nothing to do, returns the last
  // completion (maybe null).
  std::shared_ptr<Completion> close(std::function<void()> on_retired = {});

  // Over the limits of operations or pinned bytes.
  bool needs_commit() const;
  // One MLX operation was encoded, pinning `bytes`.
  void count_operation(uint64_t bytes);

  Device& device() {
    return device_;
  }
  uint32_t stream_id() const {
    return stream_id_;
  }

 private:
  Batch& open();
  void use(Batch& batch, const Binding& binding, bool write);

  Device& device_;
  uint32_t stream_id_;
  std::unique_ptr<Batch> open_;
  std::shared_ptr<Completion> last_;
  uint32_t operations_ = 0;
};

} // namespace mlx::core::vulkan
