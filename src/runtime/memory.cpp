#include "runtime/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/batch.h"
#include "runtime/device.h"
#include "runtime/mirror.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

Buffer::Buffer(size_t size, BufferKind kind) : size(size), kind(kind) {
  if (kind != BufferKind::Mapped) {
    mirror_ = std::make_shared<Mirror>();
  }
}

Buffer::~Buffer() = default;

void* Buffer::host_address() const {
  return kind == BufferKind::Shared ? device_.mapped
      : mirror_->heap               ? mirror_->heap
                                    : mirror_->host.mapped;
}

namespace {

constexpr uint32_t kept_pointers = 2;

std::atomic<void (*)()> trim_hook{nullptr};

bool on_queue(const Completion& batch) {
  auto ticket = batch.ticket();
  return ticket != 0 && ticket != Completion::failed_ticket;
}

// Batches of other streams may be submitted first: an upload counts for them
// once it is on the queue, and never if its batch failed. Until then each batch
// makes its own.
bool is_uploaded(
    std::vector<std::shared_ptr<Completion>>& uploads,
    const std::shared_ptr<Completion>& batch) {
  bool any = std::any_of(uploads.begin(), uploads.end(), [](auto& upload) {
    return on_queue(*upload);
  });
  if (any) {
    uploads.clear();
  }
  return uploads.empty() ||
      std::find(uploads.begin(), uploads.end(), batch) != uploads.end();
}

// Buffers that expect_download() names for the calling thread.
thread_local std::vector<const Buffer*> expected;

} // namespace

void append_copy(
    Batch& batch,
    const Allocation& src,
    const Allocation& dst,
    size_t size,
    const Rates& rates,
    size_t begin) {
  Record r;
  r.kind = Record::Kind::Copy;
  r.src = src.buffer;
  r.dst = dst.buffer;
  r.src_offset = src.offset;
  r.dst_offset = dst.offset + begin;
  r.copy_size = size;
  r.bytes = 2 * size;
  r.seconds = static_cast<float>(double(size) / rates.copy_bytes);
  r.first_access = static_cast<uint32_t>(batch.accesses.size());
  batch.accesses.push_back({src.address, 0, size, false});
  batch.accesses.push_back({dst.address, begin, begin + size, true});
  r.access_count = 2;
  batch.records.push_back(r);
}

void set_trim_hook(void (*trim)()) {
  trim_hook = trim;
}

Memory::Memory(Device& device) : device_(device), allocations_(device) {
  auto& caps = device.caps();
  auto wanted = config().memory;
  HostReads reads;
  auto offered = types_of_buffers(caps.memory, allocations_.buffer_types());
  if (int type = type_to_probe(offered, caps.type, wanted); type >= 0) {
    reads = measure_host_reads(allocations_, type);
  }
  types_ = choose_memory_types(
      offered, caps.type, wanted, reads, config().debug_noncoherent);
  if (!types_.usable()) {
    throw std::runtime_error(
        "[vulkan] " + caps.name + " has no host-coherent memory type.");
  }
  guarded_ = config().debug_guard && types_.unified && types_.host_coherent;
}

template <typename F>
auto Memory::with_room(F&& f, uint64_t device_bytes, bool last_try) {
  bool more = device_.caps().memory_budget || !types_.in_place.empty();
  int last = more && last_try ? 3 : 2;
  for (int tries = 0;; ++tries) {
    try {
      return f(tries == 3);
    } catch (const OutOfMemory&) {
      if (tries == 2 && device_bytes > 0 &&
          (move_arrays(device_bytes, Spill::Idle) ||
           (device_bytes > room_to_spill() && device_bytes <= budget() &&
            move_arrays(device_bytes, Spill::Lately)))) {
        tries = 1;
        continue;
      }
      if (tries == last) {
        throw;
      }
    }
    if (tries == 1) {
      device_.finish_submitted();
    }
    if (auto trim = trim_hook.load(); trim && tries < 2) {
      trim();
    }
  }
}

Allocation Memory::allocate_mapped(size_t size) {
  return with_room([&](bool over) {
    return allocations_.create(size, types_.coherent, HostUse::Coherent, over);
  });
}

Allocation Memory::allocate_host(size_t size) {
  return with_room([&](bool over) {
    return allocations_.create(size, types_.host, HostUse::Array, over);
  });
}

void Memory::free(Allocation& allocation) {
  allocations_.free(allocation);
}

void Memory::fill_mirrors(Batch& batch) {
  for (const auto& c : batch.host_copies) {
    std::memcpy(c.dst, c.src, c.size);
  }
  batch.host_copies.clear();
}

void Memory::show_to_device(Batch& batch) {
  fill_mirrors(batch);
  for (const auto& f : batch.flushes) {
    if (!f.download || f.download->reached()) {
      allocations_.flush(f.memory);
    }
  }
}

BufferKind Memory::kind_for(size_t size, Placement placement) const {
  bool small = types_.small && size <= size_t(config().test.small_buffer);
  return small || (types_.unified && types_.host_coherent) ? BufferKind::Mapped
      : types_.unified ||
          (placement == Placement::InPlace && !types_.in_place.empty())
      ? BufferKind::Shared
      : placement == Placement::Host ? BufferKind::HostBorn
                                     : BufferKind::DeviceBorn;
}

void Memory::make_first_side(Buffer& b, bool over) {
  auto create = [&](const std::vector<int>& types, HostUse use) {
    b.device_ = allocations_.create(b.size, types, use, over);
  };
  if (guarded_) {
    b.device_ = allocations_.create_guarded(b.size, types_.device, over);
  } else if (b.kind == BufferKind::Mapped) {
    bool all = types_.unified && types_.host_coherent;
    create(all ? types_.device : types_.coherent, HostUse::Coherent);
  } else if (b.kind == BufferKind::Shared) {
    create(types_.unified ? types_.device : types_.in_place, HostUse::Array);
    in_place_bytes += in_place(b) ? b.size : 0;
  } else if (b.kind == BufferKind::DeviceBorn) {
    create(types_.device, HostUse::None);
  } else {
    make_host_side(b, over);
  }
}

Buffer* Memory::allocate(size_t size, Placement placement) {
  auto b = std::make_unique<Buffer>(size, kind_for(size, placement));
  bool on_card = b->kind == BufferKind::DeviceBorn && !types_.in_place.empty();
  bool spare = on_card && placement == Placement::Spare;
  try {
    auto make = [&](bool over) { make_first_side(*b, over); };
    with_room(make, on_card && !spare ? size : 0, !on_card);
  } catch (const OutOfMemory&) {
    if (!on_card || spare || size > room_to_spill()) {
      throw;
    }
    b->kind = BufferKind::Shared;
    b->device_ = with_room([&](bool over) {
      return allocations_.create(size, types_.in_place, HostUse::Spill, over);
    });
    std::lock_guard lock(mirror_mutex_);
    spilled(*b, Spill::Made);
  }
  if (on_card && !spare) {
    list(*b);
  }
  return b.release();
}

void Memory::list(Buffer& b) {
  b.listed_ = b.size >= least_moved && !types_.in_place.empty();
  if (b.listed_) {
    std::lock_guard lock(mirror_mutex_);
    movable_.insert(&b);
    b.used_ = 0;
  }
}

uint64_t Memory::room_to_spill(Spill how) {
  uint64_t part = how == Spill::Lately ? 2 : most_step_part;
  uint64_t most = std::clamp(budget() / part, least_spill, most_spill);
  return most - std::min<uint64_t>(most, spilled_[size_t(how)]);
}

// The device has no room for its side of what the host made.
bool Memory::read_in_place(Buffer& b) {
  auto& m = *b.mirror_;
  if (types_.in_place.empty() || !m.host.buffer || m.heap) {
    return false;
  }
  b.device_ = std::exchange(m.host, {});
  b.kind = BufferKind::Shared;
  m.touched = true;
  in_place_bytes += b.size;
  return true;
}

Buffer* Memory::allocate_in_blocks(size_t size, Placement placement) {
  auto b = std::make_unique<Buffer>(size, kind_for(size, placement));
  DriverMemory::NothingNew scope;
  try {
    make_first_side(*b, false);
  } catch (const OutOfMemory&) {
    return nullptr;
  }
  if (b->kind == BufferKind::DeviceBorn) {
    list(*b);
  }
  return b.release();
}

void Memory::release(Buffer* b) {
  if (b->listed_) {
    std::lock_guard lock(mirror_mutex_);
    movable_.erase(b);
    auto& m = *b->mirror_;
    if (m.moving != 0) { // it has no host side
      m.moving = Buffer::Mirror::freed;
      m.host = std::exchange(b->device_, {});
    }
  }
  in_place_bytes -= in_place(*b) ? b->size : 0;
  end_spill(*b);
  free(b->device_);
  if (b->mirrored()) {
    std::unique_lock lock(mirror_mutex_, std::defer_lock);
    if (types_.one_memory || b->listed_) {
      lock.lock();
    }
    if (b->mirror_->moving != Buffer::Mirror::freed) {
      free(b->mirror_->host);
    }
    std::free(b->mirror_->heap);
  }
  delete b;
}

bool Memory::recycle(Buffer& b) {
  if (guarded_ || !b.mirrored()) {
    return !guarded_;
  }
  std::unique_lock lock(mirror_mutex_, std::defer_lock);
  if (types_.one_memory || b.listed_) {
    lock.lock(); // give_back_host_side() of an upload may follow
  }
  b.settled_ = false;
  b.weight_ = false;
  auto& m = *b.mirror_;
  if (in_place(b) || m.moving) {
    return false;
  }
  bool touched = m.touched; // the next owner's too
  if (b.kind == BufferKind::Shared) {
    m = {};
    m.touched = touched;
    return true;
  }
  // A host-born buffer whose host side was freed after its upload is not kept
  // either. It could serve as a device-born one, but each upload makes one more
  // than is needed.
  bool device_born = b.kind == BufferKind::DeviceBorn;
  if (m.heap || (!device_born && !m.host.buffer)) {
    return false;
  }
  if (types_.one_memory || m.uploading > 0) {
    auto fresh = std::make_shared<Buffer::Mirror>();
    fresh->host = std::exchange(m.host, {});
    b.mirror_ = std::move(fresh);
  }
  auto& now = *b.mirror_;
  free(device_born ? now.host : b.device_);
  auto host = now.host;
  now = {};
  now.host = host;
  now.touched = touched && !device_born;
  b.used_ = b.listed_ ? 0 : Buffer::stays;
  if (!device_born) {
    b.kind = BufferKind::HostBorn; // it may have been BufferKind::Heap
  }
  return true;
}

Buffer* Memory::adopt(VkBuffer buffer, void* mapped, size_t size) const {
  auto* b = new Buffer(size, BufferKind::Mapped);
  b->device_.buffer = buffer;
  b->device_.mapped = mapped;
  b->device_.size = size;
  VkBufferDeviceAddressInfo ask{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
  ask.buffer = buffer;
  b->device_.address =
      device_.vk().vkGetBufferDeviceAddress(device_.handle(), &ask);
  return b;
}

Buffer* Memory::allocate_heap(size_t size) {
  auto b = std::make_unique<Buffer>(size, BufferKind::Heap);
  b->mirror_->heap = std::malloc(size + tail_padding);
  b->mirror_->sides = Sides::Host;
  b->mirror_->touched = true;
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
  if (!b.host_address()) {
    b.mirror_->heap = std::calloc(1, b.size);
  }
  return b.host_address();
}

void Memory::check_guard(const Buffer& b) const {
  if (guarded_ && !b.mirrored()) {
    Allocations::check_guard(b.device_, b.size);
  }
}

void Memory::make_host_side(Buffer& b, bool over) {
  auto& host = b.mirror_->host;
  if (!host.buffer) {
    host = allocations_.create(b.size, types_.host, HostUse::Array, over);
  }
}

void Memory::append_upload(Batch& batch, Buffer& b, bool over) {
  auto& m = *b.mirror_;
  make_host_side(b, over);
  if (m.heap) {
    batch.host_copies.push_back({m.host.mapped, m.heap, b.size});
  }
  if (m.host.host_apart && m.touched) {
    batch.flushes.push_back({m.host, m.download});
  }
  append_copy(batch, m.host, b.device_, b.size, device_.work_limit().rates);
  uploaded += b.size;
  if (m.sides == Sides::Returned ||
      (types_.one_memory && b.kind == BufferKind::HostBorn)) {
    m.uploading++;
    batch.pins.keep(std::shared_ptr<void>(
        static_cast<void*>(nullptr),
        [this, mirror = b.mirror_, done = batch.completion](void*) {
          give_back_host_side(*mirror, *done);
        }));
  }
}

// Otherwise weights would be twice in the one memory. The first pointer was
// used to fill the array; whoever asks again, such as a view, may keep the
// pointer, so that the host side stays. That of what returned to the card goes
// unless the host has asked for it.
void Memory::give_back_host_side(Buffer::Mirror& m, const Completion& upload) {
  std::lock_guard lock(mirror_mutex_);
  bool done = on_queue(upload) && device_.timeline().seen() >= upload.ticket();
  auto& writer = m.cpu_writer;
  bool written = !writer.event || writer.event->signaled(writer.value);
  bool spare = types_.one_memory
      ? m.host_valid() && m.pointers < kept_pointers
      : m.sides != Sides::Both && !m.touched && m.pointers == 0;
  if (--m.uploading == 0 && done && written && m.host.buffer && spare &&
      m.arrived() && !m.heap) {
    auto step = transition(m.sides, Use::Uploaded);
    if (step.act == Act::FreeHost) {
      free(m.host);
      m.touched = false;
      m.uploads.clear();
    }
    m.sides = step.next;
  }
}

uint64_t Memory::prepare_for_device(
    Batch& batch,
    Buffer& b,
    uint64_t begin,
    uint64_t end,
    bool write) {
  with_room(
      [&](bool over) {
        std::lock_guard lock(mirror_mutex_);
        auto& m = *b.mirror_;
        b.settled_ = false;
        m.moving = 0;
        b.use(batch.serial);
        if (!b.device_.buffer && !(over && read_in_place(b))) {
          b.device_ =
              allocations_.create(b.size, types_.device, HostUse::None, over);
        }
        if (!write && b.spill_ != Spill::No) {
          bring_back(batch, b);
        }
        // Until a download is done, only a CPU stream's writer after it can
        // have changed the host side.
        bool copy = !m.cpu_writer.event && m.download && !m.download->reached();
        bool covered = write && begin == 0 && end >= b.size;
        auto step = covered
            ? Transition{Act::None, m.sides}
            : transition(m.sides, copy ? Use::ReadCopy : Use::Read);
        if (step.act == Act::Upload) {
          m.uploads.clear();
        }
        bool upload = step.act == Act::Upload ||
            (step.act == Act::UploadAgain &&
             !is_uploaded(m.uploads, batch.completion));
        if (b.kind == BufferKind::Shared) {
          // Needed even before an overwrite: the cache could write back later.
          if (upload || m.touched) {
            batch.flushes.push_back({b.device_, m.download});
            m.touched = false;
          }
        } else if (upload) {
          append_upload(batch, b, over);
        }
        if (upload) {
          m.uploads.push_back(batch.completion);
        }
        m.sides = step.next;
        if (write) {
          m.sides = transition(m.sides, Use::Write).next;
          m.uploads.clear();
          m.last_write = batch.completion;
          if (m.heap) {
            // Only a donated array is overwritten, so no one else knows this
            // pointer. An upload in flight may still read it.
            batch.pins.keep(std::shared_ptr<void>(m.heap, std::free));
            m.heap = nullptr;
          }
        }
        b.settled_ = m.device_valid() && m.uploads.empty() && !in_place(b);
      },
      b.size);
  return in_place(b) ? end - begin : 0;
}

void Memory::append_download(Batch& batch, Buffer& b, bool over) {
  auto& m = *b.mirror_;
  if (b.kind == BufferKind::Shared) {
    batch.invalidations.push_back(b.device_);
  } else {
    make_host_side(b, over);
    if (m.host.host_apart) {
      // The host's last writes must not be written back over the download.
      if (m.touched) {
        batch.flushes.push_back({m.host, m.download});
      }
      batch.invalidations.push_back(m.host);
    }
    append_copy(batch, b.device_, m.host, b.size, device_.work_limit().rates);
    downloaded += b.size;
  }
  m.download = batch.completion;
}

void Memory::record_download(Batch& batch, Buffer& b) {
  if (!b.mirrored()) {
    return;
  }
  with_room([&](bool over) {
    std::lock_guard lock(mirror_mutex_);
    auto& m = *b.mirror_;
    m.moving = 0;
    b.use(batch.serial);
    auto step = transition(m.sides, Use::Download);
    // Batches of other streams may be submitted first: their download counts
    // once it is on the queue, and never if its batch failed.
    if (step.act == Act::Download ||
        (step.act == Act::DownloadAgain && m.download != batch.completion &&
         !on_queue(*m.download))) {
      append_download(batch, b, over);
    } else if (step.act == Act::Invalidate) {
      allocations_.invalidate(m.host);
    }
    m.sides = step.next;
  });
}

void Memory::record_fill(
    Batch& batch,
    const Allocation& from,
    Buffer& to,
    uint64_t begin,
    uint64_t size) {
  if (to.mirrored()) {
    prepare_for_device(batch, to, begin, begin + size, true);
    to.weight_ = true;
  }
  if (from.host_apart) {
    batch.flushes.push_back({from, nullptr});
  }
  auto& rates = device_.work_limit().rates;
  append_copy(batch, from, to.device_, size, rates, begin);
  uploaded += size;
}

// Only readers outside of any fence need this.
void Memory::start_fetch(Buffer& b, bool over) {
  auto& m = *b.mirror_;
  auto batch = std::make_unique<Batch>(next_own_stream());
  append_download(*batch, b, over);
  if (m.last_write) {
    batch->waits.push_back({nullptr, 0, m.last_write});
  }
  m.fetch = device_.submit(std::move(batch));
  m.download = m.fetch;
}

void Memory::give_to_host(Buffer& b, bool over, bool fetch) {
  auto& m = *b.mirror_;
  b.settled_ = false;
  m.moving = 0;
  auto step = transition(m.sides, Use::Host);
  if (fetch || step.act == Act::Fetch) {
    start_fetch(b, over);
  } else if (step.act == Act::Invalidate) {
    allocations_.invalidate(m.host);
  }
  if (b.kind != BufferKind::Shared && !m.heap) {
    make_host_side(b, over);
  }
  m.touched = true;
  m.sides = step.next;
}

void Memory::expect_download(const Buffer& b) {
  expected.push_back(&b);
}

void Memory::end_expecting() {
  expected.clear();
}

void Memory::set_cpu_writer(Buffer& b, EventPoint signal) {
  if (!b.mirrored()) {
    return;
  }
  with_room([&](bool over) {
    std::lock_guard lock(mirror_mutex_);
    // The producer may work in place and not have asked for its pointer yet, so
    // the present values are fetched now.
    give_to_host(b, over);
    b.mirror_->cpu_writer = signal;
  });
}

const void* Memory::valid_host_pointer(const Buffer& b) const {
  if (!b.mirrored()) {
    return b.mapped();
  }
  std::lock_guard lock(mirror_mutex_);
  auto& m = *b.mirror_;
  bool valid = m.host_valid() && m.sides != Sides::Returned && m.arrived() &&
      !m.cpu_writer.event;
  m.pointers += kept_pointers; // it is used outside of the lock
  return valid ? b.host_address() : nullptr;
}

void Memory::keep_host_side(Buffer& b) const {
  if (types_.one_memory) {
    std::lock_guard lock(mirror_mutex_);
    auto& pointers = b.mirror_->pointers;
    pointers = std::max(pointers, kept_pointers);
  }
}

Sides Memory::sides(const Buffer& b) const {
  std::lock_guard lock(mirror_mutex_);
  return b.mirror_->sides;
}

bool Memory::awaits_cpu(Buffer& b) {
  if (!b.mirrored()) {
    return false;
  }
  std::lock_guard lock(mirror_mutex_);
  auto& writer = b.mirror_->cpu_writer;
  return writer.event && !writer.event->signaled(writer.value);
}

void* Memory::prepare_for_host(Buffer& b, uint32_t pointers) {
  if (!b.mirrored()) {
    return b.mapped();
  }
  auto& m = *b.mirror_;
  void* pointer = nullptr;
  std::shared_ptr<Completion> fetch;
  with_room([&](bool over) {
    std::lock_guard lock(mirror_mutex_);
    // A CPU stream's worker may ask for the pointer after GPU work that follows
    // it in program order was encoded, so the state stays until it has
    // signaled.
    auto& writer = m.cpu_writer;
    if (writer.event && writer.event->signaled(writer.value)) {
      writer = {};
    }
    if (!writer.event) {
      // A batch of another reader downloads it, possibly later, or has failed.
      bool late = !m.fetch && !m.arrived() &&
          std::find(expected.begin(), expected.end(), &b) == expected.end();
      give_to_host(b, over, late);
    }
    m.pointers += pointers;
    pointer = b.host_address();
    fetch = m.fetch;
  });
  if (fetch) {
    fetch->wait();
    auto error = fetch->error();
    std::lock_guard lock(mirror_mutex_);
    bool good = error.empty();
    if (m.fetch == fetch && (good || !m.cpu_writer.event)) {
      m.fetch.reset();
      if (!good) { // the next call copies again
        m.sides = transition(m.sides, Use::FetchFailed).next;
      }
    }
    if (!good) {
      throw std::runtime_error(error);
    }
  }
  return pointer;
}

} // namespace mlx::core::vulkan
