// Vulkan buffers with their memory, on VMA. Thread-safe. Free of MLX.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "runtime/driver_memory.h"
#include "runtime/memory_types.h"
#include "vk/vk.h"

struct VmaAllocator_T;
struct VmaAllocation_T;

namespace mlx::core::vulkan {

class Device;

// A VkBuffer, or a part of its block's (driver_memory.h), and its memory; a
// value, freed by Allocations::free().
struct Allocation {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize offset = 0; // of its first byte in `buffer`
  bool part = false;
  VmaAllocation_T* memory = nullptr;
  // The first byte, after the red zone of a guarded allocation.
  void* mapped = nullptr;
  VkDeviceAddress address = 0;
  // The host must flush its writes and invalidate before it reads.
  bool host_apart = false;
  // MLX_VK_DEBUG=noncoherent: the memory itself; `mapped` is then a copy of
  // `size` bytes that plays the host's cache.
  void* behind = nullptr;
  size_t size = 0;
};

// Out of memory: the allocation may succeed after other memory is freed.
class OutOfMemory : public VkError {
 public:
  using VkError::VkError;
};

// How the host uses an allocation.
enum class HostUse : uint8_t {
  None, // not mapped
  Coherent, // possibly at the same time as the device
  Array, // between an invalidation and a flush
  Spill, // as Array, for what comes and goes while the device is full
};

class Allocations {
 public:
  explicit Allocations(Device& device);
  ~Allocations();
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;

  // memoryTypeBits of the buffers of arrays.
  uint32_t buffer_types() const;

  // Allocates from the first of `types` that has room; `beyond_budget` ignores
  // the budget of its heap. Throws OutOfMemory, which names the size and the
  // memory in use, and VkError for errors that free memory would not solve.
  Allocation create(
      size_t size,
      std::span<const int> types,
      HostUse use,
      bool beyond_budget);
  void free(Allocation& allocation);

  // Makes the host's writes visible to the device, and the device's to the
  // host. No-op for coherent memory.
  void flush(const Allocation& allocation);
  void invalidate(const Allocation& allocation);

  // Bytes of the heaps of `types` that this process may use: the driver's
  // current budget (VK_EXT_memory_budget, sampled ten times a second), or the
  // heaps' size.
  uint64_t budget(std::span<const int> types);
  // That budget less what is in use.
  uint64_t room(std::span<const int> types);

  // MLX_VK_DEBUG=guard: a mapped allocation filled with poison between red
  // zones.
  Allocation
  create_guarded(size_t size, std::span<const int> types, bool beyond_budget);
  // Throws std::runtime_error if a red zone was written.
  static void check_guard(const Allocation& allocation, size_t size);

 private:
  VkResult try_type(size_t size, int type, HostUse, bool over, Allocation&);
  // Once: drivers move what exceeds their budget.
  void tell_if_beyond(uint32_t heap);
  std::string describe(size_t size, std::span<const int> types, VkResult) const;

  Device& device_;
  DriverMemory blocks_;
  VmaAllocator_T* vma_ = nullptr;
  std::atomic<int64_t> sampled_{
      0}; // time of the last sample, steady_clock ticks
  std::atomic<uint32_t> samples_{0};
  std::atomic<bool> told_{false};
};

// Measures how fast the host reads memory of `type`; takes about half a
// millisecond (probe.cpp).
HostReads measure_host_reads(Allocations& allocations, int type);
// Makes measure_host_reads() return this speed; 0 measures. The fake device of
// tests has ordinary memory.
void set_host_reads_for_tests(double bytes_per_second);

// Bytes added to each array, since kernels may read whole 16-byte words at its
// end.
constexpr size_t tail_padding = 16;

} // namespace mlx::core::vulkan
