// Step one of the two-step encoder: eval_gpu appends plain records, a closed
// batch is levelled, recorded and submitted by the recorder thread
// (recorder.h). Free of MLX.
//
// Ownership: a Batch holds its records and whatever keep() was given until the
// GPU has finished it (pins.h). Threads: one encoder is used by one thread at
// a time; everything behind close() is thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/batch.h"
#include "runtime/batch_policy.h"
#include "runtime/memory.h"

namespace mlx::core::vulkan {

class Device;
// A buffer bound to a record: address = buffer address + offset; [begin, end)
// is the byte range in the buffer that the record may touch.
struct Binding {
  Buffer* buffer = nullptr; // null: an array without elements, address 0
  int64_t offset = 0;
  uint64_t begin = 0, end = 0;
  // Instead of a buffer: the base of what a record of the open batch touches.
  uint64_t base = 0;
};

class Encoder {
 public:
  Encoder(Device& device, uint32_t stream_id);
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // Appends one dispatch: addresses of `reads` then `writes`, then `params`.
  // One that is expected to take too long for a submission will run in parts.
  // `what` it is, for rewrite.h.
  void dispatch(
      const Kernel& kernel,
      std::span<const Binding> reads,
      std::span<const Binding> writes,
      const void* params,
      size_t params_size,
      Grid grid,
      const Work& work = {},
      const Descriptor& what = {});

  // Later records find the buffer's bytes even where they overwrite a part of a
  // range that they say to write. No-op where host and device side are one.
  void bring_to_device(Buffer& buffer);

  // The batch that the next record goes to, null before its first one; and
  // takes some of its dispatches out, which nothing depends on, in ascending
  // order.
  const Batch* open_batch() const {
    return open_.get();
  }
  void drop(std::span<const uint32_t> records);
  // The batch stays open for some operations beyond its limit: what was encoded
  // is part of something that later ones complete.
  void stay_open() {
    stay_open_ = operations_ + 24;
  }

  // Makes the host copy of a buffer follow its device copy in this batch, so
  // that a CPU stream can read it once the batch is done. No-op where
  // both are one.
  void copy_to_host(Buffer& buffer);

  // Until this batch is done; a buffer, through its owner, if possible in a way
  // that allows its donation, see pins.h.
  void keep(std::shared_ptr<void> object) {
    open().pins.keep(std::move(object));
  }
  template <typename T>
  void keep(Buffer& buffer, const std::shared_ptr<T>& owner) {
    open().pins.keep(buffer.kept, owner);
  }
  // The caller owns the buffer itself until it has called keep() again.
  void unpin(Buffer& buffer) {
    Pins::unpin(buffer.kept, stream_id_);
  }

  // The next dispatch is one that other processes take part in: this batch is
  // held before it until they do. All of a process are of one group.
  void meet(const std::shared_ptr<HostGroup>& group, const Meeting& meeting) {
    open().group = group;
    open().meetings.push_back(meeting);
    next_meeting_ = static_cast<uint32_t>(open().meetings.size());
  }
  // That dispatch does not come.
  void forget_meeting() {
    next_meeting_ = 0;
  }

  // Later records start only after `point`; earlier ones are closed first.
  void wait(EventPoint point);

  // Ends the batch if somebody may wait for it: before a meeting, since the
  // other ranks may be held for what that somebody does.
  void close_if_awaited();

  // The completion that a signal after everything encoded so far stands for.
  // Null when the stream never had work: already complete.
  std::shared_ptr<Completion> current_completion();

  // Hands the open batch to the recorder. With nothing to do, returns the last
  // completion (maybe null).
  std::shared_ptr<Completion> close(std::function<void()> on_retired = {});
  // The same in the middle of an eval, as needs_commit() asks for.
  void close_and_go_on(std::function<void()> on_retired);
  // An eval of so many operations follows, which its caller waits for.
  void expect(uint32_t operations) {
    policy_.begin(operations);
  }

  // Over the limits of operations (batch_policy.h) or pinned bytes.
  bool needs_commit() {
    return open_ &&
        (operations_ >= policy_.look_at() ||
         open_->pinned_bytes > most_bytes_) &&
        full();
  }
  // What is encoded next is the first behind a seam (batch_policy.h). True: the
  // batch is to be closed before it.
  bool needs_commit_at_seam() {
    return policy_.seam(operations_) && operations_ >= stay_open_;
  }
  // The open batch is this call, for reports.
  void name_call(std::string call) {
    open().call = std::move(call);
  }
  // One MLX operation was encoded, pinning `bytes`.
  void count_operation(uint64_t bytes) {
    operations_++;
    open().pinned_bytes += bytes;
  }

  Device& device() {
    return device_;
  }
  uint32_t stream_id() const {
    return stream_id_;
  }

 private:
  Batch& open() {
    return open_ ? *open_ : open_new();
  }
  Batch& open_new();
  bool full();
  void push_open(std::function<void()> on_retired);

  Device& device_;
  const uint64_t most_bytes_;
  BatchPolicy policy_;
  uint32_t stream_id_;
  std::unique_ptr<Batch> open_;
  std::shared_ptr<Completion> last_, before_last_;
  uint32_t operations_ = 0;
  uint32_t stay_open_ = 0; // until so many operations
  uint32_t next_meeting_ = 0; // Record::meeting of the next dispatch
  bool awaited_ = false; // the open batch's completion was given away
};

} // namespace mlx::core::vulkan
