// Chooses the memory types of arrays from the types that a device offers, the
// kind of device, and the speed at which the host reads its memory. Pure, free
// of MLX.
#pragma once

#include <string>
#include <vector>

#include <vulkan/vulkan.h>

#include "vk/config.h"

namespace mlx::core::vulkan {

// Speed at which the host reads mapped memory of a type; -1: not measured.
struct HostReads {
  int type = -1;
  double bytes_per_second = 0;
};
// Write-combined memory is read at 0.03 to 0.3 GB/s, cached memory at 5 or
// more.
constexpr double fast_host_reads = 1e9;

// Lists are in order of preference. Each type of a list is of another heap and
// is used when the heaps of the earlier ones are full.
struct MemoryTypes {
  std::vector<int> device; // arrays of the GPU; unified: all arrays
  std::vector<int> host; // arrays created on the host, and host sides
  std::vector<int> in_place; // a card's arrays for which it has no room
  std::vector<int> coherent; // mapped memory that both sides may access
  bool small = false; // small arrays go to `coherent` and need no copies
  bool unified = false; // an array is one mapped allocation without copies
  // Unified memory needs no flushes or invalidations.
  bool host_coherent = true;
  // Host and device memory are one: the host side is freed once its data was
  // uploaded.
  bool one_memory = false;
  std::string why; // the memory model and its reason, for people

  bool usable() const {
    return !device.empty() && !host.empty() && !coherent.empty();
  }
};

// `properties` with only the types in `bits`, the memoryTypeBits of a buffer.
// ANV lists compressed memory, for images, before the usual types.
VkPhysicalDeviceMemoryProperties types_of_buffers(
    VkPhysicalDeviceMemoryProperties properties,
    uint32_t bits);

// The type whose use depends on the speed of host reads; -1 if flags decide.
int type_to_probe(
    const VkPhysicalDeviceMemoryProperties& properties,
    VkPhysicalDeviceType device,
    MemoryModel wanted);

// If `reads` is not of type_to_probe(), memory that is not HOST_CACHED counts
// as slow. `host_caches_apart`: MLX_VK_DEBUG=noncoherent, see allocation.h.
MemoryTypes choose_memory_types(
    const VkPhysicalDeviceMemoryProperties& properties,
    VkPhysicalDeviceType device,
    MemoryModel wanted,
    const HostReads& reads = {},
    bool host_caches_apart = false);

// The total size in bytes of the heaps of `types`.
uint64_t heap_bytes(
    const VkPhysicalDeviceMemoryProperties& properties,
    const std::vector<int>& types);

} // namespace mlx::core::vulkan
