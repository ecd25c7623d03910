// The memory of arrays, in two models.
//
// Unified: every Buffer is one mapped, device-addressable allocation, no copies
// ever. Discrete: a Buffer has a mirror, that is a device side, a host side, or
// both, of which it is known which are valid. Authority is decided while
// encoding, in program order: host_pointer() makes the host side authoritative,
// a GPU use uploads in the same batch, a GPU write makes the device side
// authoritative.
//
// Buffers made before the device starts are plain host memory and behave as
// host-born ones of the discrete model ever after. Thread-safe. Free of MLX.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "runtime/allocation.h"
#include "runtime/keeper.h"
#include "runtime/timeline.h"

namespace mlx::core::vulkan {

struct Batch;

enum class Placement : uint8_t { Host, Device };

// What a Buffer is when made, and when used again for another array.
enum class BufferKind : uint8_t {
  Heap, // malloc'ed before the device started
  Mapped, // one allocation for both sides
  HostBorn,
  DeviceBorn,
};
constexpr size_t buffer_kinds = 4;

struct Buffer {
  Buffer(size_t size, BufferKind kind);
  ~Buffer(); // whose memory Memory has released

  const size_t size; // bytes the allocator accounts for
  BufferKind kind;
  Kept kept; // by the batches that use it

  bool mirrored() const {
    return mirror_ != nullptr;
  }
  // Of the first byte, once there is a device side.
  uint64_t address() const {
    return device_.address;
  }
  // Its host pointer, unless it is mirrored.
  void* mapped() const {
    return device_.mapped;
  }

 private:
  friend class Memory;
  struct Mirror;
  Allocation device_;
  std::unique_ptr<Mirror> mirror_;
};

class Memory {
 public:
  explicit Memory(Device& device);

  BufferKind kind_for(size_t size, Placement placement) const;
  // Throws VkError naming the size and what is free.
  Buffer* allocate(size_t size, Placement placement);
  void release(Buffer* buffer);
  // Makes a buffer that nobody uses as good as new; false: not worth it.
  bool recycle(Buffer& buffer);

  // Without a device, or in a process that can use it no more.
  static Buffer* allocate_heap(size_t size);
  static void release_heap(Buffer* buffer);
  static bool recycle_heap(const Buffer& buffer);
  static void* heap_pointer(Buffer& buffer);

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
  // side and appends the upload it needs. Mirrored buffers only.
  void prepare_for_device(
      Batch& batch,
      Buffer& buffer,
      uint64_t begin,
      uint64_t end,
      bool write);
  // Appends the copy of the device side to the host side.
  void record_download(Batch& batch, Buffer& buffer);

  // A mapped, device-addressable allocation of the backend's own.
  Allocation allocate_mapped(size_t size);
  // The same for what the host looks at often: coherent, cached if possible.
  Allocation allocate_for_reading(size_t size);
  void free(Allocation& allocation);

  const MemoryTypes& types() const {
    return types_;
  }

  // MLX_VK_DEBUG=guard: throws std::runtime_error if a red zone was written.
  void check_guard(const Buffer& buffer) const;

  std::atomic<uint64_t> uploaded{0}, downloaded{0}; // bytes, for the profile

 private:
  // All of these under mirror_mutex_.
  void make_host_side(Buffer& buffer);
  void give_to_host(Buffer& buffer);
  void start_fetch(Buffer& buffer);
  void append_download(Batch& batch, Buffer& buffer);
  bool device_has_it(Buffer& buffer, const std::shared_ptr<Completion>& batch);

  Device& device_;
  Allocations allocations_;
  MemoryTypes types_;
  bool guarded_; // every Buffer with memory of the device is
  mutable std::mutex mirror_mutex_; // all mirrors
};

} // namespace mlx::core::vulkan
