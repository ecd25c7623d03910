// Records batches as Vulkan command buffers, with memory for large argument
// blocks, timestamps and progress marks. A batch is one command buffer, or
// several if it is expected to take longer than a submission may (work.h).
// Threads: the recorder writes; any thread gives finished commands back.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/memory.h"
#include "runtime/order.h"
#include "runtime/work.h"

namespace mlx::core::vulkan {

class Device;

// The commands of one batch; owned by the batch's owner, then reused.
struct Commands {
  // The first `submissions` of these are submitted, in this order.
  std::vector<VkCommandBuffer> buffers;
  uint32_t submissions = 0;
  VkCommandBuffer buffer = VK_NULL_HANDLE; // being written
  // `buffer` was begun and not ended, by an error: not to be begun again.
  bool unended = false;
  // Number of records of `order` that are done after each submission.
  std::vector<uint32_t> ends;
  Allocation arguments;
  size_t arguments_size = 0;
  VkQueryPool queries = VK_NULL_HANDLE; // a pair for each of `order`
  uint32_t query_count = 0;
  bool timed = false, spans = false; // each record, or the batch
  // For the watchdog: events[i] is set when the first marks[i] records of
  // `order` are done. A mark costs 3 to 12 us on an H200, so fast batches have
  // none.
  std::vector<VkEvent> events;
  std::vector<uint32_t> order, marks;
};

class CommandWriter {
 public:
  explicit CommandWriter(Device& device);
  ~CommandWriter(); // all commands must have been given back
  CommandWriter(const CommandWriter&) = delete;
  CommandWriter& operator=(const CommandWriter&) = delete;

  // Called by the recorder alone: a command pool has one user at a time.
  std::unique_ptr<Commands> take();
  void give_back(std::unique_ptr<Commands> commands);

  // Orders the batch and records its commands. Its submissions get the tickets
  // from `ticket` on.
  void
  write(const Batch& batch, bool marks, uint64_t ticket, Commands& commands);

  // The number of records of `order` known to be done, from marks and from the
  // number of finished submissions.
  uint32_t done(const Commands& commands, uint64_t submissions) const;
  // Reports the run time of each record of a finished batch to the profiler.
  void report_times(const Batch& batch, const Commands& commands) const;

 private:
  void destroy(Commands& c);
  void place_arguments(const Batch& batch, Commands& c);
  void prepare_queries(size_t records, Commands& c);
  void mark(uint32_t done, Commands& c);
  void begin(const Batch& batch, Commands& c);
  void end(uint64_t ticket, uint32_t done, const Order& o, Commands& c);
  void write(const Record& r, const Step* step, Commands& c);

  Device& device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkPipeline bound_ = VK_NULL_HANDLE; // in the command buffer being written
  uint64_t written_ = 0;

  std::mutex mutex_;
  std::deque<std::unique_ptr<Commands>>
      free_; // guarded by mutex_; oldest first
};

} // namespace mlx::core::vulkan
