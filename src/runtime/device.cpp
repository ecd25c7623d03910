#include "runtime/device.h"

#include <pthread.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "pipeline/cut_loops.h"
#include "pipeline/pipeline.h"
#include "pipeline/reports.h"
#include "runtime/batch.h"
#include "runtime/profile.h"
#include "runtime/recorder.h"
#include "runtime/sentinels.h"
#include "runtime/staging.h"
#include "vk/config.h"
#include "vk/features.h"

namespace mlx::core::vulkan {

namespace {

[[noreturn]] void no_device(const std::string& why) {
  throw std::runtime_error(
      "[vulkan] " + why + ". Vulkan devices here:\n" +
      list_devices(probe().devices) +
      "Set MLX_VK_DEVICE to an index, a UUID, part of a name, or cpu; "
      "`mlx-vulkan doctor` tells more.");
}

VkDevice device_for(const Vk& vk, VkPhysicalDevice physical, const Caps& caps) {
  DeviceFeatures f(
      {.matrices = caps.coopmat_f16 || caps.coopmat_bf16,
       .bf16 = caps.bfloat16,
       .dot = caps.integer_dot_product,
       .sizes = caps.subgroup_size_control});
#define MLXVK_ENABLE(ours, vulkan) f.vulkan = caps.ours;
  MLXVK_FEATURES(MLXVK_ENABLE)
#undef MLXVK_ENABLE
  f.f12.vulkanMemoryModel = caps.vulkan_memory_model;
  f.f12.vulkanMemoryModelDeviceScope = caps.vulkan_memory_model;
  f.matrices.cooperativeMatrix = VK_TRUE;
  return create_device(vk, physical, caps, f);
}

} // namespace

// Delegates, so that the destructor runs if a probe throws.
Device::Device() : Device(Unprobed{}) {
  probe_lanes();
  probe_arithmetic();
  // Software devices compute with the cores that would compile.
  if (!caps_.software()) {
    pipelines_->prepare(pipelines_->recent());
  }
  if (!std::isinf(work_limit_.seconds) && !config().test.assumed_rates) {
    measure_rates();
  }
}

Device::Device(Unprobed) {
  const Probe& p = probe();
  if (p.chosen < 0) {
    no_device(p.why.empty() ? "There is no Vulkan device" : p.why);
  }
  std::string why;
  instance_ = Instance::create(config().debug_validate, why);
  if (!instance_) {
    no_device(why);
  }
  int index = choose_device(instance_->caps, config().device, why, launch());
  if (index < 0) {
    no_device(why);
  }
  physical_ = instance_->physical[index];
  caps_ = instance_->caps[index];
  target_.policy = policy_of(caps_, config().test, config().int8_activations);
  auto only = parse_matrix_shape(config().test.matrices);
  if (only && !caps_.software()) {
    choose_matrices(caps_, only);
  }
  if (config().disabled("coopmat")) {
    caps_.coopmat_f16 = caps_.coopmat_bf16 = false;
  }
  caps_.shader_float64 &= !config().disabled("float64");
  if (config().disabled("shared")) {
    caps_.shared_memory = 16384;
  }
  if (config().disabled("bfloat16")) {
    caps_.bfloat16 = caps_.coopmat_bf16 = false;
  }
  if (config().test.fixed_subgroups) {
    caps_.subgroup_size_control = caps_.required_subgroup_size = false;
    caps_.full_subgroups = false;
    caps_.min_subgroup_size = caps_.max_subgroup_size = caps_.subgroup_size;
  }
  device_ = device_for(vk(), physical_, caps_);
  if (only && caps_.software()) {
    emulate_matrices(caps_, *only);
    caps_.coopmat_bf16 &= !config().disabled("bfloat16");
  }
  if (!instance_->vk.load_device(device_, why)) {
    no_device(caps_.name + " cannot be used: " + why);
  }
  vk().vkGetDeviceQueue(device_, caps_.compute_queue_family, 0, &queue_);
  timeline_ = std::make_unique<Timeline>(
      vk(), device_, WaitPolicy{.interrupts = caps_.software()});
  memory_ = std::make_unique<Memory>(*this);
  staging_ = std::make_unique<Staging>(*this);
  work_limit_ = vulkan::work_limit(caps_, config().max_ms);
  if (!config().disabled("sentinels") && caps_.timestamps &&
      caps_.host_query_reset && !caps_.software()) {
    sentinels_ = std::make_unique<Sentinels>(vk(), device_);
    timeline_->check(sentinels_.get());
  }
  profiler_ = std::make_unique<Profiler>();
  pipelines_ = std::make_unique<PipelineTable>(vk(), device_, caps_);
  pipelines_->when_settled([] { wakeup().notify(); });
  // Enabled if offered: MLX's CPU and Metal keep NaN, Inf and subnormals.
  if (caps_.preserve_nan_f32) {
    pipelines_->add_global_define("FLOAT_CONTROLS", "1");
  }
  if (caps_.preserve_denorm_f32) {
    pipelines_->add_global_define("DENORM_PRESERVE_F32", "1");
  }
  if (int kinds = config().debug_loops + 2 * config().debug_bounds) {
    watch_kernels(static_cast<Reports>(kinds));
  }
  batches_ = std::make_unique<BatchPool>();
  recorder_ = std::make_unique<Recorder>(*this);
}

Device::~Device() {
  shutdown();
  recorder_.reset();
  batches_.reset();
  pipelines_.reset();
  reports_.reset();
  cut_loops_.reset();
  sentinels_.reset();
  staging_.reset();
  memory_.reset();
  timeline_.reset();
  if (device_) {
    vk().vkDestroyDevice(device_, nullptr);
  }
}

void Device::watch_kernels(Reports kinds) {
  Allocation memory = memory_->allocate_mapped(report_bytes);
  auto release = [this, memory](void*) mutable { memory_->free(memory); };
  reports_ = std::make_unique<KernelReports>(
      kinds,
      std::shared_ptr<ReportMemory>(
          static_cast<ReportMemory*>(memory.mapped), std::move(release)),
      memory.address,
      caps_);
  pipelines_->report(*reports_);
}

CutLoops& Device::cut_loops() {
  std::call_once(cut_loops_once_, [this] {
    Allocation memory = memory_->allocate_mapped(sizeof(CutLoops::Memory));
    auto release = [this, memory](void*) mutable { memory_->free(memory); };
    cut_loops_ = std::make_unique<CutLoops>(
        std::shared_ptr<CutLoops::Memory>(
            static_cast<CutLoops::Memory*>(memory.mapped), std::move(release)),
        memory.address);
  });
  return *cut_loops_;
}

std::shared_ptr<Completion> Device::submit(std::unique_ptr<Batch> batch) {
  batch->completion = std::make_shared<Completion>(*timeline_);
  batch->host_read = true;
  auto completion = batch->completion;
  recorder_->push(std::move(batch));
  return completion;
}

VkResult Device::submit_to_queue(std::span<const VkSubmitInfo> submits) {
  std::lock_guard lock(queue_mutex_);
  VkResult r = vk().vkQueueSubmit(
      queue_,
      static_cast<uint32_t>(submits.size()),
      submits.data(),
      VK_NULL_HANDLE);
  last_ticket_ += r == VK_SUCCESS ? submits.size() : 0;
  return r;
}

std::unique_lock<std::mutex> Device::pause() {
  std::unique_lock lock(queue_mutex_);
  uint64_t before; // work that goes on may take longer than a second
  do {
    before = timeline_->seen();
    timeline_->wait(
        last_ticket_, Timeline::Clock::now(), std::chrono::seconds(1));
  } while (before < timeline_->seen() && timeline_->seen() < last_ticket_);
  return lock;
}

void Device::finish_submitted() {
  if (recorder_) {
    recorder_->finish_submitted();
  }
}

void Device::shutdown() {
  if (down_.exchange(true)) {
    return;
  }
  if (recorder_) {
    recorder_->stop();
  }
  if (device_ && (!timeline_->lost() || timeline_->dropped())) {
    vk().vkDeviceWaitIdle(device_);
  }
  if (pipelines_) {
    pipelines_->stop();
    pipelines_->save_driver_cache();
    pipelines_->remember_recent();
  }
  if (profiler_) {
    counters().host_waits = timeline_->host_waits.load();
    profiler_->report(caps_.name, memory_->uploaded, memory_->downloaded);
  }
}

namespace {
std::mutex start_mutex;
std::atomic<Device*> started{nullptr};
std::atomic<bool> forked{false};
// After shutdown at exit, threads that still run (CPU streams) must not call
// into a driver that is being unloaded.
std::atomic<bool> gone{false};
std::atomic<void (*)()> exit_hook{nullptr};

void at_exit() {
  static std::atomic<bool> begun{false};
  if (begun.exchange(true)) {
    return;
  }
  if (auto* d = device_if_started()) {
    if (auto drain = exit_hook.load()) {
      drain();
    }
    d->shutdown();
    if (d->timeline().hung()) {
      // The driver's own exit handlers would wait for the device for ever.
      std::fflush(nullptr);
      _exit(EXIT_FAILURE);
    }
  }
  gone = true;
}
} // namespace

void shut_down_at_exit() {
  std::atexit(at_exit);
}

Device& device() {
  if (forked) {
    throw std::runtime_error(
        "[vulkan] This process was forked from one that uses the GPU, and "
        "Vulkan devices do not survive a fork. Use the CPU device here, or "
        "start workers with the `spawn` method.");
  }
  if (auto* d = started.load(std::memory_order_acquire)) {
    return *d;
  }
  std::lock_guard lock(start_mutex);
  if (auto* d = started.load()) {
    return *d;
  }
  auto* d = new Device; // leaked: streams of other threads may outlive exit
  started.store(d, std::memory_order_release);
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
  shut_down_at_exit();
  return *d;
}

Device* device_if_started() {
  return forked || gone ? nullptr : started.load(std::memory_order_acquire);
}

void set_exit_hook(void (*drain)()) {
  exit_hook = drain;
}

bool forked_from_started_device() {
  return forked;
}

} // namespace mlx::core::vulkan
