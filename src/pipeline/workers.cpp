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
    if (idle_ <= jobs_.size() && threads_.size() < most_) {
      try {
        threads_.emplace_back([this] { loop(); });
      } catch (const std::system_error&) {
        // No more threads can be created; the existing ones run the job.
      }
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

void Workers::stop() {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    jobs_.clear();
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
    added_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    --idle_;
    if (stopping_) {
      return;
    }
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
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
