// Which memory types arrays live in: a pure choice from what a device offers,
// what kind of device it is and how fast the host reads its memory. Free of
// MLX.
#pragma once

#include <string>
#include <vector>

#include <vulkan/vulkan.h>

#include "vk/config.h"

namespace mlx::core::vulkan {

// How fast the host reads mapped memory of a type; type -1: not measured.
struct HostReads {
  int type = -1;
  double bytes_per_second = 0;
};
// Write-combined memory is read at 0.03 to 0.3 GB/s, cached memory at 5 or
// more.
constexpr double fast_host_reads = 1e9;

// Lists are in order of preference; a later type serves when the heaps of the
// earlier ones are full, and each is of another heap.
struct MemoryTypes {
  std::vector<int> device; // arrays of the GPU; unified: all arrays
  std::vector<int> host; // arrays born on the host, and mirrors
  std::vector<int> coherent; // mapped, for what both sides may touch
  bool small = false; // small arrays need no copies: they go to `coherent`
  bool unified = false; // one mapped allocation an array, no copies
  // Unified: the host's writes and reads need no flush or invalidation.
  bool host_coherent = true;
  // The host's side is part of the same memory as the device's: it is given
  // back once the device has what was born there.
  bool one_memory = false;
  std::string why; // the memory model and its reason, for people

  bool usable() const {
    return !device.empty() && !host.empty() && !coherent.empty();
  }
};

// `properties` with the types alone of which `bits` has the bit: a buffer takes
// no others. ANV lists compressed memory, for images, before the usual kind.
VkPhysicalDeviceMemoryProperties types_of_buffers(
    VkPhysicalDeviceMemoryProperties properties,
    uint32_t bits);

// The type of which the choice depends on how fast the host reads it; -1: the
// flags say enough.
int type_to_probe(
    const VkPhysicalDeviceMemoryProperties& properties,
    VkPhysicalDeviceType device,
    MemoryModel wanted);

// Where `reads` is not of type_to_probe(), memory that is not host-cached
// counts as slow. `host_caches_apart`: MLX_VK_DEBUG=noncoherent, see
// allocation.h.
MemoryTypes choose_memory_types(
    const VkPhysicalDeviceMemoryProperties& properties,
    VkPhysicalDeviceType device,
    MemoryModel wanted,
    const HostReads& reads = {},
    bool host_caches_apart = false);

// Bytes of the heaps that `types` are of.
uint64_t heap_bytes(
    const VkPhysicalDeviceMemoryProperties& properties,
    const std::vector<int>& types);

} // namespace mlx::core::vulkan
