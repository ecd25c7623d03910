// A Vulkan device for tests: queues, command buffers, memory and timeline
// semaphores in plain C++, with random delays and an execution order that is
// as wild as the recorded barriers allow. It knows what its kernels read and
// write, and reports every conflict that no barrier orders, every address
// outside of a live buffer, and misuse of command buffers.
//
// Device addresses are host pointers. Shaders are not interpreted: a kernel's
// local_size_x names one of the programs below.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "vk/vk.h"

namespace fake {

// Programs, by local_size_x. Mix: z[i] = x[i] * 31 + y[i] * 17 + salt for
// i < n; null x or y count as zeros. Arguments: x, y, z, n, salt.
constexpr uint32_t program_mix = 64;
// The same, its arguments behind a pushed address.
constexpr uint32_t program_mix_in_memory = 65;
// The same as mix, after a report that its loop in line `loop_line` went beyond
// a bound of `loop_bound`, if the kernel was told where to
// (pipeline/reports.h).
constexpr uint32_t program_mix_endless = 66;
constexpr uint32_t loop_line = 7, loop_bound = 9;
// z[i] = z[i] + x[i] * 31 + salt for the `group_items` items i of each
// workgroup, which finds itself as group_index() does
// (kernels/common/args.glsl).
constexpr uint32_t program_groups = 67, group_items = 4;
// The lanes probe of the runtime: y[i] = sum of x, or 0 where
// settings.neighbours is false. Arguments: x, y, n.
constexpr uint32_t program_lanes = 256;
// The float16 probe of the runtime: y[i] = half(x[i]). Arguments: x, y, n.
constexpr uint32_t program_half = 32;
// The rate probe of the runtime: takes settings.group_us for each workgroup and
// writes nothing. Arguments: x, y, n, turns.
constexpr uint32_t program_rate = 128;

struct Settings {
  bool discrete = false; // separate memory types and mirrors
  bool float16 = true;
  bool good_float16 = true; // rounds correctly
  bool size_control = true; // VK_EXT_subgroup_size_control
  bool neighbours = true; // subgroups are neighbours; without size_control
  VkDriverId driver{};
  int max_delay_us = 200; // before a submission runs and before it signals
  int work_us = 0; // each submission takes at least
  double group_us = 0; // each workgroup of `groups` and of the rate probe takes
  uint32_t seed = 1;
  uint64_t heap_bytes = uint64_t(256) << 20;
  // Leaves out the n-th barrier of each command buffer.
  int drop_barrier = -1;
  // The n-th vkQueueSubmit (from 0) fails with `submit_result`.
  int fail_submit = -1;
  VkResult submit_result = VK_ERROR_OUT_OF_HOST_MEMORY;
  int fail_end = -1; // the n-th vkEndCommandBuffer fails
  // The n-th submission counts as done, but nothing of it has run.
  int drop_submit = -1;
  bool shows_queries = true;
  // The n-th pipeline creation fails.
  int fail_pipeline = -1;
  int compile_ms = 0; // each pipeline creation takes at least
  uint32_t buffer_types = ~0u; // a bit for each memory type that buffers take
  // Memory as on some device; without types, that of `discrete` or its
  // contrary. What is not host-coherent is seen by the host through flushes
  // and invalidations only.
  std::vector<VkMemoryType> types;
  std::vector<VkMemoryHeap> heaps;
  // Of VK_EXT_memory_budget, a heap each; none without.
  std::vector<uint64_t> budgets;
  uint64_t max_allocation = 0; // 0: heap_bytes
  // Runs on the device's thread where a mix does, with its salt.
  std::function<void(uint32_t salt)> before_mix;
};

// Resets everything; no device may be alive.
void reset(Settings settings = {});
Settings& settings();

// What went wrong so far, one line each.
std::vector<std::string> errors();
void clear_errors();

struct Statistics {
  uint64_t submits = 0, dispatches = 0, copies = 0, barriers = 0;
  uint64_t kernel_barriers = 0; // that order no copies
  uint64_t sentinels = 0; // submissions that end with a timestamp of all of it
  uint64_t most_groups = 0; // of one dispatch
  uint64_t most_dispatches = 0; // of one submission
  uint64_t most_copied = 0; // bytes of one copy
  uint64_t uneven_buffers = 0; // of a size that is no multiple of 256
  uint64_t allocations = 0; // of memory
  uint64_t live_memory = 0; // bytes allocated
  uint64_t heap_memory[VK_MAX_MEMORY_HEAPS] = {}; // of each heap
  uint64_t busy_allocations = 0; // of device memory, with work on the queue
  uint64_t flushes = 0, invalidations = 0, budget_queries = 0;
  uint64_t live_buffers = 0, live_pipelines = 0, live_semaphores = 0;
  uint64_t live_events = 0;
  uint64_t marks = 0; // vkCmdSetEvent
  uint64_t live_command_pools = 0, live_command_buffers = 0;
  uint32_t subgroup_size = 0; // that the last pipeline asked for
  bool any_subgroup_size = false; // it allowed
};
Statistics statistics();

// While held, the queue executes nothing.
void hold(bool held);

PFN_vkVoidFunction VKAPI_CALL
get_instance_proc_addr(VkInstance instance, const char* name);

} // namespace fake
