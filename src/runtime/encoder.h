// First step of encoding: eval_gpu appends plain records to a batch. The
// recorder thread orders, records and submits closed batches (recorder.h). Free
// of MLX.
//
// Ownership: a batch owns its records and pins the memory given to keep() until
// the GPU has finished it (pins.h). Threads: an encoder is used by one thread
// at a time; close() hands the batch to thread-safe code.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

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
  // Without a buffer: the base address of an access of the open batch.
  uint64_t base = 0;
};

class Encoder {
 public:
  Encoder(Device& device, uint32_t stream_id);
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // Appends a dispatch. Its argument block is the addresses of `reads`, those
  // of `writes`, then `params`. A dispatch that is expected to take longer than
  // a submission may runs in parts. `descriptor` describes it for rewrite.h.
  void dispatch(
      const Kernel& kernel,
      std::span<const Binding> reads,
      std::span<const Binding> writes,
      const void* params,
      size_t params_size,
      Grid grid,
      const Work& work = {},
      const Descriptor& descriptor = {});

  // Uploads the whole buffer, for later records that overwrite only a part of
  // the range that they declare as written. No-op where both sides are one.
  void bring_to_device(Buffer& buffer);

  // The batch of the next record; null before its first record. drop() removes
  // dispatches that nothing depends on; `records` ascend.
  const Batch* open_batch() const {
    return open_.get();
  }
  void drop(std::span<const uint32_t> records);
  // Keeps the batch open for this many operations, even beyond its limit,
  // because they complete a group that a rewrite joins.
  void stay_open(uint32_t operations) {
    stay_open_ = operations_ + operations;
  }

  // Makes the host copy of a buffer follow its device copy in this batch, so
  // that a CPU stream can read it once the batch is done. No-op where
  // both are one.
  void copy_to_host(Buffer& buffer);

  // Copies `size` bytes of mapped memory to byte `begin` of the device side of
  // `to`, once `full`. Waits as wait() does.
  void fill(
      Buffer& to,
      uint64_t begin,
      uint64_t size,
      std::shared_ptr<Allocation> from,
      EventPoint full);

  // Keeps memory alive until this batch is done. A buffer is pinned by its
  // owner, if possible in a way that allows its donation (pins.h).
  void keep(std::shared_ptr<void> object) {
    open().pins.keep(std::move(object));
  }
  template <typename T>
  void keep(Buffer& buffer, const std::shared_ptr<T>& owner) {
    open().pins.keep(buffer, owner);
  }
  // The caller must own the buffer until it calls keep() again.
  void unpin(Buffer& buffer) {
    Pins::unpin(buffer, stream_id_);
  }

  // The batch is held before the next dispatch until `gate` lets it start. A
  // process has one gate.
  void hold(std::shared_ptr<Gate> gate, std::shared_ptr<const Hold> hold) {
    open().gate = std::move(gate);
    open().holds.push_back(std::move(hold));
    next_hold_ = static_cast<uint32_t>(open().holds.size());
  }
  // Cancels hold(): the dispatch was not encoded.
  void forget_hold() {
    next_hold_ = 0;
  }

  // Later records start after `point`. Closes the batch of earlier records.
  void wait(EventPoint point);

  // Closes the batch if its completion was handed out. Called before hold(): a
  // thread that waits for the batch may have to run before the gate opens.
  void close_if_awaited();

  // The completion of everything encoded so far; null if the stream never had
  // work.
  std::shared_ptr<Completion> current_completion();

  // Hands the open batch to the recorder and returns its completion; without an
  // open batch, the last completion (may be null).
  std::shared_ptr<Completion> close(std::function<void()> on_retired = {});
  // The same in the middle of an eval, when needs_commit() is true.
  void close_and_go_on(std::function<void()> on_retired);
  // Later records belong to the eval with this number. A batch fails if the
  // previous batch of its eval fails, or one of an earlier eval that was under
  // way when it began. MLX calls wait() for an eval's first inputs before this.
  void begin_eval(uint64_t number);
  // The next batch may read what the last one writes.
  void go_on() {
    goes_on_ = true;
  }
  // Begins an eval of `operations` that its caller waits for.
  void expect(uint32_t operations) {
    policy_.begin(operations);
  }

  // Whether the batch exceeds its limit of operations (batch_policy.h) or of
  // pinned bytes.
  bool needs_commit() {
    return open_ &&
        (operations_ >= policy_.look_at() ||
         open_->pinned_bytes > most_bytes_) &&
        full();
  }
  // The next operation is the first behind a seam (batch_policy.h). Returns
  // true if the batch is to be closed before it.
  bool needs_commit_at_seam() {
    return policy_.seam(operations_) && operations_ >= stay_open_;
  }
  // Names the open batch's only primitive, for reports.
  void name_call(std::string call) {
    open().call = std::move(call);
  }
  // Counts an encoded operation of MLX, which pins `bytes`.
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
  const bool joins_; // keeps descriptors
  BatchPolicy policy_;
  uint32_t stream_id_;
  std::unique_ptr<Batch> open_;
  std::shared_ptr<Completion> last_, before_last_;
  uint64_t eval_ = 0; // none
  bool goes_on_ = false; // in what last_ is of, or from it
  uint32_t operations_ = 0;
  uint32_t stay_open_ = 0; // number of operations until which it stays open
  uint32_t next_hold_ = 0; // Record::hold of the next dispatch
  bool awaited_ = false; // the open batch's completion was handed out
};

} // namespace mlx::core::vulkan
