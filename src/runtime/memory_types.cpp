#include "runtime/memory_types.h"

#include <algorithm>
#include <cstdio>

namespace mlx::core::vulkan {

namespace {

using Flags = VkMemoryPropertyFlags;
using Properties = VkPhysicalDeviceMemoryProperties;

constexpr Flags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr Flags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
constexpr Flags coherent_bit = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr Flags coherent = visible | coherent_bit;
constexpr Flags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

// A property, and whether it is wanted.
struct Taste {
  Flags flag;
  bool good;
};
// In descending order of weight.
using Tastes = std::initializer_list<Taste>;

// Types with all of `need` and none of `refuse`, best first, at most one per
// heap, because a full heap is full for all its types.
std::vector<int>
find(const Properties& p, Flags need, Flags refuse, Tastes tastes) {
  refuse |= VK_MEMORY_PROPERTY_PROTECTED_BIT |
      VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD |
      VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT;
  auto flags = [&](int i) { return p.memoryTypes[i].propertyFlags; };
  auto score = [&](int i) {
    int s = 0;
    for (auto& taste : tastes) {
      s = 2 * s + (bool(flags(i) & taste.flag) == taste.good);
    }
    return s;
  };
  std::vector<int> found;
  for (int i = 0; i < static_cast<int>(p.memoryTypeCount); ++i) {
    if ((flags(i) & need) == need && !(flags(i) & refuse)) {
      found.push_back(i);
    }
  }
  std::stable_sort(found.begin(), found.end(), [&](int a, int b) {
    return score(a) > score(b);
  });
  uint32_t heaps = 0;
  std::erase_if(found, [&](int i) {
    uint32_t heap = 1u << p.memoryTypes[i].heapIndex;
    bool seen = heaps & heap;
    heaps |= heap;
    return seen;
  });
  return found;
}

// The type that a GPU sharing the host's memory uses for everything; -1: none.
int shared_type(const Properties& p) {
  auto types = find(p, local | coherent, 0, {{cached, true}});
  return types.empty() ? -1 : types[0];
}

bool is_cached(const Properties& p, int type) {
  return p.memoryTypes[type].propertyFlags & cached;
}

std::string gigabytes(double bytes_per_second) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GB/s", bytes_per_second * 1e-9);
  return text;
}

void unify(std::vector<int> types, std::string why, MemoryTypes& t) {
  t.device = t.host = std::move(types);
  t.unified = true;
  t.why = "unified: " + std::move(why);
}

void mirror(
    const Properties& p,
    bool one_memory,
    std::string why,
    MemoryTypes& t) {
  t.why = "mirrored: " + std::move(why);
  t.one_memory = one_memory;
  // Where the other side's memory is behind a bus, an error is better than a
  // hundredth of the speed.
  t.device =
      find(p, one_memory ? 0 : local, 0, {{local, true}, {visible, false}});
  if (!one_memory && t.device.size() > 1) {
    // A window of 256 MiB through which the host sees a card's memory. Drivers
    // need it, and arrays in it cost two thirds of the speed.
    auto bytes = [&](int i) {
      return p.memoryHeaps[p.memoryTypes[i].heapIndex].size;
    };
    std::erase_if(t.device, [&, most = bytes(t.device[0])](int i) {
      return p.memoryTypes[i].propertyFlags & visible && bytes(i) < most;
    });
  }
  Tastes host = {{cached, true}, {coherent_bit, true}, {local, false}};
  t.host = find(p, visible, one_memory ? 0 : local, host);
  t.in_place = one_memory ? std::vector<int>() : t.host;
  if (t.host.empty()) {
    t.host = find(p, visible, 0, host);
  }
}

} // namespace

Properties types_of_buffers(Properties p, uint32_t bits) {
  for (uint32_t i = 0; i < p.memoryTypeCount; ++i) {
    if (!(bits >> i & 1)) {
      // Indices stay as they are; this flag is refused everywhere.
      p.memoryTypes[i].propertyFlags = VK_MEMORY_PROPERTY_PROTECTED_BIT;
    }
  }
  return p;
}

int type_to_probe(
    const Properties& p,
    VkPhysicalDeviceType device,
    MemoryModel wanted) {
  int shared = shared_type(p);
  bool open = wanted == MemoryModel::Automatic && shared >= 0 &&
      device != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU && !is_cached(p, shared);
  return open ? shared : -1;
}

MemoryTypes choose_memory_types(
    const Properties& p,
    VkPhysicalDeviceType device,
    MemoryModel wanted,
    const HostReads& reads,
    bool host_caches_apart) {
  MemoryTypes t;
  bool discrete = device == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  int shared = shared_type(p);
  t.small = shared >= 0;
  t.coherent = find(p, coherent, 0, {{local, true}, {cached, true}});
  // Forced onto a card, unified memory is the card's, if that can be mapped.
  auto one = find(
      p,
      discrete && shared >= 0 ? local | coherent : coherent,
      0,
      {{local, true}, {cached, true}});
  auto apart = find(p, local | visible | cached, coherent_bit, {});
  bool cached_host = !find(p, coherent | cached, 0, {}).empty();
  bool measured = shared >= 0 && reads.type == shared;
  bool slow = wanted == MemoryModel::Uncached ||
      (measured ? reads.bytes_per_second < fast_host_reads
                : shared < 0 || !is_cached(p, shared));
  std::string speed =
      measured ? " (" + gigabytes(reads.bytes_per_second) + ")" : "";
  if (wanted == MemoryModel::Unified) {
    unify(one, "MLX_VK_MEMORY asks for it", t);
  } else if (wanted == MemoryModel::Discrete) {
    mirror(p, false, "MLX_VK_MEMORY asks for it", t);
  } else if (discrete) {
    mirror(p, false, "the GPU has memory of its own", t);
  } else if (shared < 0) {
    mirror(p, false, "the host cannot map the GPU's memory", t);
  } else if (!slow) {
    auto why = measured ? "the host reads the GPU's memory fast" + speed
                        : "host and GPU share cached memory";
    unify(one, why, t);
  } else if (!apart.empty()) {
    unify(
        find(p, visible | cached, 0, {{local, true}, {coherent_bit, false}}),
        "in cached memory that is flushed and invalidated, since the host "
        "reads the coherent one slowly" +
            speed,
        t);
    t.host_coherent = false;
  } else if (cached_host) {
    mirror(
        p,
        true,
        "the host reads the GPU's memory slowly" + speed +
            ", so it reads cached copies",
        t);
  } else {
    unify(
        one,
        "the host reads it slowly" + speed +
            ", but there is no cached memory to read through",
        t);
  }
  t.host_coherent &= !(t.unified && host_caches_apart);
  return t;
}

uint64_t heap_bytes(const Properties& p, const std::vector<int>& types) {
  uint64_t bytes = 0;
  for (int i : types) {
    bytes += p.memoryHeaps[p.memoryTypes[i].heapIndex].size;
  }
  return bytes;
}

} // namespace mlx::core::vulkan
