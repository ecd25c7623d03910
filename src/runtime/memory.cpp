#include "runtime/memory.h"

#include <cstdlib>

#include "runtime/batch.h"
#include "runtime/device.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

// The host side of a buffer and what is valid; under Memory::mirror_mutex_.
struct Buffer::Mirror {
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

  void* pointer() const {
    return heap ? heap : host.mapped;
  }
};

Buffer::Buffer(size_t size, BufferKind kind) : size(size), kind(kind) {
  if (kind != BufferKind::Mapped) {
    mirror_ = std::make_unique<Mirror>();
  }
}

Buffer::~Buffer() = default;

namespace {

void append_copy(
    Batch& batch,
    const Allocation& src,
    const Allocation& dst,
    size_t size) {
  Record r;
  r.kind = Record::Kind::Copy;
  r.src = src.buffer;
  r.dst = dst.buffer;
  r.copy_size = size;
  r.bytes = 2 * size;
  r.first_access = static_cast<uint32_t>(batch.accesses.size());
  batch.accesses.push_back({src.address, 0, size, false});
  batch.accesses.push_back({dst.address, 0, size, true});
  r.access_count = 2;
  batch.records.push_back(r);
}

} // namespace

Memory::Memory(Device& device)
    : device_(device),
      allocations_(device),
      types_(choose_memory_types(
          device.caps().memory,
          device.caps().discrete(),
          static_cast<int>(config().memory))),
      guarded_(config().debug_guard && types_.unified) {
  if (types_.device < 0 || types_.host < 0) {
    throw std::runtime_error(
        "[vulkan] " + device.caps().name +
        " has no host-coherent memory type.");
  }
}

Allocation Memory::allocate_mapped(size_t size) {
  int type = types_.small >= 0 ? types_.small : types_.host;
  return allocations_.create(size, type, true);
}

Allocation Memory::allocate_for_reading(size_t size) {
  int type = coherent_host_type(device_.caps().memory);
  return allocations_.create(size, type, true);
}

void Memory::free(Allocation& allocation) {
  allocations_.free(allocation);
}

BufferKind Memory::kind_for(size_t size, Placement placement) const {
  bool small = types_.small >= 0 && size <= config().small_buffer;
  return types_.unified || small       ? BufferKind::Mapped
      : placement == Placement::Device ? BufferKind::DeviceBorn
                                       : BufferKind::HostBorn;
}

Buffer* Memory::allocate(size_t size, Placement placement) {
  auto b = std::make_unique<Buffer>(size, kind_for(size, placement));
  if (guarded_) {
    b->device_ = allocations_.create_guarded(size, types_.device);
  } else if (b->kind == BufferKind::Mapped) {
    b->device_ = allocations_.create(
        size, types_.unified ? types_.device : types_.small, true);
  } else if (b->kind == BufferKind::DeviceBorn) {
    b->device_ = allocations_.create(size, types_.device, false);
  } else {
    make_host_side(*b);
  }
  return b.release();
}

void Memory::release(Buffer* b) {
  free(b->device_);
  if (b->mirrored()) {
    free(b->mirror_->host);
    std::free(b->mirror_->heap);
  }
  delete b;
}

bool Memory::recycle(Buffer& b) {
  if (guarded_ || !b.mirrored()) {
    return !guarded_;
  }
  auto& m = *b.mirror_;
  bool device_born = b.kind == BufferKind::DeviceBorn;
  if (m.heap || (!device_born && !m.host.buffer)) {
    return false;
  }
  free(device_born ? m.host : b.device_);
  auto host = m.host;
  m = {};
  m.host = host;
  if (!device_born) {
    b.kind = BufferKind::HostBorn; // it may have been of the heap
  }
  return true;
}

Buffer* Memory::allocate_heap(size_t size) {
  auto b = std::make_unique<Buffer>(size, BufferKind::Heap);
  b->mirror_->heap = std::malloc(size + tail_padding);
  b->mirror_->host_valid = true;
  if (!b->mirror_->heap) {
    throw std::runtime_error(
        "[malloc] Unable to allocate " + std::to_string(size) +
        " bytes of host memory.");
  }
  return b.release();
}

bool Memory::recycle_heap(const Buffer& b) {
  return !b.mirrored() ||
      (b.mirror_->heap && !b.mirror_->host.buffer && !b.device_.buffer);
}

void Memory::release_heap(Buffer* b) {
  // The driver's objects cannot be freed any more: let them go.
  if (!b->device_.buffer && !b->mirror_->host.buffer) {
    std::free(b->mirror_->heap);
    delete b;
  }
}

void* Memory::heap_pointer(Buffer& b) {
  auto& m = *b.mirror_;
  if (!m.pointer()) {
    m.heap = std::calloc(1, b.size);
  }
  return m.pointer();
}

void Memory::check_guard(const Buffer& b) const {
  if (guarded_ && !b.mirrored()) {
    Allocations::check_guard(b.device_, b.size);
  }
}

void Memory::make_host_side(Buffer& b) {
  auto& host = b.mirror_->host;
  if (!host.buffer) {
    host = allocations_.create(b.size, types_.host, true);
  }
}

// Batches of other streams may be submitted first: an upload counts for them
// once it is on the queue, and never if its batch failed. Until then each batch
// makes its own.
bool Memory::device_has_it(
    Buffer& b,
    const std::shared_ptr<Completion>& batch) {
  auto& m = *b.mirror_;
  if (!m.device_valid) {
    m.uploads.clear();
    return false;
  }
  if (m.uploads.empty()) {
    return true;
  }
  bool here = false;
  for (const auto& upload : m.uploads) {
    auto ticket = upload->ticket();
    if (ticket != 0 && ticket != Completion::failed_ticket) {
      m.uploads.clear();
      return true;
    }
    here |= upload == batch;
  }
  return here;
}

void Memory::prepare_for_device(
    Batch& batch,
    Buffer& b,
    uint64_t begin,
    uint64_t end,
    bool write) {
  std::lock_guard lock(mirror_mutex_);
  auto& m = *b.mirror_;
  if (!b.device_.buffer) {
    b.device_ = allocations_.create(b.size, types_.device, types_.unified);
  }
  bool covered = write && begin == 0 && end >= b.size;
  if (m.host_valid && !covered && !device_has_it(b, batch.completion)) {
    make_host_side(b);
    if (m.heap) {
      batch.host_copies.push_back({m.host.mapped, m.heap, b.size});
    }
    append_copy(batch, m.host, b.device_, b.size);
    uploaded += b.size;
    m.device_valid = true;
    m.uploads.push_back(batch.completion);
  }
  if (write) {
    m.device_valid = true;
    m.host_valid = false;
    m.uploads.clear();
    m.download_recorded = false;
    m.last_write = batch.completion;
    if (m.heap) {
      // Written through donation only, so nobody else knows this pointer; an
      // upload still in flight may read it.
      batch.keeper.keep(std::shared_ptr<void>(m.heap, std::free));
      m.heap = nullptr;
    }
  }
}

void Memory::append_download(Batch& batch, Buffer& b) {
  make_host_side(b);
  append_copy(batch, b.device_, b.mirror_->host, b.size);
  downloaded += b.size;
  b.mirror_->download_recorded = true;
}

void Memory::record_download(Batch& batch, Buffer& b) {
  if (!b.mirrored()) {
    return;
  }
  std::lock_guard lock(mirror_mutex_);
  auto& m = *b.mirror_;
  if (m.device_valid && !m.host_valid && !m.download_recorded) {
    append_download(batch, b);
  }
}

// Only readers outside of any fence need this.
void Memory::start_fetch(Buffer& b) {
  auto& m = *b.mirror_;
  if (!m.device_valid || m.host_valid || m.download_recorded) {
    return;
  }
  static std::atomic<uint32_t> next_stream{0x80000000u}; // one of its own
  auto batch = std::make_unique<Batch>(next_stream++);
  append_download(*batch, b);
  if (m.last_write) {
    batch->waits.push_back({nullptr, 0, m.last_write});
  }
  m.fetch = device_.submit(std::move(batch));
}

void Memory::give_to_host(Buffer& b) {
  auto& m = *b.mirror_;
  start_fetch(b);
  if (!m.heap) {
    make_host_side(b);
  }
  m.host_valid = true;
  m.device_valid = false;
  m.download_recorded = false;
}

void Memory::set_cpu_writer(Buffer& b, EventPoint signal) {
  if (!b.mirrored()) {
    return;
  }
  std::lock_guard lock(mirror_mutex_);
  // The producer may work in place and may not have asked for its pointer yet:
  // what it will find there is fetched now.
  give_to_host(b);
  b.mirror_->cpu_writer = std::move(signal);
}

const void* Memory::valid_host_pointer(const Buffer& b) const {
  if (!b.mirrored()) {
    return b.mapped();
  }
  std::lock_guard lock(mirror_mutex_);
  auto& m = *b.mirror_;
  bool valid = m.host_valid && !m.fetch && !m.cpu_writer.event;
  return valid ? m.pointer() : nullptr;
}

bool Memory::awaits_cpu(Buffer& b) {
  if (!b.mirrored()) {
    return false;
  }
  std::lock_guard lock(mirror_mutex_);
  auto& writer = b.mirror_->cpu_writer;
  return writer.event && !writer.event->signaled(writer.value);
}

void* Memory::host_pointer(Buffer& b) {
  if (!b.mirrored()) {
    return b.mapped();
  }
  std::unique_lock lock(mirror_mutex_);
  auto& m = *b.mirror_;
  // While a CPU stream is at work, its worker asks later than the program
  // order says: GPU work that follows it may be encoded already, so nothing
  // may change.
  if (m.cpu_writer.event && m.cpu_writer.event->signaled(m.cpu_writer.value)) {
    m.cpu_writer = {};
  }
  if (!m.cpu_writer.event) {
    give_to_host(b);
  }
  void* pointer = m.pointer();
  auto fetch = m.fetch;
  lock.unlock();
  if (fetch) {
    fetch->wait();
    if (auto e = fetch->error(); !e.empty()) {
      throw std::runtime_error(e);
    }
    lock.lock();
    if (m.fetch == fetch) {
      m.fetch.reset();
    }
  }
  return pointer;
}

} // namespace mlx::core::vulkan
