#include "runtime/encoder.h"

#include <cstring>
#include <mutex>

#include "pipeline/pipeline.h"
#include "runtime/device.h"
#include "runtime/profile.h"
#include "runtime/recorder.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

Encoder::Encoder(Device& device, uint32_t stream_id)
    : device_(device), stream_id_(stream_id) {}

Encoder::~Encoder() {
  try {
    if (auto last = close()) {
      last->wait();
    }
  } catch (...) {
    // A failed stream has told whoever waited on it.
  }
}

namespace {
std::mutex& keeper_mutex() {
  static auto* mutex = new std::mutex; // leaked: batches end in any order
  return *mutex;
}
} // namespace

Batch::~Batch() {
  std::vector<std::shared_ptr<void>> last; // freed after the lock
  std::lock_guard lock(keeper_mutex());
  for (Buffer* b : kept) {
    if (b->keeper_batch == this) {
      b->keeper_batch = nullptr;
      last.push_back(std::move(b->keeper));
    }
  }
}

void Batch::hand_over_kept(Batch& later) {
  std::lock_guard lock(keeper_mutex());
  for (Buffer* b : kept) {
    if (b->keeper_batch == this) {
      b->keeper_batch = &later;
      later.kept.push_back(b);
    }
  }
  kept.clear();
}

void Encoder::keep(Buffer& buffer, std::shared_ptr<void> owner) {
  Batch& batch = open();
  {
    std::lock_guard lock(keeper_mutex());
    if (buffer.keeper_batch == &batch) {
      return;
    }
    if (!buffer.keeper_batch || buffer.keeper_batch->stream_id == stream_id_) {
      if (!buffer.keeper_batch) {
        buffer.keeper = std::move(owner);
      }
      buffer.keeper_batch = &batch;
      batch.kept.push_back(&buffer);
      return;
    }
  }
  batch.retained.push_back(std::move(owner));
}

void Encoder::release_keeper(Buffer& buffer) {
  std::lock_guard lock(keeper_mutex());
  if (buffer.keeper_batch && buffer.keeper_batch->stream_id == stream_id_) {
    buffer.keeper_batch = nullptr;
    buffer.keeper.reset(); // the caller holds another
  }
}

Batch& Encoder::open() {
  if (!open_) {
    open_ = std::make_unique<Batch>();
    open_->records.reserve(128);
    open_->accesses.reserve(512);
    open_->retained.reserve(256);
    open_->stream_id = stream_id_;
    open_->completion = std::make_shared<Completion>(device_.timeline());
    open_->encode_begin = device_.profiler().now();
  }
  return *open_;
}

void Encoder::use(Batch& batch, const Binding& b, bool write) {
  if (b.buffer) {
    batch.accesses.push_back({b.buffer->device.address, b.begin, b.end, write});
  }
}

void Encoder::dispatch(
    const Kernel& kernel,
    std::span<const Binding> reads,
    std::span<const Binding> writes,
    const void* params,
    size_t params_size,
    Grid grid) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
    return;
  }
  Batch& batch = open();
  for (const auto& b : reads) {
    if (b.buffer && !b.buffer->coherent) {
      device_.memory().prepare_for_device(
          batch, *b.buffer, b.begin, b.end, false);
    }
  }
  for (const auto& b : writes) {
    if (b.buffer && !b.buffer->coherent) {
      device_.memory().prepare_for_device(
          batch, *b.buffer, b.begin, b.end, true);
    }
  }
  size_t addresses = 8 * (reads.size() + writes.size());
  size_t total = addresses + params_size;
  kernel.check_args(total);

  Record& r = batch.records.emplace_back();
  r.kernel = &kernel;
  r.grid = grid;
  std::byte* out = r.push;
  if (kernel.ring_args) {
    r.ring_offset = static_cast<uint32_t>(batch.ring.size());
    r.ring_size = static_cast<uint32_t>(total);
    batch.ring.resize((batch.ring.size() + total + 15) / 16 * 16);
    out = batch.ring.data() + r.ring_offset;
  } else {
    r.push_size = static_cast<uint32_t>(total);
  }
  r.first_access = static_cast<uint32_t>(batch.accesses.size());
  auto bind = [&](const Binding& b, bool write) {
    uint64_t address = b.buffer ? b.buffer->address + b.offset : 0;
    std::memcpy(out, &address, 8);
    out += 8;
    r.bytes += b.end - b.begin;
    use(batch, b, write);
  };
  for (const auto& b : reads) {
    bind(b, false);
  }
  for (const auto& b : writes) {
    bind(b, true);
  }
  if (params_size) {
    std::memcpy(out, params, params_size);
  }
  r.access_count =
      static_cast<uint32_t>(batch.accesses.size()) - r.first_access;
}

void Encoder::copy_to_host(Buffer& buffer) {
  if (!buffer.coherent) {
    device_.memory().record_download(open(), buffer);
  }
}

namespace {
bool has_content(const Batch& b) {
  return !b.records.empty() || !b.waits.empty() || !b.retained.empty() ||
      !b.kept.empty() || !b.host_copies.empty();
}
} // namespace

void Encoder::wait(EventPoint point) {
  // What is on the queue already comes first anyway.
  if (point.submitted() && point.error().empty()) {
    return;
  }
  // Somebody may already wait for the open batch: were it to wait too, for that
  // somebody or for itself, neither would ever start.
  if (open_ && has_content(*open_)) {
    close();
  }
  open().waits.push_back(std::move(point));
}

std::shared_ptr<Completion> Encoder::current_completion() {
  if (open_ && has_content(*open_)) {
    return open_->completion;
  }
  return last_;
}

std::shared_ptr<Completion> Encoder::close(std::function<void()> on_retired) {
  operations_ = 0;
  if (!open_ || !has_content(*open_)) {
    if (on_retired) {
      on_retired();
    }
    return last_;
  }
  open_->on_retired = std::move(on_retired);
  last_ = open_->completion;
  device_.profiler().encoded(*open_);
  device_.recorder().push(std::move(open_));
  return last_;
}

bool Encoder::needs_commit() const {
  return open_ &&
      (operations_ >= static_cast<uint32_t>(config().max_ops) ||
       open_->pinned_bytes > uint64_t(config().max_mb) << 20);
}

void Encoder::count_operation(uint64_t bytes) {
  operations_++;
  open().pinned_bytes += bytes;
}

} // namespace mlx::core::vulkan
