#include "backend/weights.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <unordered_map>
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
// Of the budget: for what steps make.
constexpr uint64_t reserve_part = 6;

struct Weight {
  std::weak_ptr<Primitive> load; // gone if nobody wants the array
  size_t bytes;
  bool stack; // of matrices
  Placement place = Placement::Weight;
};

struct Waiting {
  std::mutex mutex;
  std::unordered_map<const Primitive*, Weight> weights;
  bool decided = true;
};
Waiting& waiting() {
  static auto* w = new Waiting; // arrays may outlive statics
  return *w;
}

void tell(uint64_t away, uint64_t all, uint64_t budget, uint64_t reserve) {
  auto gb = [](uint64_t bytes) { return double(bytes) * 1e-9; };
  std::fprintf(
      stderr,
      "[mlx-vulkan] %.1f of %.1f GB of weights stay in the host's memory: of "
      "%.1f GB that %s may take, %.1f are kept for what steps make. It reads "
      "them over its bus, far slower than its own memory. They would fit in "
      "%.1f GB, or with fewer bits per weight.\n",
      gb(away),
      gb(all),
      gb(budget),
      device().caps().name.c_str(),
      gb(reserve),
      gb(budget + away));
}

// Under the mutex.
void decide(Waiting& w) {
  w.decided = true;
  uint64_t all = 0;
  std::vector<Weight*> order;
  for (auto it = w.weights.begin(); it != w.weights.end();) {
    if (it->second.load.expired()) {
      it = w.weights.erase(it);
      continue;
    }
    auto& weight = (it++)->second;
    weight.place = Placement::Weight;
    all += weight.bytes;
    if (weight.bytes >= least_bytes) {
      order.push_back(&weight);
    }
  }
  auto& memory = device().memory();
  uint64_t budget = memory.budget(), used = get_active_memory();
  uint64_t reserve = budget / reserve_part;
  uint64_t room = budget - std::min(budget, used + reserve);
  if (all <= room || memory.types().in_place.empty()) {
    return;
  }
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return std::pair(a->stack, a->bytes) > std::pair(b->stack, b->bytes);
  });
  uint64_t away = 0;
  for (auto* weight : order) {
    if (all - away <= room) {
      break;
    }
    weight->place = Placement::InPlace;
    away += weight->bytes;
  }
  if (away > 0) {
    tell(away, all, budget, reserve);
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

void expect_weights(const std::vector<array>& arrays) {
  auto& w = waiting();
  std::lock_guard lock(w.mutex);
  for (auto& a : arrays) {
    if (a.has_primitive() &&
        a.primitive().stream().device == mlx::core::Device::gpu) {
      auto& load = a.primitive_ptr();
      w.weights[load.get()] = {load, a.nbytes(), a.ndim() >= 3};
      w.decided = false;
    }
  }
}

Placement place_weight(const array& out) {
  auto& w = waiting();
  std::lock_guard lock(w.mutex);
  if (!w.decided) {
    decide(w);
  }
  auto it = w.weights.find(&out.primitive());
  if (it == w.weights.end() || it->second.load.expired()) {
    return Placement::Weight;
  }
  auto place = it->second.place;
  w.weights.erase(it);
  return place;
}

} // namespace mlx::core::vulkan
