#include "ops/quant/expert_cache.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "backend/stream.h"
#include "kernels/quant/expert_slots.h"
#include "ops/layout.h"
#include "runtime/device.h"

namespace mlx::core::vulkan {

namespace {

constexpr size_t most_parts = 3; // weights, scales and biases, if there are any

// An array in the host's memory, which its owner may free.
struct Source {
  std::weak_ptr<array::Data> data;
  Buffer* buffer; // lives as long
  int64_t offset;
  uint64_t size; // bytes

  explicit Source(const array& a)
      : data(a.data_shared_ptr()),
        buffer(buffer_of(a)),
        offset(a.offset()),
        size(a.nbytes()) {}
  bool is(const array& a) const {
    return data.lock() == a.data_shared_ptr() && offset == a.offset();
  }
};

struct Stack {
  std::vector<Source> sources;
  std::vector<array> slots;
};

std::vector<array*> parts_of(QuantOperands& o) {
  std::vector<array*> parts{&o.w, &o.scales};
  if (o.side) {
    parts.push_back(&*o.side);
  }
  return parts;
}

// Whether all parts are whole 16-byte words, one matrix after another.
bool suits(QuantOperands& o) {
  auto parts = parts_of(o);
  size_t experts = o.w.shape(0);
  auto even = [&](const array* a) {
    return a->ndim() == 3 && a->flags().row_contiguous &&
        static_cast<size_t>(a->shape(0)) == experts && a->offset() % 16 == 0 &&
        a->nbytes() % (16 * experts) == 0;
  };
  return experts <= EXPERT_SLOTS_MOST && (!o.side || o.format.bias) &&
      std::all_of(parts.begin(), parts.end(), even);
}

bool same(const array& a, const array& b) {
  return a.data_shared_ptr() == b.data_shared_ptr() &&
      a.offset() == b.offset() && a.shape() == b.shape() &&
      a.strides() == b.strides();
}

array with_matrices(const array& a, uint32_t count) {
  Shape shape = a.shape();
  shape[0] = static_cast<int>(count);
  return array(std::move(shape), a.dtype(), nullptr, {});
}

struct Caches {
  std::mutex mutex; // of all caches
  std::weak_ptr<ExpertCache> latest; // that was looked up
};
Caches& caches() {
  static auto* c = new Caches; // arrays may outlive statics
  return *c;
}

} // namespace

struct ExpertCache {
  const uint32_t slots;
  uint32_t experts = 0;
  std::vector<Stack> stacks;
  std::optional<array> state; // EXPERT_STATE_WORDS; none: no slot has an expert
  // Of the last lookup. Its indices are held, so that none are written there.
  std::optional<array> indices, found;
  int stream = -1;
  std::shared_ptr<Completion> last; // of the batch that used it last

  bool take(StreamEncoder& enc);
  Stack* find(QuantOperands& o);
  Stack* add(QuantOperands& o);
  void look_up(StreamEncoder& enc, const array& rhs);
  void copy(StreamEncoder&, Stack&, const array& moves, uint32_t count);
  bool use_slots(StreamEncoder& enc, QuantOperands& o);
};

// Makes the cache one of the open batch, unless another stream's next batches
// may still use what they looked up.
bool ExpertCache::take(StreamEncoder& enc) {
  int own = enc.stream().index;
  if (last && stream != own && !last->submitted()) {
    return false;
  }
  if (last && last->ticket() == Completion::failed_ticket) {
    state.reset(); // slots may lack what the state says
  }
  std::erase_if(stacks, [](const Stack& stack) {
    return std::any_of(
        stack.sources.begin(), stack.sources.end(), [](auto& source) {
          return source.data.expired();
        });
  });
  stream = own;
  last = enc.raw().open_batch()->completion;
  return true;
}

Stack* ExpertCache::find(QuantOperands& o) {
  auto parts = parts_of(o);
  for (auto& stack : stacks) {
    auto& sources = stack.sources;
    if (std::equal(
            parts.begin(),
            parts.end(),
            sources.begin(),
            sources.end(),
            [](auto* part, auto& source) { return source.is(*part); })) {
      return &stack;
    }
  }
  return nullptr;
}

// Null if the card has no room to spare.
Stack* ExpertCache::add(QuantOperands& o) {
  PlacementScope placement(Placement::Spare);
  Stack stack;
  try {
    for (auto* part : parts_of(o)) {
      stack.sources.emplace_back(*part);
      auto& a = stack.slots.emplace_back(with_matrices(*part, slots));
      a.set_data(allocator::malloc(a.nbytes()));
    }
  } catch (const OutOfMemory&) {
    return nullptr;
  }
  experts = o.w.shape(0);
  state.reset();
  return &stacks.emplace_back(std::move(stack));
}

// Copies at most `count` matrices of a stack to its slots.
void ExpertCache::copy(
    StreamEncoder& enc,
    Stack& stack,
    const array& moves,
    uint32_t count) {
  std::vector<Binding> reads{bind(moves)}, writes;
  CopyExpertsArgs args{};
  uint64_t bytes = 0;
  for (size_t i = 0; i < most_parts; ++i) {
    size_t part = i < stack.slots.size() ? i : 0; // no biases: words[2] is 0
    auto& source = stack.sources[part];
    auto owner = source.data.lock();
    if (!owner) {
      return; // take() removes it
    }
    enc.raw().keep(*source.buffer, owner);
    uint64_t begin = source.offset;
    reads.push_back({source.buffer, source.offset, begin, begin + source.size});
    writes.push_back(bind(stack.slots[part]));
    args.words[i] = part == i ? source.size / experts / 16 : 0;
    bytes += 16 * uint64_t(args.words[i]);
  }
  constexpr uint64_t part = 16 * CopyExpertsVariant::part;
  args.parts = static_cast<uint32_t>(ceil_div(bytes, part));
  args.groups = args.parts * count;
  enc.dispatch_bound(
      CopyExpertsVariant{},
      reads,
      writes,
      args,
      linear(args.groups),
      {.bytes = 2.0 * double(bytes) * count});
}

void ExpertCache::look_up(StreamEncoder& enc, const array& rhs) {
  auto count = static_cast<uint32_t>(rhs.size());
  array flat = row_contiguous(rhs, enc);
  array moves = enc.temporary({static_cast<int>(2 * count)}, uint32);
  ExpertSlotsArgs args{count, experts, slots, !state};
  if (!state) {
    int words = EXPERT_STATE_WORDS(experts, slots);
    state = enc.temporary({words}, uint32);
  }
  found = enc.temporary(rhs.shape(), uint32);
  ExpertSlotsVariant variant{};
  enc.dispatch(variant, {flat}, {*state, *found, moves}, args, {});
  for (auto& stack : stacks) {
    copy(enc, stack, moves, count);
  }
  indices = array(rhs.shape(), rhs.dtype(), nullptr, {});
  indices->copy_shared_buffer(rhs);
}

// Returns false if the card has no room.
bool ExpertCache::use_slots(StreamEncoder& enc, QuantOperands& o) {
  Stack* stack = find(o);
  if (!stack && !(stack = add(o))) {
    return false;
  }
  if (!state || !same(*indices, *o.rhs)) {
    look_up(enc, *o.rhs);
  }
  auto parts = parts_of(o);
  for (size_t i = 0; i < parts.size(); ++i) {
    *parts[i] = stack->slots[i];
  }
  o.rhs = found;
  o.experts = experts;
  return true;
}

void cache_experts(Buffer& buffer, uint32_t slots) {
  buffer.experts = std::make_shared<ExpertCache>(slots);
}

void use_cached_experts(StreamEncoder& enc, QuantOperands& o) {
  auto* buffer = buffer_of(o.w);
  if (!o.rhs || !buffer || !buffer->experts || !suits(o)) {
    return;
  }
  auto& all = caches();
  std::lock_guard lock(all.mutex);
  auto cache = buffer->experts;
  if (o.rhs->size() > cache->slots) {
    return; // fetched_weights() may copy the stack
  }
  auto latest = all.latest.lock();
  if (cache->stacks.empty() && latest && latest->state &&
      latest->slots == cache->slots &&
      latest->experts == static_cast<uint32_t>(o.w.shape(0)) &&
      same(*latest->indices, *o.rhs)) {
    cache = buffer->experts = latest;
  }
  enc.raw().keep(cache);
  if (!cache->take(enc)) {
    return;
  }
  if (cache->use_slots(enc, o)) {
    all.latest = cache;
  } else {
    buffer->experts = nullptr;
  }
}

} // namespace mlx::core::vulkan
