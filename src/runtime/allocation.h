// Vulkan buffers with their memory, on VMA, and the choice of memory types.
// Thread-safe. Free of MLX.
#pragma once

#include <cstdint>

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
};

struct MemoryTypes {
  int device = -1; // GPU arrays
  int host = -1; // host-cached arrays and mirrors
  int small = -1; // mapped device memory for small arrays; -1: none
  bool unified = false;
};
// Pure choice from the memory properties; `unified` where one type is
// device-local, host-visible, coherent and the device is not discrete.
MemoryTypes choose_memory_types(
    const VkPhysicalDeviceMemoryProperties& properties,
    bool discrete_gpu,
    int forced); // 0 automatic, 1 unified, 2 discrete

// Host memory that both sides see without a flush, which every device has;
// cached if possible.
int coherent_host_type(const VkPhysicalDeviceMemoryProperties& properties);

class Allocations {
 public:
  explicit Allocations(const Device& device);
  ~Allocations();
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;

  // Throws VkError naming the size and what is free.
  Allocation create(size_t size, int type, bool mapped);
  void free(Allocation& allocation);

  // MLX_VK_DEBUG=guard: mapped, filled with poison, between two red zones.
  Allocation create_guarded(size_t size, int type);
  // Throws std::runtime_error if a red zone was written.
  static void check_guard(const Allocation& allocation, size_t size);

 private:
  const Device& device_;
  VmaAllocator_T* vma_ = nullptr;
};

// Kernels may read whole 16-byte words at an array's tail.
constexpr size_t tail_padding = 16;

} // namespace mlx::core::vulkan
