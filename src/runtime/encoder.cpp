#include "runtime/encoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "pipeline/pipeline.h"
#include "runtime/device.h"
#include "runtime/profile.h"
#include "runtime/recorder.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

// Returns the bytes that the record moves over the bus.
uint64_t prepare(Memory& memory, Batch& batch, const Binding& b, bool write) {
  b.buffer->use(batch.serial);
  return write || !b.buffer->settled()
      ? memory.prepare_for_device(batch, *b.buffer, b.begin, b.end, write)
      : 0;
}

} // namespace

Encoder::Encoder(Device& device, uint32_t stream_id)
    : device_(device),
      most_bytes_(uint64_t(config().max_mb) << 20),
      joins_(!config().disabled("fuse")),
      policy_(config().max_ops),
      stream_id_(stream_id) {}

Encoder::~Encoder() {
  try {
    if (auto last = close()) {
      last->wait();
    }
  } catch (...) {
    // A waiter for the failed stream already got the error.
  }
}

Batch& Encoder::open_new() {
  open_ = device_.batches().take(stream_id_);
  open_->completion = std::make_shared<Completion>(device_.timeline());
  device_.memory().begin_batch(*open_);
  open_->encode_begin = device_.profiler().now();
  if (last_ && (!last_->reached() || (goes_on_ && !last_->error().empty()))) {
    open_->follows = last_;
  }
  goes_on_ = eval_ != 0;
  return *open_;
}

void Encoder::begin_eval(uint64_t number) {
  if (number == eval_) {
    return;
  }
  eval_ = number;
  goes_on_ = open_ != nullptr;
  bool only_waits = open_ && open_->records.empty();
  if (only_waits && open_->follows && open_->follows->reached()) {
    open_->follows = nullptr; // of an earlier eval
  }
}

void Encoder::dispatch(
    const Kernel& kernel,
    std::span<const Binding> reads,
    std::span<const Binding> writes,
    const void* params,
    size_t params_size,
    Grid grid,
    const Work& work,
    const Descriptor& descriptor) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
    return;
  }
  Batch& batch = open();
  auto each = [&](auto&& f) {
    for (const auto& b : reads) {
      f(b, false);
    }
    for (const auto& b : writes) {
      f(b, true);
    }
  };
  uint64_t bytes = 0, over_bus = 0;
  each([&](const Binding& b, bool write) {
    bytes += b.end - b.begin;
    if (b.buffer && b.buffer->mirrored()) {
      over_bus += prepare(device_.memory(), batch, b, write);
    }
  });
  size_t count = reads.size() + writes.size(), size = 8 * count + params_size;
  if (kernel.built()) { // else the recorder checks
    kernel.check_args(size);
  }
  double on_bus = over_bus > 0 ? double(over_bus) / device_.bus_rate() : 0;
  double seconds =
      device_.work_limit().expect(work, bytes, on_bus, kernel.matrix_units);
  const Kernel* used = &kernel;
  uint32_t parts = 1;
  if (double most = device_.longest_estimate(); seconds > most) {
    parts = parts_for(seconds, most);
    used = &device_.pipelines().in_parts(kernel);
  }

  Record& r = batch.records.emplace_back();
  r.kernel = used;
  r.bytes = work.bytes > 0 ? static_cast<uint64_t>(work.bytes) : bytes;
  r.flops = static_cast<float>(work.flops);
  r.seconds = static_cast<float>(seconds);
  r.parts = parts;
  r.grid = grid;
  r.hold = std::exchange(next_hold_, 0);
  r.args_size = static_cast<uint32_t>(size);
  r.args_in_memory = kernel.args_in_memory(size);
  std::byte* out = room_for_args(batch.arguments, r);
  auto& accesses = batch.accesses;
  size_t first = accesses.size();
  accesses.resize(first + count);
  Access* access = accesses.data() + first;
  each([&](const Binding& b, bool write) {
    uint64_t address = 0;
    if (b.buffer || b.base) {
      uint64_t base = b.buffer ? b.buffer->address() : b.base;
      address = base + b.offset;
      *access++ = {base, b.begin, b.end, write};
    }
    std::memcpy(out, &address, 8);
    out += 8;
  });
  std::copy_n(static_cast<const std::byte*>(params), params_size, out);
  // Operands without a buffer have no access.
  accesses.resize(access - accesses.data());
  r.first_access = static_cast<uint32_t>(first);
  r.access_count = static_cast<uint32_t>(accesses.size() - first);
  if (joins_ && parts == 1 && r.access_count == count) {
    r.descriptor = descriptor;
  }
  if (r.descriptor.index() == 0) { // nothing replaces it
    device_.pipelines().start(*used);
  }
}

void Encoder::drop(std::span<const uint32_t> records) {
  auto& all = open().records;
  for (size_t i = records.size(); i-- > 0;) {
    all.erase(all.begin() + records[i]);
  }
  stay_open_ = 0;
}

void Encoder::bring_to_device(Buffer& buffer) {
  if (buffer.mirrored()) {
    device_.memory().prepare_for_device(open(), buffer, 0, buffer.size, false);
  }
}

void Encoder::copy_to_host(Buffer& buffer) {
  if (buffer.mirrored()) {
    device_.memory().record_download(open(), buffer);
  }
}

void Encoder::fill(
    Buffer& to,
    uint64_t begin,
    uint64_t size,
    std::shared_ptr<Allocation> from,
    EventPoint full) {
  wait(std::move(full));
  device_.memory().record_fill(open(), *from, to, begin, size);
  open().pins.keep(std::move(from));
}

void Encoder::wait(EventPoint point) {
  // A batch on the queue runs before later ones anyway.
  if (point.submitted() && point.error().empty()) {
    return;
  }
  // Closes the open batch, because somebody may wait for it already: if it
  // waited in turn for them, or for itself, neither would start.
  if (open_ && !open_->empty()) {
    close();
  }
  open().waits.push_back(std::move(point));
}

void Encoder::close_if_awaited() {
  if (awaited_) {
    close();
  }
}

std::shared_ptr<Completion> Encoder::current_completion() {
  if (open_ && !open_->empty()) {
    awaited_ = true;
    return open_->completion;
  }
  return last_;
}

std::shared_ptr<Completion> Encoder::close(std::function<void()> on_retired) {
  push_open(std::move(on_retired));
  policy_.begin();
  return last_;
}

void Encoder::close_and_go_on(std::function<void()> on_retired) {
  uint32_t operations = operations_;
  push_open(std::move(on_retired));
  policy_.closed(operations);
}

void Encoder::push_open(std::function<void()> on_retired) {
  operations_ = stay_open_ = 0;
  awaited_ = false;
  if (!open_ || open_->empty()) {
    if (on_retired) {
      on_retired();
    }
    return;
  }
  open_->on_retired = std::move(on_retired);
  before_last_ = std::exchange(last_, open_->completion);
  device_.profiler().encoded(*open_);
  device_.recorder().push(std::move(open_));
}

bool Encoder::full() {
  uint64_t pinned = open_->pinned_bytes;
  if (pinned > most_bytes_) {
    return true;
  }
  return operations_ >= stay_open_ &&
      policy_.enough(operations_, pinned, [this] {
        return last_ &&
            (!last_->submitted() || (before_last_ && !before_last_->reached()));
      });
}

} // namespace mlx::core::vulkan
