#include "runtime/timeline.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "runtime/sentinels.h"

namespace mlx::core::vulkan {

namespace {
using Clock = Timeline::Clock;
// A wait looks at least this often for a lost device.
constexpr auto longest_wait = std::chrono::milliseconds(100);
constexpr auto background_sleep = std::chrono::milliseconds(1);
// At most this many threads poll the device. Others wait until their batch is
// retired: hundreds of polling threads would take the cores from those that
// work.
constexpr int most_asking = 16;
constexpr auto longest_without_asking = std::chrono::milliseconds(20);
} // namespace

Wakeup& wakeup() {
  static auto* w = new Wakeup; // leaked: threads may outlive main
  return *w;
}

void Wakeup::notify() {
  {
    std::lock_guard lock(mutex_);
    generation_++;
  }
  cv_.notify_all();
}

uint64_t Wakeup::generation() {
  std::lock_guard lock(mutex_);
  return generation_;
}

void Wakeup::wait(uint64_t seen) {
  std::unique_lock lock(mutex_);
  cv_.wait(lock, [&] { return generation_ != seen; });
}

void Wakeup::wait(uint64_t seen, std::chrono::microseconds limit) {
  std::unique_lock lock(mutex_);
  cv_.wait_for(lock, limit, [&] { return generation_ != seen; });
}

Timeline::Timeline(const Vk& vk, VkDevice device, WaitPolicy policy)
    : vk_(vk), device_(device), policy_(policy) {
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
  vk_check(
      vk_.vkCreateSemaphore(device_, &info, nullptr, &semaphore_),
      "vkCreateSemaphore");
}

Timeline::~Timeline() {
  vk_.vkDestroySemaphore(device_, semaphore_, nullptr);
}

// The last ticket in (from, to] up to which all sentinels were written.
uint64_t Timeline::checked(uint64_t from, uint64_t to) {
  for (uint64_t ticket = from + 1; ticket <= to; ++ticket) {
    if (sentinels_->written(ticket)) {
      continue;
    }
    if (!dropped_.exchange(true, std::memory_order_acq_rel)) {
      lose(
          "[vulkan] The GPU dropped work and its driver did not say so: it was "
          "reset, and results are garbage" +
          (describe_ ? describe_(ticket) : std::string()) +
          ". The usual cause is work that takes longer than the driver allows "
          "(MLX_VK_MAX_MS_PER_SUBMISSION makes it shorter), else a fault of a "
          "kernel or of the GPU; the kernel log names it. Restart the "
          "process.");
    }
    return ticket - 1;
  }
  return to;
}

uint64_t Timeline::poll() {
  if (dropped()) {
    return completed_;
  }
  uint64_t value = 0;
  VkResult r = vk_.vkGetSemaphoreCounterValue(device_, semaphore_, &value);
  if (r != VK_SUCCESS) {
    set_lost(std::string("vkGetSemaphoreCounterValue: ") + result_name(r));
    return completed_;
  }
  uint64_t old = completed_.load(std::memory_order_acquire);
  if (sentinels_ && value > old) {
    value = checked(old, value);
  }
  while (old < value &&
         !completed_.compare_exchange_weak(
             old, value, std::memory_order_acq_rel)) {
  }
  return std::max(old, value);
}

void Timeline::wait(
    uint64_t ticket,
    Clock::time_point begun,
    std::chrono::nanoseconds limit,
    bool background) {
  if (policy_.interrupts) {
    VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.semaphoreCount = 1;
    info.pSemaphores = &semaphore_;
    info.pValues = &ticket;
    VkResult r = vk_.vkWaitSemaphores(device_, &info, limit.count());
    if (r == VK_SUCCESS) {
      poll();
    } else if (r != VK_TIMEOUT) {
      set_lost(std::string("vkWaitSemaphores: ") + result_name(r));
    }
    return;
  }
  auto end = Clock::now() + limit;
  while (poll() < ticket && !lost()) {
    auto now = Clock::now();
    if (now >= end) {
      return;
    }
    auto spin = background ? std::chrono::nanoseconds(0) : policy_.spin;
    auto sleep = next_sleep(now - begun, spin);
    if (background && callers > 0) {
      sleep = std::max<std::chrono::nanoseconds>(sleep, background_sleep);
    }
    if (sleep.count() > 0) {
      std::this_thread::sleep_for(sleep);
    } else {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }
}

void Timeline::set_lost(const std::string& why) {
  lose(
      "[vulkan] The device was lost (" + why +
      "). Results not yet read are gone; restart the process.");
}

void Timeline::give_up(std::string sentence) {
  hung_.store(true, std::memory_order_release);
  lose(std::move(sentence));
}

void Timeline::lose(std::string sentence) {
  {
    std::lock_guard lock(mutex);
    if (lost_) {
      return;
    }
    lost_reason_ = std::move(sentence);
    lost_.store(true, std::memory_order_release);
  }
  wakeup().notify();
}

std::string Timeline::lost_reason() const {
  std::lock_guard lock(mutex);
  return lost_reason_;
}

bool Completion::reached() const {
  uint64_t t = ticket();
  if (t == 0) {
    return timeline_.lost();
  }
  bool is = t == failed_ticket || timeline_.seen() >= t ||
      timeline_.poll() >= t || timeline_.lost();
  if (is) {
    run_first();
  }
  return is;
}

void Completion::set_first(std::function<void()> first) {
  first_ = std::move(first);
  has_first_.store(true, std::memory_order_release);
}

void Completion::run_first() const {
  if (!has_first_.load(std::memory_order_acquire)) {
    return;
  }
  std::lock_guard lock(first_mutex_);
  if (first_) {
    first_();
    first_ = nullptr;
    has_first_.store(false, std::memory_order_release);
  }
}

void Completion::wait() const {
  if (reached()) {
    return;
  }
  timeline_.host_waits++;
  bool asks = timeline_.callers++ < most_asking;
  auto begun = Clock::now();
  auto& policy = timeline_.policy();
  while (!reached()) {
    uint64_t t = ticket();
    if (t && asks) {
      timeline_.wait(t, begun, longest_wait);
    } else if (
        !asks || policy.interrupts || Clock::now() - begun >= policy.spin) {
      std::unique_lock lock(timeline_.mutex);
      changed_.wait_for(lock, longest_without_asking, [&] {
        return retired() || (asks && ticket()) || timeline_.lost();
      });
    }
  }
  timeline_.callers--;
}

void Completion::wait_retired() const {
  std::unique_lock lock(timeline_.mutex);
  while (!retired()) {
    changed_.wait_for(lock, longest_wait);
  }
}

std::string Completion::error() const {
  uint64_t t = ticket();
  if (t == failed_ticket) {
    return error_;
  }
  if (timeline_.lost() && (t == 0 || t > timeline_.seen())) {
    return timeline_.lost_reason();
  }
  return {};
}

void Completion::set_submitted(uint64_t ticket) {
  {
    std::lock_guard lock(timeline_.mutex);
    uint64_t none = 0; // it may have failed meanwhile
    ticket_.compare_exchange_strong(none, ticket, std::memory_order_acq_rel);
  }
  changed_.notify_all();
}

void Completion::fail_late(std::string error) {
  error_ = std::move(error);
  ticket_.store(failed_ticket, std::memory_order_release);
}

void Completion::set_failed(std::string error) {
  error_ = std::move(error);
  set_submitted(failed_ticket);
}

void Completion::set_retired() {
  {
    std::lock_guard lock(timeline_.mutex);
    retired_.store(true, std::memory_order_release);
  }
  changed_.notify_all();
}

const EventState::Pending* EventState::find(uint64_t value) const {
  for (const auto& p : pending_) {
    if (p.value >= value) {
      return &p;
    }
  }
  return nullptr;
}

void EventState::signal_host(uint64_t value, std::string error) {
  {
    std::lock_guard lock(mutex_);
    value_ = std::max(value_, value);
    promise(value);
    if (!error.empty()) {
      error_ = std::move(error);
    }
  }
  cv_.notify_all();
  wakeup().notify();
}

void EventState::signal_on(
    std::shared_ptr<Completion> completion,
    uint64_t value) {
  if (!completion) {
    signal_host(value);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    // Drops reached completions, so that a long-lived event stays small.
    while (!pending_.empty() && pending_.front().completion->reached()) {
      value_ = std::max(value_, pending_.front().value);
      auto e = pending_.front().completion->error();
      if (!e.empty()) {
        error_ = std::move(e);
      }
      pending_.erase(pending_.begin());
    }
    pending_.push_back({value, completion});
    promise(value);
  }
  cv_.notify_all();
  // A batch may wait for this value. Submitting the completion's batch wakes
  // its recorder; if that is done already, it is woken here.
  if (completion->submitted()) {
    wakeup().notify();
  }
}

bool EventState::submitted(uint64_t value) {
  std::lock_guard lock(mutex_);
  if (value_ >= value) {
    return true;
  }
  auto* p = find(value);
  return p && p->completion->submitted();
}

void EventState::promise(uint64_t value) {
  uint64_t most = promised_.load(std::memory_order_relaxed);
  promised_.store(std::max(most, value), std::memory_order_release);
}

EventState::Outcome EventState::outcome(uint64_t value) {
  if (promised_.load(std::memory_order_acquire) < value) {
    return Outcome::Open; // asked for each input of the eval that will signal
                          // it
  }
  std::lock_guard lock(mutex_);
  bool good = error_.empty();
  if (value_ < value) {
    auto* p = find(value);
    if (!p || !p->completion->reached()) {
      return Outcome::Open;
    }
    good = good && p->completion->error().empty();
  }
  return good ? Outcome::Good : Outcome::Failed;
}

void EventState::wait(uint64_t value) {
  std::unique_lock lock(mutex_);
  while (value_ < value) {
    if (auto* p = find(value)) {
      auto completion = p->completion;
      lock.unlock();
      completion->wait();
      return;
    }
    cv_.wait(lock);
  }
}

std::string EventState::error(uint64_t value) {
  std::lock_guard lock(mutex_);
  if (!error_.empty()) {
    return error_;
  }
  auto* p = find(value);
  if (value_ < value && p && p->completion->reached()) {
    return p->completion->error();
  }
  return {};
}

} // namespace mlx::core::vulkan
