// The started device: VkDevice, queue, timeline, memory, kernels, recorder. A
// process has one, started by the first GPU stream. At exit shutdown() drains
// it and its memory is leaked. Thread-safe. Free of MLX.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>

#include "policy/policy.h"
#include "runtime/memory.h"
#include "runtime/timeline.h"
#include "runtime/work.h"
#include "vk/instance.h"

namespace mlx::core::vulkan {

class PipelineTable;
class Recorder;
class Profiler;
class CutLoops;
class KernelReports;
enum class Reports : uint8_t;
class Sentinels;
struct Batch;
class BatchPool;
class Staging;

class Device {
 public:
  // Starts the device that probe() chose. Throws std::runtime_error with the
  // list of devices where there is none to use.
  Device();
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Vk& vk() const {
    return instance_->vk;
  }
  VkInstance instance() const {
    return instance_->handle;
  }
  VkPhysicalDevice physical() const {
    return physical_;
  }
  VkDevice handle() const {
    return device_;
  }
  // vkQueueSubmit; any thread. Each submission signals the next ticket.
  VkResult submit_to_queue(std::span<const VkSubmitInfo> submits);
  // Waits until the device has finished what was submitted, or has finished no
  // submission for a second; nothing is submitted while the result lives. Any
  // thread.
  std::unique_lock<std::mutex> pause();
  const Caps& caps() const {
    return caps_;
  }
  // Its capabilities and the policy of its class.
  const Target& target() const {
    return target_;
  }
  Timeline& timeline() {
    return *timeline_;
  }
  Memory& memory() {
    return *memory_;
  }
  PipelineTable& pipelines() {
    return *pipelines_;
  }
  Recorder& recorder() {
    return *recorder_;
  }
  Profiler& profiler() {
    return *profiler_;
  }
  Staging& staging() {
    return *staging_;
  }
  BatchPool& batches() {
    return *batches_;
  }
  // Null without watch_kernels().
  KernelReports* reports() {
    return reports_.get();
  }

  // Makes kernels requested from now on report `kinds` (MLX_VK_DEBUG=loops and
  // bounds). Call before other threads use the device.
  void watch_kernels(Reports kinds);

  // The report of loops that software devices cut, created at the first call.
  // Any thread.
  CutLoops& cut_loops();

  // The rates that estimates assume, and the longest run time of a submission.
  const WorkLimit& work_limit() const {
    return work_limit_;
  }
  // The longest submission in estimated seconds: less than in real ones on a
  // device that is slower than assumed.
  double longest_estimate() const {
    return work_limit_.seconds / slowdown_.factor();
  }
  Slowdown& slowdown() {
    return slowdown_;
  }
  // Compares the rates with the device's. Call before other threads use it.
  void measure_rates();
  // Bytes a second that kernels read in the host's memory: as measured, or as
  // assumed for copies until measure_bus() was called.
  double bus_rate() const {
    return bus_rate_ > 0 ? bus_rate_.load() : work_limit_.rates.copy_bytes;
  }
  // Takes some 10 ms at the first call. Any thread that may encode.
  double measure_bus();
  // Call before other threads use the device.
  void set_work_limit(WorkLimit limit) {
    work_limit_ = limit;
  }
  // Null with MLX_VK_DISABLE=sentinels, without timestamps, and on software
  // devices, which are never reset.
  Sentinels* sentinels() {
    return sentinels_.get();
  }

  // Submits a batch without an encoder (a host read).
  std::shared_ptr<Completion> submit(std::unique_ptr<Batch> batch);

  // Waits for all submitted batches and releases their pins.
  void finish_submitted();

  // Finishes submitted batches, stops the threads, saves caches. Idempotent.
  void shutdown();

 private:
  struct Unprobed {};
  explicit Device(Unprobed);
  void probe_lanes();
  void probe_arithmetic();

  std::unique_ptr<Instance> instance_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  Caps caps_;
  Target target_{caps_};
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::mutex queue_mutex_;
  uint64_t last_ticket_ = 0; // of the queue; under queue_mutex_
  std::unique_ptr<Timeline> timeline_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Staging> staging_;
  WorkLimit work_limit_;
  Slowdown slowdown_;
  std::once_flag bus_once_;
  std::atomic<double> bus_rate_{0};
  std::unique_ptr<Sentinels> sentinels_;
  std::unique_ptr<KernelReports> reports_;
  std::once_flag cut_loops_once_;
  std::unique_ptr<CutLoops> cut_loops_;
  std::unique_ptr<Profiler> profiler_;
  std::unique_ptr<PipelineTable> pipelines_;
  std::unique_ptr<BatchPool> batches_;
  std::unique_ptr<Recorder> recorder_;
  std::atomic<bool> down_{false};
};

// The process's device, started at the first call. Throws as Device() does, at
// each call until it succeeds; throws after a fork.
Device& device();
// The device, or null if it was not started, after a fork, and after
// shutdown().
Device* device_if_started();
// Sets a function that runs at exit before shutdown(), to end other users of
// the device's memory.
void set_exit_hook(void (*drain)());
// Shuts the device down at exit, before the destructors of static objects that
// exist now run. Called again after each batch with new kernels, because the
// driver's compiler makes static objects when it first needs them.
void shut_down_at_exit();
// True in a child process whose parent had started the device.
bool forked_from_started_device();

} // namespace mlx::core::vulkan
