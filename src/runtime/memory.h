// The memory of arrays, in two models (memory_types.h chooses).
//
// Unified: a Buffer is one mapped, device-addressable allocation; nothing is
// copied. Discrete: a Buffer has a device side, a host side, or both, and a
// mirror that records which of them are valid. The authoritative side is
// decided while encoding, in program order, by the table in mirror.h:
// host_pointer() makes the host side authoritative, a use on the GPU uploads in
// the same batch, and a GPU write makes the device side authoritative.
//
// Memory that is HOST_CACHED without HOST_COHERENT is flushed just before a
// batch that uploads it is submitted, and invalidated before the waiters of a
// batch that downloads it are notified. In unified memory of that kind both
// sides are one allocation, and uploads and downloads consist of flushes and
// invalidations.
//
// What a failed allocation tries in turn is in docs/dev/memory.md.
//
// Buffers created before the device starts are plain host memory and stay
// host-born buffers of the discrete model. Thread-safe. Free of MLX.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/allocation.h"
#include "runtime/pins.h"
#include "runtime/timeline.h"

namespace mlx::core::vulkan {

// Weights leave steps at most this part of the budget, and what a full card
// puts into the host's memory is no more.
constexpr uint64_t most_step_part = 3;

struct Batch;
struct ExpertCache; // ops/quant/expert_cache.h
enum class Sides : uint8_t; // mirror.h

enum class Placement : uint8_t {
  Host,
  Device, // or InPlace, where that has no room within its budget
  InPlace, // the host's memory, which the device reads over its bus
  Spare, // the card's memory that nothing else takes, or an error; never moves
};

// The kind of a Buffer's memory. One that moves to the host's becomes Shared.
enum class BufferKind : uint8_t {
  Heap, // malloc'ed before the device started
  Mapped, // one allocation for both sides
  Shared, // one allocation, with flushes and invalidations; or in place
  HostBorn,
  DeviceBorn,
};
constexpr size_t buffer_kinds = 5;

// What of a full card's is in the host's memory: what was made there, what
// recent batches used, and what was idle. Each has a bound of its own.
enum class Spill : uint8_t { No, Made, Lately, Idle };

struct Buffer : PinState { // the pin of the batches that use it
  Buffer(size_t size, BufferKind kind);
  ~Buffer(); // Memory must have released its memory

  const size_t size; // bytes the allocator accounts for
  std::atomic<BufferKind> kind;
  Buffer* next_free = nullptr; // in MemoryCache
  uint64_t cached_at = 0; // there
  std::shared_ptr<ExpertCache> experts; // of weights in place

  bool mirrored() const {
    return mirror_ != nullptr;
  }
  // Device address of the first byte, once there is a device side.
  uint64_t address() const {
    return device_.address;
  }
  // Whether the device side of a mirrored buffer is valid for a reader in any
  // batch, so that prepare_for_device() has nothing to do.
  bool settled() const {
    return settled_.load();
  }
  // To be called before settled(), by the thread that encodes the batch with
  // this serial number, which uses the buffer.
  void use(uint64_t serial) {
    uint64_t last = used_.load(std::memory_order_relaxed);
    while (last < serial && !used_.compare_exchange_weak(last, serial)) {
    }
  }
  // The host pointer of a buffer without a mirror.
  void* mapped() const {
    return device_.mapped;
  }

 private:
  friend class Memory;
  struct Mirror;
  // The address of a mirrored buffer's host side, if it has one.
  void* host_address() const;

  Allocation device_;
  std::shared_ptr<Mirror> mirror_;
  std::atomic<bool> settled_{false}; // written under Memory::mirror_mutex_
  static constexpr uint64_t stays = ~0ull;
  std::atomic<uint64_t> used_{stays}; // the last batch; `stays`: does not move
  bool listed_ = false; // in Memory::movable_
  bool weight_ = false; // of a file: moves if nothing else is idle
  Spill spill_ = Spill::No; // in which of Memory::spilled_ its size counts
};

// Sets a function that frees cached buffers before an allocation fails. Any
// thread.
void set_trim_hook(void (*trim)());

class Memory {
 public:
  explicit Memory(Device& device);

  BufferKind kind_for(size_t size, Placement placement) const;
  // Throws VkError naming the size and what is in use.
  Buffer* allocate(size_t size, Placement placement);
  // Memory of kept blocks, or null if the driver would have to give some.
  Buffer* allocate_in_blocks(size_t size, Placement placement);
  void release(Buffer* buffer);
  // Resets an unused buffer for reuse; false if it is better freed.
  bool recycle(Buffer& buffer);

  // Buffers of a process without a device, or that can no longer use it.
  static Buffer* allocate_heap(size_t size);
  static void release_heap(Buffer* buffer);
  static bool recycle_heap(const Buffer& buffer);
  static void* heap_pointer(Buffer& buffer);

  // A stable, writable host pointer; makes the host side authoritative. Waits
  // for the last GPU writer unless the download is already recorded.
  void* host_pointer(Buffer& buffer) {
    return prepare_for_host(buffer, 1);
  }
  // host_pointer() whose next `pointers` calls cannot fail.
  void* prepare_for_host(Buffer& buffer, uint32_t pointers = 0);

  // Until end_expecting(), the calling thread gets pointers to this buffer
  // without waiting for a recorded download; a fence orders its CPU stream
  // behind that download.
  static void expect_download(const Buffer& buffer);
  static void end_expecting();

  // The host side if it is valid, else null. Neither waits nor changes which
  // side is authoritative. For reading only.
  const void* valid_host_pointer(const Buffer& buffer) const;

  // Host pointers to the buffer stay valid for its lifetime from now on.
  void keep_host_side(Buffer& buffer) const;

  // A CPU stream writes this buffer until `signal`: the host side is
  // authoritative from here on, in program order.
  void set_cpu_writer(Buffer& buffer, EventPoint signal);

  // Whether its CPU stream has not signalled yet. The GPU must not write the
  // buffer then: the worker's later call of host_pointer() would be taken for a
  // new write.
  bool awaits_cpu(Buffer& buffer);

  // Whether the device reads the buffer in the host's memory, over its bus.
  bool in_place(const Buffer& buffer) const {
    return buffer.kind == BufferKind::Shared && !types_.unified;
  }
  // Called before a record of `batch` accesses [begin, end) of a mirrored
  // buffer: creates the device side and appends the upload that it needs.
  // Returns the bytes that the record moves over the bus.
  uint64_t prepare_for_device(
      Batch& batch,
      Buffer& buffer,
      uint64_t begin,
      uint64_t end,
      bool write);
  // Appends the copy of the device side to the host side.
  void record_download(Batch& batch, Buffer& buffer);

  // Appends a copy of `size` mapped bytes of allocate_host() to byte `begin` of
  // the device side, after a flush.
  void record_fill(
      Batch& batch,
      const Allocation& from,
      Buffer& to,
      uint64_t begin,
      uint64_t size);

  // Gives a batch that is about to be filled a serial number, higher than all
  // before: buffers that it uses do not move before it is done.
  void begin_batch(Batch& batch);

  // A mapped, coherent, device-addressable allocation for the backend itself.
  Allocation allocate_mapped(size_t size);
  // A mapped one of the host's memory, which need not be coherent.
  Allocation allocate_host(size_t size);
  void free(Allocation& allocation);

  // Runs the host copies of a batch, which may take long, once its waits are
  // over.
  void fill_mirrors(Batch& batch);
  // Runs the remaining host copies and the flushes just before submission.
  void show_to_device(Batch& batch);
  // Invalidates the host's cache of memory that the device has written.
  void show_to_host(const Allocation& allocation) {
    allocations_.invalidate(allocation);
  }

  // A buffer of kind Mapped around memory that its maker owns and never frees.
  Buffer* adopt(VkBuffer buffer, void* mapped, size_t size) const;

  // Bytes of device memory that this process may use, at present.
  uint64_t budget() {
    return allocations_.budget(types_.device);
  }

  // The same of the host's memory that it reads in place.
  uint64_t budget_in_place() {
    return allocations_.budget(types_.in_place);
  }

  const MemoryTypes& types() const {
    return types_;
  }

  // The state of a mirrored buffer, for tests.
  Sides sides(const Buffer& buffer) const;

  // MLX_VK_DEBUG=guard: throws std::runtime_error if a red zone was written.
  void check_guard(const Buffer& buffer) const;

  std::atomic<uint64_t> uploaded{0}, downloaded{0}; // bytes, for the profile
  std::atomic<uint64_t> in_place_bytes{0}; // of buffers that are in place

 private:
  // Weights and new arrays that a full card puts into the host's memory: a
  // third of the budget within these bounds; arrays of recent batches: half.
  // Drivers take 0.3 ms for each MiB.
  static constexpr uint64_t least_spill = 256 << 20, most_spill = 4ull << 30;

  // Calls f(last_try) until it succeeds or nothing more can be freed. The last
  // try may place the array in the host's memory or exceed the budget. It is
  // for `device_bytes` of the device's memory. Call without locks: freeing and
  // waiting may take any of them.
  template <typename F>
  auto with_room(F&& f, uint64_t device_bytes = 0, bool last_try = true);
  // Moves arrays of at least so many bytes, those first that were used longest
  // ago, to the host's memory. Returns false if none is Idle, or for Lately,
  // none without an unfinished batch that uses it.
  bool move_arrays(uint64_t bytes, Spill how);
  struct Move;
  std::vector<Move> begin_moves(Batch& batch, uint64_t bytes, Spill how);
  void end_move(Move& move, bool copied);

  // `over` allows to exceed the budget.
  void make_first_side(Buffer& buffer, bool over);
  // Bytes that a full card may still put into the host's memory: of new arrays
  // and weights, of those that recent batches used, and of idle ones, to which
  // half of it may go.
  uint64_t room_to_spill(Spill how = Spill::Made);
  uint64_t room_for_idle();
  // Called under mirror_mutex_.
  void spilled(Buffer& buffer, Spill how);
  void end_spill(Buffer& buffer);
  // From now on its memory may move.
  void list(Buffer& buffer);
  // Gives what spilled a device side again, to be uploaded in this batch, if
  // there is room. Called under mirror_mutex_.
  void bring_back(Batch& batch, Buffer& buffer);
  bool read_in_place(Buffer& buffer);
  // Called under mirror_mutex_.
  void make_host_side(Buffer& buffer, bool over);
  void give_to_host(Buffer& buffer, bool over, bool fetch = false);
  void start_fetch(Buffer& buffer, bool over);
  void append_download(Batch& batch, Buffer& buffer, bool over);
  void append_upload(Batch& batch, Buffer& buffer, bool over);

  void give_back_host_side(Buffer::Mirror& mirror, const Completion& upload);

  Device& device_;
  Allocations allocations_;
  MemoryTypes types_;
  bool guarded_ = false; // buffers in device memory have red zones
  mutable std::mutex mirror_mutex_; // guards all mirrors, and movable_
  std::unordered_set<Buffer*> movable_;
  std::atomic<uint64_t> spilled_[4]{}; // bytes by Spill
  std::mutex batches_mutex_; // guards the members below
  uint64_t last_serial_ = 0;
  // Of bring_back(), under mirror_mutex_: the batch of the last array, bytes of
  // that batch, and the batch from which there may be room.
  uint64_t returns_in_ = 0, returned_ = 0, returns_from_ = 0;
  struct Unfinished {
    uint64_t serial;
    uint32_t stream_id;
    std::shared_ptr<Completion> completion;
    bool is_over() const { // or was never closed, and its stream is gone
      return completion->retired() || completion.use_count() == 1;
    }
  };
  std::vector<Unfinished> unfinished_;
};

} // namespace mlx::core::vulkan
