// Device memory on VMA, in two models.
//
// Unified: every Buffer is one mapped, device-addressable allocation
// ("coherent"), no copies ever. Discrete: a Buffer has a device allocation, a
// host one, or both, with flags that say which side is valid. Authority is
// decided while encoding, in program order: host_pointer() makes the host side
// authoritative, a GPU use uploads in the same batch, a GPU write makes the
// device side authoritative.
//
// Buffers made before the device starts are plain host memory and behave as
// host-born ones of the discrete model ever after. Thread-safe. Free of MLX.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/timeline.h"

struct VmaAllocator_T;
struct VmaAllocation_T;

namespace mlx::core::vulkan {

class Device;
struct Batch;

enum class Placement : uint8_t { Host, Device };

// One VkBuffer and its memory.
struct Allocation {
  VkBuffer buffer = VK_NULL_HANDLE;
  VmaAllocation_T* memory = nullptr;
  void* mapped = nullptr;
  VkDeviceAddress address = 0;
};

struct Buffer {
  size_t size = 0; // bytes the allocator accounts for
  Placement placement = Placement::Host;
  bool coherent = false; // device.mapped is the host pointer
  bool guarded = false;
  uint64_t address = 0; // of the first byte, once there is a device side
  size_t guard_offset = 0; // red zone before the first byte
  Allocation device;

  // Who keeps the memory for GPU work under way, see Encoder::keep(); under
  // keeper_mutex().
  std::shared_ptr<void> keeper;
  Batch* keeper_batch = nullptr;

  // Discrete model only, under Memory::mirror_mutex_.
  Allocation host; // mapped; or only `heap` below
  void* heap = nullptr; // malloc'ed before the device started
  bool host_valid = false;
  bool device_valid = false;
  bool download_recorded = false; // host side follows in an open/sent batch
  // Batches that upload it, none of them known to be on the queue.
  std::vector<std::shared_ptr<Completion>> uploads;
  std::shared_ptr<Completion> last_write;
  // A download outside of any stream that a host reader has to wait for.
  std::shared_ptr<Completion> fetch;
  // The CPU stream's signal behind which the host side is final. Until then
  // its worker may ask for the pointer at any time.
  EventPoint cpu_writer;
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

class Memory {
 public:
  Memory(Device& device);
  ~Memory();

  // Throws std::runtime_error naming the size and what is free.
  Buffer* allocate(size_t size, Placement placement);
  void release(Buffer* buffer);
  // Heap memory of a process without a started device.
  static Buffer* allocate_heap(size_t size);
  static void release_heap(Buffer* buffer);

  // Stable, writable host pointer; makes the host side authoritative. Waits
  // for the last GPU writer unless the copy to the host is already recorded.
  void* host_pointer(Buffer& buffer);

  // The host side where it is valid as it is, else null: neither waits nor
  // changes which side is authoritative. For reading only.
  const void* valid_host_pointer(const Buffer& buffer) const;

  // A CPU stream is producing this buffer until `signal`: the host side is the
  // one that counts from here on, in program order.
  void set_cpu_writer(Buffer& buffer, EventPoint signal);

  // Its CPU stream has not signalled yet: nothing may write it on the GPU, as
  // the worker's request for the pointer would be taken for a later one.
  bool awaits_cpu(Buffer& buffer);

  // Before a record of `batch` touches [begin, end): gives the buffer a device
  // side and appends the upload it needs. Non-coherent buffers only.
  void prepare_for_device(
      Batch& batch,
      Buffer& buffer,
      uint64_t begin,
      uint64_t end,
      bool write);
  // Appends the copy of the device side to the host side.
  void record_download(Batch& batch, Buffer& buffer);

  // Gives the buffer a device address without saying anything about content.
  void ensure_device_side(Buffer& buffer);

  // A mapped, device-addressable allocation for argument rings.
  Allocation allocate_ring(size_t size);
  void free(Allocation& allocation);

  const MemoryTypes& types() const {
    return types_;
  }
  uint64_t largest_buffer() const;

  // GuardZone: throws std::runtime_error if a red zone was written.
  void check_guard(const Buffer& buffer) const;

  std::atomic<uint64_t> uploaded{0}, downloaded{0}; // bytes, for the profile

 private:
  Allocation create(size_t size, int type, bool mapped);
  void start_fetch(Buffer& buffer);
  bool device_has_it(Buffer& buffer, const std::shared_ptr<Completion>& batch);
  void append_copy(
      Batch& batch,
      const Allocation& src,
      const Allocation& dst,
      size_t size);

  Device& device_;
  mutable std::mutex mirror_mutex_;
  MemoryTypes types_;
  VkPhysicalDeviceMemoryProperties properties_{};
  VmaAllocator_T* vma_ = nullptr;
};

} // namespace mlx::core::vulkan
