#include "pipeline/workers.h"

#include <algorithm>
#include <system_error>

namespace mlx::core::vulkan {

Workers::~Workers() {
  stop();
}

bool Workers::add(std::function<void()> job) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) {
      return false;
    }
    if (idle_ <= jobs_.size()) {
      start_thread();
    }
    if (!threads_.empty()) {
      jobs_.push_back(std::move(job));
      added_.notify_one();
      return true;
    }
  }
  job();
  return true;
}

void Workers::add_idle(std::function<void()> job) {
  std::lock_guard lock(mutex_);
  if (stopping_) {
    return;
  }
  if (idle_ <= jobs_.size() + idle_jobs_.size()) {
    start_thread();
  }
  if (!threads_.empty()) {
    idle_jobs_.push_back(std::move(job));
    added_.notify_one();
  }
}

void Workers::start_thread() {
  if (threads_.size() < most_) {
    try {
      threads_.emplace_back([this] { loop(); });
    } catch (const std::system_error&) {
      // No more threads can be created; the existing ones run the job.
    }
  }
}

void Workers::stop() {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    jobs_.clear();
    idle_jobs_.clear();
    threads.swap(threads_);
  }
  added_.notify_all();
  for (auto& t : threads) {
    t.join();
  }
}

void Workers::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    added_.wait(lock, [&] {
      return stopping_ || !jobs_.empty() || !idle_jobs_.empty();
    });
    --idle_;
    if (stopping_) {
      return;
    }
    auto& queue = jobs_.empty() ? idle_jobs_ : jobs_;
    auto job = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    job();
    job = nullptr; // frees what it holds outside of the lock
    lock.lock();
  }
}

size_t compile_threads() {
  size_t cores = std::thread::hardware_concurrency();
  return std::clamp<size_t>(cores, 2, 9) - 1;
}

} // namespace mlx::core::vulkan
