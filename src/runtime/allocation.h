// Vulkan buffers with their memory, on VMA. Thread-safe. Free of MLX.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "runtime/memory_types.h"
#include "vk/vk.h"

struct VmaAllocator_T;
struct VmaAllocation_T;

namespace mlx::core::vulkan {

class Device;

// One VkBuffer and its memory; a value, freed by Allocations::free().
struct Allocation {
  VkBuffer buffer = VK_NULL_HANDLE;
  VmaAllocation_T* memory = nullptr;
  // Of the first byte; behind the red zone if guarded.
  void* mapped = nullptr;
  VkDeviceAddress address = 0;
  // The host has to flush what it wrote and to invalidate before it reads.
  bool host_apart = false;
  // MLX_VK_DEBUG=noncoherent: the memory itself; `mapped` is a copy of `size`
  // bytes that stands for the host's cache.
  void* behind = nullptr;
  size_t size = 0;
};

// No memory: it may help to free some, or to wait until others have.
class OutOfMemory : public VkError {
 public:
  using VkError::VkError;
};

// How the host uses an allocation.
enum class HostUse : uint8_t {
  None, // it is not mapped
  Coherent, // at the same time as the device, perhaps
  Array, // between flush and invalidation
};

class Allocations {
 public:
  explicit Allocations(const Device& device);
  ~Allocations();
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;

  // A bit for each memory type that arrays' buffers take.
  uint32_t buffer_types() const;

  // In memory of the first of `types` that has room. `beyond_budget`: even
  // where the budget of its heap is spent, if not the heap. Throws OutOfMemory
  // naming the size and what is in use, and VkError where no free memory would
  // do.
  Allocation create(
      size_t size,
      std::span<const int> types,
      HostUse use,
      bool beyond_budget);
  void free(Allocation& allocation);

  // The host's writes, to the device; and back. Nothing to do where both see
  // the same.
  void flush(const Allocation& allocation);
  void invalidate(const Allocation& allocation);

  // Bytes that this process may use of the heaps of `types`, as the driver says
  // now (VK_EXT_memory_budget; sampled ten times a second), or all of them.
  uint64_t budget(std::span<const int> types);

  // MLX_VK_DEBUG=guard: mapped, filled with poison, between two red zones.
  Allocation
  create_guarded(size_t size, std::span<const int> types, bool beyond_budget);
  // Throws std::runtime_error if a red zone was written.
  static void check_guard(const Allocation& allocation, size_t size);

 private:
  VkResult try_type(size_t size, int type, bool mapped, bool over, Allocation&);
  std::string describe(size_t size, std::span<const int> types, VkResult) const;

  const Device& device_;
  VmaAllocator_T* vma_ = nullptr;
  std::atomic<int64_t> sampled_{0}; // the budgets, in steady_clock's units
  std::atomic<uint32_t> samples_{0};
};

// Allocates some memory of `type` and reads it for at most half a millisecond
// or so (probe.cpp).
HostReads measure_host_reads(Allocations& allocations, int type);
// What it is to find instead, 0: what there is. Memory of the fake device of
// tests is as fast as any.
void set_host_reads_for_tests(double bytes_per_second);

// Kernels may read whole 16-byte words at an array's tail.
constexpr size_t tail_padding = 16;

} // namespace mlx::core::vulkan
