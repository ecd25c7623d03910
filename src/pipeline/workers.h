// A few threads, started at the first job, that run jobs in order, and idle
// jobs while there are no others.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace mlx::core::vulkan {

class Workers {
 public:
  // With 0 threads add() runs the job itself.
  explicit Workers(size_t threads) : most_(threads) {}
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // `job` must not throw. After stop() nothing is run: false.
  bool add(std::function<void()> job);

  // Adds a job that nobody waits for yet. Without a thread to run it,
  // it is dropped.
  void add_idle(std::function<void()> job);

  // Drops the jobs that have not begun and joins the threads. Idempotent.
  void stop();

 private:
  void loop();
  // Under mutex_.
  void start_thread();

  const size_t most_;
  std::mutex mutex_; // all below
  std::condition_variable added_;
  std::deque<std::function<void()>> jobs_, idle_jobs_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool stopping_ = false;
};

// The number of compiling threads: all cores but one, between 1 and 8.
size_t compile_threads();

} // namespace mlx::core::vulkan
