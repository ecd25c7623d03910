// The started device: VkDevice, queue, timeline, memory, kernels, recorder.
// One per process, started by the first GPU stream, leaked at exit (after
// shutdown() has drained it). Thread-safe. Free of MLX.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/memory.h"
#include "runtime/timeline.h"
#include "runtime/work.h"
#include "vk/caps.h"
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
  VkQueue queue() const {
    return queue_;
  }
  const Caps& caps() const {
    return caps_;
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
  BatchPool& batches() {
    return *batches_;
  }
  // Null without watch_kernels().
  KernelReports* reports() {
    return reports_.get();
  }

  // What MLX_VK_DEBUG=loops and bounds do: kernels asked for from now on report
  // these. Before any other thread uses the device.
  void watch_kernels(Reports kinds);

  // What custom kernels on software devices report to, from the first call on.
  // Any thread.
  CutLoops& cut_loops();

  // How much a submission may have.
  const WorkLimit& work_limit() const {
    return work_limit_;
  }
  // Before any other thread uses the device.
  void set_work_limit(WorkLimit limit) {
    work_limit_ = limit;
  }
  // Null with MLX_VK_DISABLE=sentinels, on software devices, which nothing
  // resets, and without timestamps.
  Sentinels* sentinels() {
    return sentinels_.get();
  }

  // A batch that no encoder made (a host read); starts after its waits.
  std::shared_ptr<Completion> submit(std::unique_ptr<Batch> batch);

  // Waits for what is on the queue, and releases what it kept.
  void finish_submitted();

  // Finishes what was submitted, stops the threads, saves caches. Idempotent.
  void shutdown();

 private:
  struct Unprobed {};
  explicit Device(Unprobed);
  void probe_lanes();
  void probe_arithmetic();

  std::unique_ptr<Instance> instance_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  Caps caps_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::unique_ptr<Timeline> timeline_;
  std::unique_ptr<Memory> memory_;
  WorkLimit work_limit_;
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

// The process's device, started at the first call. Throws as Device() does,
// again at each call while it fails; throws after a fork.
Device& device();
// Null while not started, in a child after fork, or once exit has shut the
// device down.
Device* device_if_started();
// At exit `drain` runs before the device is shut down: what else still uses
// its memory ends there.
void set_exit_hook(void (*drain)());
// True in a child process whose parent had started the device.
bool forked_from_started_device();

} // namespace mlx::core::vulkan
