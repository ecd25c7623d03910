// The memory of arrays, in two models (memory_types.h chooses).
//
// Unified: every Buffer is one mapped, device-addressable allocation, no copies
// ever. Discrete: a Buffer has a mirror, that is a device side, a host side, or
// both, of which it is known which are valid. Authority is decided while
// encoding, in program order: host_pointer() makes the host side authoritative,
// a GPU use uploads in the same batch, a GPU write makes the device side
// authoritative.
//
// Where the host's cache is apart (HOST_CACHED without HOST_COHERENT), the host
// side is flushed just before a batch that uploads it is submitted, and
// invalidated before anyone is told that one which downloads it is done. In
// unified memory of that kind both sides are one allocation, and a flush or an
// invalidation is all that an upload or a download is.
//
// An allocation that fails is tried again after what MLX has cached is freed,
// then after the batches on the queue are retired, then beyond the budget.
//
// Buffers made before the device starts are plain host memory and behave as
// host-born ones of the discrete model ever after. Thread-safe. Free of MLX.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "runtime/allocation.h"
#include "runtime/pins.h"
#include "runtime/timeline.h"

namespace mlx::core::vulkan {

struct Batch;

enum class Placement : uint8_t { Host, Device };

// What a Buffer is when made, and when used again for another array.
enum class BufferKind : uint8_t {
  Heap, // malloc'ed before the device started
  Mapped, // one allocation for both sides
  Shared, // the same, with flushes and invalidations between them
  HostBorn,
  DeviceBorn,
};
constexpr size_t buffer_kinds = 5;

struct Buffer {
  Buffer(size_t size, BufferKind kind);
  ~Buffer(); // whose memory Memory has released

  const size_t size; // bytes the allocator accounts for
  BufferKind kind;
  PinState kept; // by the batches that use it
  Buffer* next_free = nullptr; // in FreeLists

  bool mirrored() const {
    return mirror_ != nullptr;
  }
  // Of the first byte, once there is a device side.
  uint64_t address() const {
    return device_.address;
  }
  // What a mirrored one has on the device is all that a reader needs, whatever
  // its batch: prepare_for_device() has nothing to do.
  bool settled() const {
    return settled_.load(std::memory_order_acquire);
  }
  // Its host pointer, unless it is mirrored.
  void* mapped() const {
    return device_.mapped;
  }

 private:
  friend class Memory;
  struct Mirror;
  // Of the host side, if there is one; with a mirror only.
  void* host_address() const;

  Allocation device_;
  std::shared_ptr<Mirror> mirror_;
  std::atomic<bool> settled_{false}; // written under Memory::mirror_mutex_
};

// Frees what is kept to be used again, before an allocation fails. Any thread.
void set_trim_hook(void (*trim)());

class Memory {
 public:
  explicit Memory(Device& device);

  BufferKind kind_for(size_t size, Placement placement) const;
  // Throws VkError naming the size and what is in use.
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

  // Pointers that the host has been given stay valid as long as the buffer.
  void keep_host_side(Buffer& buffer) const;

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

  // A mapped, coherent, device-addressable allocation of the backend's own.
  Allocation allocate_mapped(size_t size);
  void free(Allocation& allocation);

  // Once every wait of the batch is over: its host copies, which may be long.
  void fill_mirrors(Batch& batch);
  // Just before the batch is submitted: what is left of these, and its flushes.
  void show_to_device(Batch& batch);
  // What the device has written to it, once it has.
  void show_to_host(const Allocation& allocation) {
    allocations_.invalidate(allocation);
  }

  // `host` memory of the process's own, in whole pages, as a buffer of kind
  // Mapped that the device reads and writes in place. Both stay for good.
  // Throws VkError where the device cannot.
  Buffer* import_host(void* host, size_t size);

  // Bytes of memory for arrays that this process may use, as of now.
  uint64_t budget() {
    return allocations_.budget(types_.device);
  }

  const MemoryTypes& types() const {
    return types_;
  }

  // MLX_VK_DEBUG=guard: throws std::runtime_error if a red zone was written.
  void check_guard(const Buffer& buffer) const;

  std::atomic<uint64_t> uploaded{0}, downloaded{0}; // bytes, for the profile

 private:
  // Runs f(beyond_budget) until it finds memory or there is no hope. Not under
  // any lock: what it frees and waits for may take all.
  template <typename F>
  auto with_room(F&& f);

  // All of these under mirror_mutex_. `over`: beyond the budget.
  void make_host_side(Buffer& buffer, bool over);
  void give_to_host(Buffer& buffer, bool over);
  void start_fetch(Buffer& buffer, bool over);
  void append_download(Batch& batch, Buffer& buffer, bool over);
  void append_upload(Batch& batch, Buffer& buffer, bool over);
  bool device_has_it(Buffer& buffer, const std::shared_ptr<Completion>& batch);

  void give_back_host_side(Buffer::Mirror& mirror, const Completion& upload);

  Device& device_;
  Allocations allocations_;
  MemoryTypes types_;
  bool guarded_ = false; // every Buffer with memory of the device is
  mutable std::mutex mirror_mutex_; // all mirrors
};

} // namespace mlx::core::vulkan
