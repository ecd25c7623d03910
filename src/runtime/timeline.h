// Completion of batches, and events. A Completion is the state of one batch:
// unsubmitted, submitted with a ticket on the device's timeline semaphore,
// reached, or failed with an error. An EventState is MLX's event: values
// signalled by the host or by completions. Thread-safe. Free of MLX.
//
// All streams share one queue and one timeline. A batch whose waits are not
// submitted is held in software, so nothing on the queue waits for a later
// submission. Submission order and a barrier at the end of each batch order the
// streams on the device.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "vk/vk.h"

namespace mlx::core::vulkan {

// Wakes recorders when a batch that they hold may have become ready. One for
// the process, because a signal from the host does not know which device waits.
// Its lock is the innermost one.
class Wakeup {
 public:
  void notify();
  // Increases with each notify(). A thread that reads it before it checks its
  // condition and then calls wait() with it misses no notification.
  uint64_t generation();
  void wait(uint64_t seen);
  // Waits for at most `limit`.
  void wait(uint64_t seen, std::chrono::microseconds limit);

 private:
  std::mutex mutex_;
  std::condition_variable cv_;
  uint64_t generation_ = 0;
};
Wakeup& wakeup();

// How a thread waits for the device. Polling is exact and occupies a core; an
// interrupt can be 10 ms late in a virtual machine. So a wait polls first, then
// sleeps for slices that are short compared with the time waited so far, and
// polls between them.
struct WaitPolicy {
  // Wait in the driver. For software devices: the wake-up is prompt, and
  // polling would occupy the cores that compute.
  bool interrupts = false;
  std::chrono::nanoseconds spin{1'500'000}; // polls without a sleep
};

// The sleep before the next poll, `waited` after the wait began; 0 polls at
// once. A sleep takes about 50 us longer than requested (Linux's timer slack)
// and a poll about 5 us of CPU. A wait of up to 200 ms ends at most 0.1 ms late
// and costs 7 % of a core; a longer one ends at most 0.03 % or 2 ms late.
inline std::chrono::nanoseconds next_sleep(
    std::chrono::nanoseconds waited,
    std::chrono::nanoseconds spin) {
  using std::chrono::nanoseconds;
  constexpr nanoseconds least{30'000}, most{2'000'000};
  if (waited < spin) {
    return nanoseconds::zero();
  }
  return std::clamp(waited / 4096, least, most);
}

class Sentinels;
class Timeline;

class Completion {
 public:
  explicit Completion(Timeline& timeline) : timeline_(timeline) {}

  // Whether it was submitted or has failed: batches that wait for it may be
  // submitted.
  bool submitted() const {
    return ticket_.load(std::memory_order_acquire) != 0;
  }
  uint64_t ticket() const {
    return ticket_.load(std::memory_order_acquire);
  }
  // Whether the device has finished it, or it has failed. Polls the device.
  bool reached() const;
  // Blocks until reached(): polls first, then sleeps.
  void wait() const;
  // Whether its resources were released and its callback has run.
  bool retired() const {
    return retired_.load(std::memory_order_acquire);
  }
  void wait_retired() const;
  // The error, empty if it succeeded. Valid once reached.
  std::string error() const;

  // Sets a function that runs once, on the first thread that sees the batch
  // reached, before any waiter is notified. Call before set_submitted().
  void set_first(std::function<void()> first);
  void run_first() const;

  void set_submitted(uint64_t ticket);
  // For `first`: makes a batch that the device finished fail.
  void fail_late(std::string error);
  // A new completion on the same device.
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
  // Signalled under the timeline's mutex on submission and on retirement.
  mutable std::condition_variable changed_;
  mutable std::atomic<bool> has_first_{false};
  mutable std::mutex first_mutex_;
  mutable std::function<void()> first_; // guarded by first_mutex_
};

class Timeline {
 public:
  using Clock = std::chrono::steady_clock;

  Timeline(const Vk& vk, VkDevice device, WaitPolicy policy);
  ~Timeline();

  VkSemaphore semaphore() const {
    return semaphore_;
  }
  // From now on a ticket counts as finished only if its sentinel was written; a
  // missing one means that the device is lost from that ticket on. Call before
  // other threads use the timeline.
  void check(Sentinels* sentinels) {
    sentinels_ = sentinels;
  }
  // Sets the function that describes a ticket's kernels in errors. May take
  // locks.
  using Describe = std::function<std::string(uint64_t ticket)>;
  void set_describe(Describe describe) {
    describe_ = std::move(describe);
  }

  // The highest finished ticket, read from the device.
  uint64_t poll();
  // The last result of poll(), without a call to the driver.
  uint64_t seen() const {
    return completed_.load(std::memory_order_acquire);
  }
  // Polls until `ticket` is finished, the device is lost or `limit` is over, as
  // often as next_sleep() says for a wait that began at `begun`. A
  // background wait polls less often while a caller waits.
  void wait(
      uint64_t ticket,
      Clock::time_point begun,
      std::chrono::nanoseconds limit,
      bool background = false);
  const WaitPolicy& policy() const {
    return policy_;
  }
  // Marks the device as lost: everything unfinished fails.
  void set_lost(const std::string& why);
  // Marks the device as hung; `sentence` is the complete error. Submitted work
  // may still be running.
  void give_up(std::string sentence);
  bool lost() const {
    return lost_.load(std::memory_order_acquire);
  }
  bool hung() const {
    return hung_.load(std::memory_order_acquire);
  }
  // Whether the driver dropped a submission; later ones may be running.
  bool dropped() const {
    return dropped_.load(std::memory_order_acquire);
  }
  // Whether the device may be running what nobody waits for any more: its
  // memory must be left alone.
  bool runs_unwatched() const {
    return hung() || dropped();
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
  const uint64_t number = ++numbers; // unique
  // Signals `value` from the host, with an error if one is given.
  void signal_host(uint64_t value, std::string error = {});
  // Signals `value` when `completion` is reached; at once if it is null.
  void signal_on(std::shared_ptr<Completion> completion, uint64_t value);

  // Whether a batch that waits for `value` may be submitted.
  bool submitted(uint64_t value);
  bool signaled(uint64_t value) {
    return outcome(value) != Outcome::Open;
  }
  // Whether `value` was signalled without an error.
  bool succeeded(uint64_t value) {
    return outcome(value) == Outcome::Good;
  }
  void wait(uint64_t value);
  // The error of the signal that satisfies `value`, or empty.
  std::string error(uint64_t value);

 private:
  struct Pending {
    uint64_t value;
    std::shared_ptr<Completion> completion;
  };
  enum class Outcome { Open, Failed, Good };
  Outcome outcome(uint64_t value);
  static inline std::atomic<uint64_t> numbers{0};
  const Pending* find(uint64_t value) const;
  void promise(uint64_t value); // under mutex_

  // The highest value that was signalled or has a pending signal.
  std::atomic<uint64_t> promised_{0};

  std::mutex mutex_;
  std::condition_variable cv_;
  uint64_t value_ = 0; // signalled from the host or by a reached completion
  std::string error_;
  std::vector<Pending> pending_; // ascending values
};

// A wait of a batch: for a value of an event, or for a completion.
struct EventPoint {
  std::shared_ptr<EventState> event;
  uint64_t value = 0;
  std::shared_ptr<Completion> completion;

  bool submitted() const {
    return completion ? completion->submitted() : event->submitted(value);
  }
  // The error that is known so far, or empty.
  std::string error() const {
    return completion ? completion->error() : event->error(value);
  }
};

} // namespace mlx::core::vulkan
