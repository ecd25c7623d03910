#include "ops/quant/expert_cache.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <utility>

#include "backend/stream.h"
#include "kernels/quant/expert_slots.h"
#include "ops/layout.h"
#include "runtime/device.h"

namespace mlx::core::vulkan {

struct LayerCache;

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

array with_matrices(const array& a, uint32_t count) {
  Shape shape = a.shape();
  shape[0] = static_cast<int>(count);
  return array(std::move(shape), a.dtype(), nullptr, {});
}

// Throws OutOfMemory if nothing else leaves the card room.
array new_slots(const array& stack, uint32_t count) {
  PlacementScope placement(Placement::Spare);
  array slots = with_matrices(stack, count);
  slots.set_data(allocator::malloc(slots.nbytes()));
  return slots;
}

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

struct Caches {
  std::mutex mutex; // of all caches
  std::weak_ptr<LayerCache> latest; // that was looked up
};
Caches& caches() {
  static auto* c = new Caches; // arrays may outlive statics
  return *c;
}

} // namespace

struct ExpertCache {
  const uint32_t slots;
  std::optional<array> room; // for slots, until the layer's cache takes it
  std::shared_ptr<LayerCache> layer;
};

struct LayerCache {
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
  Stack* find_or_add(StreamEncoder& enc, QuantOperands& o);
  void look_up(StreamEncoder& enc, const array& rhs);
  void hold(const array& rhs);
  void fill(StreamEncoder& enc);
  array run_lookup(StreamEncoder& enc, const array& rhs, ExpertSlotsArgs args);
  void copy(StreamEncoder&, Stack&, const array& moves, uint32_t count);
  bool use_slots(StreamEncoder& enc, QuantOperands& o);
  bool use_copy(StreamEncoder& enc, QuantOperands& o);
};

// Makes the cache one of the open batch, unless another stream's next batches
// may still use what they looked up.
bool LayerCache::take(StreamEncoder& enc) {
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

Stack* LayerCache::find(QuantOperands& o) {
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
Stack* LayerCache::find_or_add(StreamEncoder& enc, QuantOperands& o) {
  if (auto* known = find(o)) {
    return known;
  }
  Stack stack;
  try {
    for (auto* part : parts_of(o)) {
      stack.sources.emplace_back(*part);
      auto own = buffer_of(*part)->experts;
      bool has_room = own && own->room && own->room->dtype() == part->dtype() &&
          own->room->shape() == with_matrices(*part, slots).shape();
      stack.slots.push_back(
          has_room ? *std::exchange(own->room, std::nullopt)
                   : new_slots(*part, slots));
    }
  } catch (const OutOfMemory&) {
    return nullptr;
  }
  experts = o.w.shape(0);
  stacks.push_back(std::move(stack));
  if (state) {
    ExpertSlotsArgs args{.experts = experts, .slots = slots};
    copy(enc, stacks.back(), run_lookup(enc, *indices, args), slots);
  }
  return &stacks.back();
}

// Copies at most `count` matrices of a stack to its slots.
void LayerCache::copy(
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

// Returns the moves.
array LayerCache::run_lookup(
    StreamEncoder& enc,
    const array& rhs,
    ExpertSlotsArgs args) {
  int count = static_cast<int>(args.count ? args.count : slots);
  array moves = enc.temporary({2 * count}, uint32);
  ExpertSlotsVariant variant{};
  enc.dispatch(variant, {rhs}, {*state, *found, moves}, args, {});
  return moves;
}

void LayerCache::look_up(StreamEncoder& enc, const array& rhs) {
  auto count = static_cast<uint32_t>(rhs.size());
  array flat = row_contiguous(rhs, enc);
  ExpertSlotsArgs args{count, experts, slots, !state};
  if (!state) {
    int words = EXPERT_STATE_WORDS(experts, slots);
    state = enc.temporary({words}, uint32);
  }
  found = enc.temporary(rhs.shape(), uint32);
  array moves = run_lookup(enc, flat, args);
  for (auto& stack : stacks) {
    copy(enc, stack, moves, count);
  }
  hold(rhs);
}

void LayerCache::hold(const array& rhs) {
  indices = array(rhs.shape(), rhs.dtype(), nullptr, {});
  indices->copy_shared_buffer(rhs);
}

// Gives all slots an expert, so that the next prompts find them.
void LayerCache::fill(StreamEncoder& enc) {
  std::vector<uint32_t> all(std::min(slots, experts));
  std::iota(all.begin(), all.end(), 0u);
  array rhs(all.begin(), {static_cast<int>(all.size())}, uint32);
  enc.add_temporary(rhs);
  look_up(enc, rhs);
}

// Returns false if the card has no room.
bool LayerCache::use_slots(StreamEncoder& enc, QuantOperands& o) {
  Stack* stack = find_or_add(enc, o);
  if (!stack) {
    return false;
  }
  if (!state) {
    fill(enc);
  }
  if (!same(*indices, *o.rhs)) {
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

// Reads a copy of the whole stack, if the card has room for it. Returns false
// if it has no room for slots.
bool LayerCache::use_copy(StreamEncoder& enc, QuantOperands& o) {
  Stack* stack = find_or_add(enc, o);
  if (!stack) {
    return false;
  }
  if (!state) {
    fill(enc);
    hold(*o.rhs); // other stacks of the layer have these
  }
  auto parts = parts_of(o);
  std::vector<array> copies;
  for (auto* part : parts) {
    auto room = room_for_copy(part->nbytes(), enc);
    if (!room) {
      return true;
    }
    copies.push_back(with_matrices(*part, experts));
    copies.back().copy_shared_buffer(
        *room, part->strides(), part->flags(), part->size());
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    auto count = static_cast<uint32_t>(parts[i]->nbytes() / 16);
    AssembleExpertsArgs args{count / experts, count};
    enc.dispatch(
        AssembleExpertsVariant{},
        {*state, *parts[i], stack->slots[i]},
        {copies[i]},
        args,
        linear(ceil_div(count, AssembleExpertsVariant::part)));
    *parts[i] = copies[i];
  }
  return true;
}

void cache_experts(const array& stack, uint32_t slots) {
  auto& own = buffer_of(stack)->experts;
  own = std::make_shared<ExpertCache>(ExpertCache{.slots = slots});
  try {
    own->room = new_slots(stack, slots);
  } catch (const OutOfMemory&) { // find_or_add() tries again
  }
}

void use_cached_experts(StreamEncoder& enc, QuantOperands& o, uint64_t rows) {
  auto* buffer = buffer_of(o.w);
  if (!o.rhs || !buffer || !buffer->experts) {
    return;
  }
  auto& all = caches();
  std::lock_guard lock(all.mutex);
  auto own = buffer->experts;
  auto give_rooms_back = [&] {
    for (auto* part : parts_of(o)) {
      buffer_of(*part)->experts = nullptr;
    }
  };
  if (!suits(o)) {
    return give_rooms_back();
  }
  bool few = o.rhs->size() <= own->slots;
  if (!few && !worth_fetching(o.w, rows, enc)) {
    return;
  }
  auto latest = all.latest.lock();
  if (!own->layer && latest && latest->state && latest->slots == own->slots &&
      latest->experts == static_cast<uint32_t>(o.w.shape(0)) &&
      same(*latest->indices, *o.rhs)) {
    own->layer = latest;
  } else if (!own->layer) {
    own->layer = std::make_shared<LayerCache>(own->slots);
  }
  auto cache = own->layer;
  enc.raw().keep(cache);
  if (!cache->take(enc)) {
    return;
  }
  if (few ? cache->use_slots(enc, o) : cache->use_copy(enc, o)) {
    all.latest = cache;
  } else {
    give_rooms_back();
  }
}

} // namespace mlx::core::vulkan
