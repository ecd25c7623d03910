// What "done" means. A Completion is one batch: unsubmitted, then a ticket on
// the device's single timeline semaphore, then reached; or failed with an
// error. An EventState is MLX's event: values signalled by the host or by
// completions. All of it is thread-safe. Free of MLX.
//
// One queue and one timeline for all streams: a batch whose waits are not
// submitted yet is held in software, so nothing on the queue ever waits for a
// later submission, and submission order plus a barrier at the end of each
// batch orders streams on the device.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/wait.h"
#include "vk/vk.h"

namespace mlx::core::vulkan {

// Wakes recorders when something they may be holding a batch for happened.
// One for the process: host signals do not know which device waits. Its lock
// is the last one taken.
class Wakeup {
 public:
  void notify();
  // Changes with each notify(): who reads it, looks, and then waits for another
  // misses nothing.
  uint64_t generation();
  void wait(uint64_t seen);
  // The same, at most so long.
  void wait(uint64_t seen, std::chrono::microseconds limit);

 private:
  std::mutex mutex_;
  std::condition_variable cv_;
  uint64_t generation_ = 0;
};
Wakeup& wakeup();

class Sentinels;
class Timeline;

class Completion {
 public:
  explicit Completion(Timeline& timeline) : timeline_(timeline) {}

  // Submitted, or failed: later batches on the queue may follow.
  bool submitted() const {
    return ticket_.load(std::memory_order_acquire) != 0;
  }
  uint64_t ticket() const {
    return ticket_.load(std::memory_order_acquire);
  }
  // The device has finished it (or it failed). Polls.
  bool reached() const;
  // Blocks until reached: polls first, then sleeps.
  void wait() const;
  // Its resources have been released and its callback has run.
  bool retired() const {
    return retired_.load(std::memory_order_acquire);
  }
  void wait_retired() const;
  // Empty unless it failed. Valid once reached.
  std::string error() const;

  // Runs `first` once, on the thread that first sees it reached, before anyone
  // is told. Before set_submitted().
  void set_first(std::function<void()> first);
  void run_first() const;

  void set_submitted(uint64_t ticket);
  // Of `first`: what it found makes this one fail after all.
  void fail_late(std::string error);
  // A new one, of work on the same device.
  std::shared_ptr<Completion> of_part() const {
    return std::make_shared<Completion>(timeline_);
  }
  void set_failed(std::string error);
  void set_retired();

  static constexpr uint64_t failed_ticket = ~0ull;

 private:
  Timeline& timeline_;
  std::atomic<uint64_t> ticket_{0};
  std::atomic<bool> retired_{false};
  std::string error_; // written before ticket_
  // With the timeline's mutex: submitted, or retired.
  mutable std::condition_variable changed_;
  mutable std::atomic<bool> has_first_{false};
  mutable std::mutex first_mutex_;
  mutable std::function<void()> first_; // under it
};

class Timeline {
 public:
  using Clock = std::chrono::steady_clock;

  Timeline(const Vk& vk, VkDevice device, WaitPolicy policy);
  ~Timeline();

  VkSemaphore semaphore() const {
    return semaphore_;
  }
  // Before any other thread knows it: a ticket is finished only if its sentinel
  // is there. One that is not makes the device a lost one from that ticket on.
  void check(Sentinels* sentinels) {
    sentinels_ = sentinels;
  }
  // Says what the submission of a ticket ran, for the error. May take locks.
  using Describe = std::function<std::string(uint64_t ticket)>;
  void set_describe(Describe describe) {
    describe_ = std::move(describe);
  }

  // Highest finished ticket; reads the counter.
  uint64_t poll();
  // The last value poll() saw: no call into the driver.
  uint64_t seen() const {
    return completed_.load(std::memory_order_acquire);
  }
  // Looks until `ticket` is finished, the device is lost or `limit` is over, as
  // often as suits a wait that began at `begun` (wait.h). Who waits in the
  // background looks less often while a caller does.
  void wait(
      uint64_t ticket,
      Clock::time_point begun,
      std::chrono::nanoseconds limit,
      bool background = false);
  const WaitPolicy& policy() const {
    return policy_;
  }
  // Device lost: everything unfinished counts as failed.
  void set_lost(const std::string& why);
  // The same for a device that hangs; `sentence` is the whole error. What was
  // submitted may still be running.
  void give_up(std::string sentence);
  bool lost() const {
    return lost_.load(std::memory_order_acquire);
  }
  bool hung() const {
    return hung_.load(std::memory_order_acquire);
  }
  // The device dropped a submission, and may be running what came after.
  bool dropped() const {
    return dropped_.load(std::memory_order_acquire);
  }
  std::string lost_reason() const;

  std::atomic<uint64_t> host_waits{0}; // profile
  std::atomic<int> callers{0}; // threads in Completion::wait()

  mutable std::mutex mutex; // submissions, retirements, loss

 private:
  uint64_t checked(uint64_t from, uint64_t to);
  void lose(std::string sentence);

  const Vk& vk_;
  VkDevice device_;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  WaitPolicy policy_;
  Sentinels* sentinels_ = nullptr;
  Describe describe_;
  std::atomic<uint64_t> completed_{0};
  std::atomic<bool> lost_{false}, hung_{false}, dropped_{false};
  std::string lost_reason_;
};

class EventState {
 public:
  // Signals from the host; `error` poisons the value.
  void signal_host(uint64_t value, std::string error = {});
  // Signals when `completion` is reached (null: at once).
  void signal_on(std::shared_ptr<Completion> completion, uint64_t value);

  // A device batch that waits for `value` may be submitted.
  bool submitted(uint64_t value);
  bool signaled(uint64_t value) {
    return outcome(value) != Outcome::Open;
  }
  // Signalled, and not for something that failed.
  bool succeeded(uint64_t value) {
    return outcome(value) == Outcome::Good;
  }
  void wait(uint64_t value);
  // Error of the signal that satisfies `value`, or empty.
  std::string error(uint64_t value);

 private:
  struct Pending {
    uint64_t value;
    std::shared_ptr<Completion> completion;
  };
  enum class Outcome { Open, Failed, Good };
  Outcome outcome(uint64_t value);
  const Pending* find(uint64_t value) const;
  void promise(uint64_t value); // under the lock

  // The highest value that is signalled or will be: none above it can be.
  std::atomic<uint64_t> promised_{0};

  std::mutex mutex_;
  std::condition_variable cv_;
  uint64_t value_ = 0; // signalled from the host or by a reached completion
  std::string error_;
  std::vector<Pending> pending_; // ascending values
};

// Something a batch waits for: an event value, or a completion.
struct EventPoint {
  std::shared_ptr<EventState> event;
  uint64_t value = 0;
  std::shared_ptr<Completion> completion;

  bool submitted() const {
    return completion ? completion->submitted() : event->submitted(value);
  }
  // Non-empty if it failed or carries an error, as far as is known.
  std::string error() const {
    return completion ? completion->error() : event->error(value);
  }
};

} // namespace mlx::core::vulkan
