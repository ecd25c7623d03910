#include "backend/weights.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "mlx/device.h"
#include "mlx/memory.h"
#include "mlx/primitives.h"
#include "runtime/device.h"
#include "runtime/memory_types.h"
#include "vk/config.h"
#include "vk/instance.h"

namespace mlx::core::vulkan {

namespace {

// Smaller arrays, such as norms, are never worth it.
constexpr size_t least_bytes = 1 << 20;
// Steps keep a sixth of the budget, or what they took before, up to
// most_step_part.
constexpr uint64_t reserve_part = 6;
// Of a stack: the matrices that a token reads in most models, and the part of a
// small one.
constexpr double used_experts = 8, used_part = 0.25;
constexpr double filled_part = 0.9375; // of blocks, by slots of a few sizes
// A cache has slots for two tokens at least. Stacks in the host's memory leave
// it a quarter of what the device may use, and a third of all.
constexpr uint32_t least_slots = 16;
constexpr double most_mapped_part = 0.75, most_host_part = 2.0 / 3;

struct Weight {
  std::weak_ptr<Primitive> load; // gone if nobody wants the array
  size_t bytes;
  double read; // the part of it that a token reads
  bool embedding, head; // by its name: of tokens, of logits
  uint32_t experts; // matrices of a quantized stack; 0: is no part of one
  WeightPlace place;
};

struct Waiting {
  std::mutex mutex;
  std::unordered_map<const Primitive*, Weight> weights;
  bool decided = true;
  uint64_t on_card = 0; // bytes of all that were placed there so far
};
Waiting& waiting() {
  static auto* w = new Waiting; // arrays may outlive statics
  return *w;
}

struct Split {
  uint64_t all, away, budget, reserve; // bytes
  double read; // of `away`, by a token
  bool stacks; // are in `away`
  bool cached;
};

void tell(const Split& s) {
  auto gb = [](double bytes) { return bytes * 1e-9; };
  double rate = device().measure_bus();
  char speed[128] = "";
  if (s.read > 0) {
    std::snprintf(
        speed,
        sizeof speed,
        ", enough for %.3g tokens/s%s",
        rate / s.read,
        s.cached       ? " or more if each reads 8 experts of a layer"
            : s.stacks ? " if each reads 8 experts of a layer"
                       : "");
  }
  std::fprintf(
      stderr,
      "[mlx-vulkan] %.1f of %.1f GB of weights stay in the host's memory%s: of "
      "%.1f GB that %s may take, %.1f are kept for what steps make. The bus "
      "carries %.3g GB/s%s. All would fit in %.1f GB, or with fewer bits per "
      "weight.\n",
      gb(s.away),
      gb(s.all),
      s.cached ? ", or as many of the experts that are used least" : "",
      gb(s.budget),
      device().caps().name.c_str(),
      gb(s.reserve),
      gb(rate),
      speed,
      gb(s.budget + s.away));
}

// The part of a weight that a token reads.
double part_read(const array& a) {
  if (a.ndim() < 3) {
    return 1;
  }
  auto matrices = double(a.size()) / (double(a.shape(-1)) * a.shape(-2));
  return std::min(used_part, used_experts / matrices);
}

bool names_any(
    const std::string& name,
    std::initializer_list<const char*> all) {
  return std::any_of(all.begin(), all.end(), [&](auto* part) {
    return name.find(part) != std::string::npos;
  });
}

// Keeps all stacks of experts in the host's memory, and on the card slots for
// those of them that it has room for. Returns false if they are too few.
bool cache_stacks(Waiting& w, Split& s, uint64_t room) {
  uint64_t stacks = 0;
  uint32_t least = ~0u;
  for (auto& [load, weight] : w.weights) {
    if (weight.experts > 0) {
      stacks += weight.bytes;
      least = std::min(least, weight.experts);
    }
  }
  uint64_t others = s.all - s.away - stacks;
  if (stacks == 0 || others >= room || config().disabled("experts")) {
    return false;
  }
  auto& memory = device().memory();
  double host = double(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  double part = filled_part * double(room - others) / double(stacks);
  if (part * least < least_slots ||
      double(stacks) > most_mapped_part * double(memory.budget_in_place()) ||
      double(stacks) > most_host_part * host) {
    return false;
  }
  for (auto& [load, weight] : w.weights) {
    if (weight.experts > 0) {
      weight.place.placement = Placement::InPlace;
      weight.place.slots = static_cast<uint32_t>(part * weight.experts);
      s.read += (1 - part) * weight.read * double(weight.bytes);
    }
  }
  s.away = s.all - room;
  s.stacks = s.cached = true;
  return true;
}

// Under the mutex.
void decide(Waiting& w) {
  w.decided = true;
  Split s{};
  bool has_head = false; // a model only gathers from its embeddings then
  std::vector<Weight*> order;
  for (auto it = w.weights.begin(); it != w.weights.end();) {
    if (it->second.load.expired()) {
      it = w.weights.erase(it);
      continue;
    }
    auto& weight = (it++)->second;
    weight.place = {};
    s.all += weight.bytes;
    has_head |= weight.head;
    if (weight.bytes >= least_bytes) {
      order.push_back(&weight);
    }
  }
  auto& memory = device().memory();
  s.budget = memory.budget();
  uint64_t used = get_active_memory(), peak = get_peak_memory();
  s.reserve = std::clamp(
      peak - std::min(peak, std::max(w.on_card, used)),
      s.budget / reserve_part,
      s.budget / most_step_part);
  uint64_t room = s.budget - std::min(s.budget, used + s.reserve);
  if (s.all <= room || memory.types().in_place.empty()) {
    return;
  }
  auto read = [&](const Weight* weight) {
    return weight->embedding && has_head ? 0 : weight->read;
  };
  std::sort(order.begin(), order.end(), [&](auto* a, auto* b) {
    return std::tuple(read(a), b->bytes) < std::tuple(read(b), a->bytes);
  });
  for (auto* weight : order) {
    if (s.all - s.away <= room ||
        (read(weight) > 0 && !s.stacks && cache_stacks(w, s, room))) {
      break;
    }
    weight->place.placement = Placement::InPlace;
    s.away += weight->bytes;
    s.stacks |= weight->read < 1;
    s.read += read(weight) * double(weight->bytes);
  }
  if (s.away > 0) {
    tell(s);
  }
}

} // namespace

bool files_go_to_gpu() {
  if (default_device() != mlx::core::Device::gpu) {
    return false;
  }
  if (auto* d = device_if_started()) {
    return !d->memory().types().unified;
  }
  auto& p = probe();
  if (p.chosen < 0) {
    return false; // the first use of the GPU says why
  }
  // Host reads that prove to be fast make it unified, where this works too.
  auto& caps = p.devices[p.chosen];
  return !choose_memory_types(caps.memory, caps.type, config().memory).unified;
}

void expect_weights(const std::unordered_map<std::string, array>& arrays) {
  auto& w = waiting();
  std::lock_guard lock(w.mutex);
  for (auto& [name, a] : arrays) {
    if (a.has_primitive() &&
        a.primitive().stream().device == mlx::core::Device::gpu) {
      auto& load = a.primitive_ptr();
      bool side = name.ends_with(".scales") || name.ends_with(".biases");
      bool codes = a.dtype() == uint32 && !side, stack = a.ndim() == 3;
      w.weights[load.get()] = {
          .load = load,
          .bytes = a.nbytes(),
          .read = part_read(a),
          .embedding = names_any(name, {"embed_tokens.", "token_embd."}),
          .head = names_any(name, {"lm_head."}) || name.starts_with("output."),
          .experts =
              stack && (codes || side) ? static_cast<uint32_t>(a.shape(0)) : 0,
          .place = {}};
      w.decided = false;
    }
  }
}

WeightPlace place_weight(const array& out) {
  auto& w = waiting();
  std::lock_guard lock(w.mutex);
  if (!w.decided) {
    decide(w);
  }
  auto it = w.weights.find(&out.primitive());
  if (it == w.weights.end() || it->second.load.expired()) {
    return {};
  }
  auto place = it->second.place;
  w.on_card += place.placement == Placement::Device ? it->second.bytes : 0;
  w.weights.erase(it);
  return place;
}

} // namespace mlx::core::vulkan
