// Batches as Vulkan command buffers, with what each needs beside them: memory
// for large argument blocks, timestamps, marks of progress. A batch is one
// command buffer, or several where it is expected to take longer than a
// submission should (work.h). Threads: the recorder writes; anyone gives back
// what the device has finished.
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

// One batch's commands; owned by whoever holds the batch, then reused.
struct Commands {
  // The first `submissions` are to be submitted, in their order.
  std::vector<VkCommandBuffer> buffers;
  uint32_t submissions = 0;
  VkCommandBuffer buffer = VK_NULL_HANDLE; // being written
  std::vector<uint32_t> ends; // records of `order` done after each submission
  Allocation arguments;
  size_t arguments_size = 0;
  VkQueryPool queries = VK_NULL_HANDLE; // a pair for each of `order`
  uint32_t query_count = 0;
  bool timed = false;
  // For the watch: events[i] is set when the first marks[i] records of `order`
  // are done. A mark took 3 to 12 us of an H200 (as a vkCmdFillBuffer too), so
  // that fast devices go without.
  std::vector<VkEvent> events;
  std::vector<uint32_t> order, marks;
};

class CommandWriter {
 public:
  explicit CommandWriter(Device& device);
  ~CommandWriter(); // all has been given back
  CommandWriter(const CommandWriter&) = delete;
  CommandWriter& operator=(const CommandWriter&) = delete;

  // The recorder only: a command pool has one user at a time.
  std::unique_ptr<Commands> take();
  void give_back(std::unique_ptr<Commands> commands);

  // Orders the batch and writes it, ready to be submitted with the tickets from
  // `ticket` on.
  void
  write(const Batch& batch, bool marks, uint64_t ticket, Commands& commands);

  // How many of `order` are known to be done, by the marks and by the
  // submissions that are.
  uint32_t done(const Commands& commands, uint64_t submissions) const;
  // Tells the profile how long each record of a finished batch took.
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
  VkPipeline bound_ = VK_NULL_HANDLE; // in the buffer being written
  uint64_t written_ = 0;

  std::mutex mutex_;
  std::deque<std::unique_ptr<Commands>> free_; // under mutex_; oldest first
};

} // namespace mlx::core::vulkan
