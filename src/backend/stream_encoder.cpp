#include "backend/stream_encoder.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <sstream>
#include <unordered_map>

#include "backend/data.h"
#include "mlx/backend/gpu/eval.h"
#include "mlx/utils.h"
#include "pipeline/pipeline.h"
#include "runtime/device.h"

namespace mlx::core::vulkan {

namespace {

struct Entry {
  Entry(Stream s, Device& d) : raw(d, s.index), encoder(s, raw) {}
  Encoder raw;
  StreamEncoder encoder;
};
using Entries = std::unordered_map<int, std::unique_ptr<Entry>>;

Entries& thread_entries() {
  if (is_main_thread()) {
    static auto* entries = new Entries; // leaked: exit runs in any order
    return *entries;
  }
  static thread_local Entries entries;
  return entries;
}

struct GlobalEntries {
  std::mutex mutex;
  Entries map;
};
GlobalEntries& global_entries() {
  static auto* entries = new GlobalEntries;
  return *entries;
}

// The entry that this thread requested last.
struct LastEntry {
  int index = -1;
  Entry* entry = nullptr;
};
constinit thread_local LastEntry last_entry;

Entry& find_entry(Stream s) {
  auto& last = last_entry;
  if (last.index == s.index) {
    return *last.entry;
  }
  auto& mine = thread_entries();
  if (auto it = mine.find(s.index); it != mine.end()) {
    last = {s.index, it->second.get()};
    return *it->second;
  }
  auto& global = global_entries();
  std::lock_guard lock(global.mutex);
  if (auto it = global.map.find(s.index); it != global.map.end()) {
    return *it->second;
  }
  throw std::runtime_error(
      "[vulkan] There is no Stream(gpu, " + std::to_string(s.index) +
      ") in the current thread. Create the stream in the thread that uses it.");
}

[[noreturn]] void too_many_groups(
    const Kernel& k,
    std::span<const Operand> inputs,
    uint64_t groups) {
  std::ostringstream msg;
  msg << "[vulkan] " << k.name << " of";
  for (auto& o : inputs) {
    msg << " " << o.a->dtype() << o.a->shape();
  }
  msg << " needs " << groups
      << " workgroups; the Vulkan backend starts at most 2^32 - 1. Split the "
         "batch.";
  throw std::invalid_argument(msg.str());
}

} // namespace

Binding bind(const Operand& o) {
  const array& a = *o.a;
  auto* buffer = buffer_of(a);
  if (!buffer) {
    return {};
  }
  if (buffer->mirrored() && !is_owned(*a.data_shared_ptr())) {
    // The memory's owner frees it and may still hold its pointer.
    device().memory().keep_host_side(*buffer);
  }
  uint64_t offset = a.offset(), size = buffer->size;
  uint64_t begin = 0, end = size;
  if (o.ranged) {
    begin = offset + o.begin;
    end = offset + o.end;
  } else if (a.flags().row_contiguous) {
    begin = offset;
    end = offset + a.data_size() * a.itemsize();
  }
  return {buffer, a.offset(), begin, std::min(end, size)};
}

Type type_of(Dtype dtype) {
  switch (dtype.val()) {
#define MLXVK_CASE(mlx, ours) \
  case Dtype::Val::mlx:       \
    return Type::ours;
    MLXVK_CASE(bool_, bool_)
    MLXVK_CASE(uint8, u8)
    MLXVK_CASE(uint16, u16)
    MLXVK_CASE(uint32, u32)
    MLXVK_CASE(uint64, u64)
    MLXVK_CASE(int8, i8)
    MLXVK_CASE(int16, i16)
    MLXVK_CASE(int32, i32)
    MLXVK_CASE(int64, i64)
    MLXVK_CASE(float16, f16)
    MLXVK_CASE(bfloat16, bf16)
    MLXVK_CASE(float32, f32)
    MLXVK_CASE(float64, f64)
    MLXVK_CASE(complex64, c64)
#undef MLXVK_CASE
  }
  throw std::invalid_argument("[vulkan] The dtype is not known.");
}

PipelineTable& StreamEncoder::pipelines() const {
  return enc_.device().pipelines();
}

const Kernel& StreamEncoder::source_kernel(
    std::string_view name,
    const std::string& source,
    std::span<const Define> defines) {
  return enc_.device().pipelines().get_source(
      name, source, defines, false, Build::Later);
}

const Caps& StreamEncoder::caps() const {
  return enc_.device().caps();
}
const Target& StreamEncoder::target() const {
  return enc_.device().target();
}

const char* StreamEncoder::host_data(const array& a) const {
  auto* p = enc_.device().memory().valid_host_pointer(*buffer_of(a));
  return p ? static_cast<const char*>(p) + a.offset() : nullptr;
}

void StreamEncoder::dispatch_bytes(
    const Kernel& k,
    std::span<const Operand> inputs,
    std::span<const Operand> outputs,
    const void* params,
    size_t params_size,
    Grid grid,
    const Work& work,
    const Descriptor& descriptor) {
  uint64_t groups = uint64_t(grid.x) * grid.y * grid.z;
  if (groups > UINT32_MAX) {
    too_many_groups(k, inputs, groups);
  }
  SmallVector<Binding, 12> bindings;
  for (auto operands : {inputs, outputs}) {
    for (const auto& o : operands) {
      bindings.push_back(bind(o));
    }
  }
  enc_.dispatch(
      k,
      {bindings.data(), inputs.size()},
      {bindings.data() + inputs.size(), outputs.size()},
      params,
      params_size,
      grid,
      work,
      descriptor);
}

void StreamEncoder::bring_to_device(const array& a) {
  if (Binding b = bind(a); b.buffer) {
    enc_.bring_to_device(*b.buffer);
  }
}

void StreamEncoder::add_temporary(const array& a) {
  enc_.keep(a.data_shared_ptr());
}

array StreamEncoder::temporary(Shape shape, Dtype dtype) {
  array a(std::move(shape), dtype, nullptr, {});
  a.set_data(allocator::malloc(a.nbytes()));
  add_temporary(a);
  return a;
}

array StreamEncoder::scratch(Shape shape, Dtype dtype) {
  array a(std::move(shape), dtype, nullptr, {});
  auto& bytes = scratch_[scratch_turn_++ % std::size(scratch_)];
  auto& memory = enc_.device().memory();
  if (!bytes || bytes->nbytes() < a.nbytes() ||
      memory.in_place(*buffer_of(*bytes))) { // the card was full then
    bytes = temporary({static_cast<int>(a.nbytes())}, uint8);
  } else {
    add_temporary(*bytes);
  }
  a.copy_shared_buffer(*bytes, a.strides(), {true, true, false}, a.size());
  return a;
}

const array& StreamEncoder::counters(uint32_t count) {
  constexpr size_t most = 4;
  if (counters_.empty() || counters_[0].size() < count) {
    // Small enough for memory that the host writes itself, so that no batch has
    // to succeed before they are zero. GPUs of up to 256 cores need no more.
    std::vector<uint32_t> zeros(std::max(count, 256u));
    counters_.clear();
    for (size_t i = 0; i < most; ++i) {
      counters_.emplace_back(
          zeros.begin(), Shape{static_cast<int>(zeros.size())}, uint32);
    }
  }
  const array& a = counters_[next_counters_];
  next_counters_ = (next_counters_ + 1) % most;
  bring_to_device(a);
  add_temporary(a);
  return a;
}

StreamEncoder& encoder(Stream s) {
  if (forked_from_started_device()) {
    device(); // throws
  }
  return find_entry(s).encoder;
}

} // namespace mlx::core::vulkan

namespace mlx::core::gpu {

void new_stream(Stream s) {
  auto& d = vulkan::device();
  vulkan::thread_entries().try_emplace(
      s.index, std::make_unique<vulkan::Entry>(s, d));
}

void new_thread_unsafe_stream(Stream s) {
  auto& d = vulkan::device();
  auto& global = vulkan::global_entries();
  std::lock_guard lock(global.mutex);
  global.map.try_emplace(s.index, std::make_unique<vulkan::Entry>(s, d));
}

void clear_streams() {
  vulkan::last_entry = {};
  vulkan::thread_entries().clear();
  if (is_main_thread()) {
    auto& global = vulkan::global_entries();
    std::lock_guard lock(global.mutex);
    global.map.clear();
  }
}

} // namespace mlx::core::gpu
