// Memory types of real chips and what is made of them. Layouts of RADV, ANV
// with i915, Turnip, Honeykrisp and NVK are those that Mesa 26.1 reports with
// its drm shims, of ANV with xe those of Mesa's source, that of lavapipe and of
// the H200 those of the devices. Mali's, V3D's, MoltenVK's and those of Windows
// drivers are after public reports of vulkaninfo.
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "runtime/memory_types.h"

using namespace mlx::core::vulkan;

namespace {

constexpr auto discrete = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
               integrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
               software = VK_PHYSICAL_DEVICE_TYPE_CPU;

// Property flags as vulkaninfo prints them.
enum : VkMemoryPropertyFlags {
  L = 0x1, // device-local
  VH = 0x6, // host-visible and coherent
  LVH = 0x7,
  VHC = 0xe, // and cached
  LVC = 0xb, // cached, not coherent
  LVHC = 0xf,
  Lazy = 0x11,
  Protected = 0x21,
  // AMD's uncached twins
  L_AMD = 0xc1,
  VH_AMD = 0xc6,
  LVH_AMD = 0xc7,
  VHC_AMD = 0xce,
};

struct Heap {
  uint64_t mib;
  bool local;
};

VkPhysicalDeviceMemoryProperties layout(
    const std::vector<Heap>& heaps,
    const std::vector<std::pair<VkMemoryPropertyFlags, uint32_t>>& types) {
  VkPhysicalDeviceMemoryProperties p{};
  for (auto& h : heaps) {
    p.memoryHeaps[p.memoryHeapCount++] = {
        h.mib << 20,
        h.local ? VkMemoryHeapFlags(VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) : 0};
  }
  for (auto& [flags, heap] : types) {
    p.memoryTypes[p.memoryTypeCount++] = {flags, heap};
  }
  return p;
}

enum Model { Unified, Flushed, Mirrored, OneMemory };

struct Chip {
  const char* name;
  VkPhysicalDeviceMemoryProperties memory;
  VkPhysicalDeviceType type;
  double reads; // bytes per second, where that is asked
  int probed; // type_to_probe()
  Model model;
  std::vector<int> device, host, coherent;
};

constexpr double write_combined = 80e6, cached = 9e9;

const std::vector<Chip>& chips() {
  static const std::vector<Heap> apu_heaps = {{5412, false}, {10824, true}};
  // Of APUs and of cards whose whole memory is mapped; heap 1 is the GPU's.
  static const std::vector<std::pair<VkMemoryPropertyFlags, uint32_t>>
      radv_types = {
          {L, 1},
          {L, 1},
          {VH, 0},
          {LVH, 1},
          {LVH, 1},
          {VHC, 0},
          {VHC, 0},
          {L_AMD, 1},
          {VH_AMD, 0},
          {LVH_AMD, 1},
          {VHC_AMD, 0}};
  static const std::vector<Chip> all = {
      {"polaris10, RADV: a card with a BAR of 256 MiB",
       layout(
           {{7936, true}, {15999, false}, {256, true}},
           {{L, 0}, {L, 0}, {VH, 1}, {LVH, 2}, {LVH, 2}, {VHC, 1}, {VHC, 1}}),
       discrete,
       0,
       -1,
       Mirrored,
       {0},
       {5},
       {3, 5}},
      {"navi31, RADV: a card with a resizable BAR",
       layout({{31713, false}, {24560, true}}, radv_types),
       discrete,
       0,
       -1,
       Mirrored,
       {0},
       {5},
       {3, 5}},
      {"strix1, RADV: an APU whose device heap is a part of memory",
       layout(apu_heaps, radv_types),
       integrated,
       write_combined,
       3,
       OneMemory,
       {0, 2},
       {5, 3},
       {3, 5}},
      {"the same, were it as fast as cached",
       layout(apu_heaps, radv_types),
       integrated,
       cached,
       3,
       Unified,
       {3, 5},
       {3, 5},
       {3, 5}},
      {"Renoir, AMD's Windows driver: a carve-out, a BAR and the rest",
       layout(
           {{1792, true}, {6838, false}, {256, true}},
           {{L, 0}, {VH, 1}, {LVH, 2}, {VHC, 1}, {L_AMD, 0}, {VHC_AMD, 1}}),
       integrated,
       write_combined,
       2,
       OneMemory,
       {0, 2, 1},
       {3, 2},
       {2, 3}},
      {"Lunar Lake, ANV with the i915 driver: cached memory is not coherent",
       layout(
           {{2048, true}},
           {{LVH, 0}, {LVC, 0}, {Protected, 0}, {LVH, 0}, {LVC, 0}}),
       integrated,
       write_combined,
       0,
       Flushed,
       {1},
       {1},
       {0}},
      {"Tiger Lake, ANV: one cache for both",
       layout(
           {{2048, true}},
           {{L, 0},
            {LVH, 0},
            {LVHC, 0},
            {Protected, 0},
            {L, 0},
            {LVH, 0},
            {LVHC, 0}}),
       integrated,
       0,
       -1,
       Unified,
       {2},
       {2},
       {2}},
      {"Battlemage, ANV with the xe driver",
       types_of_buffers(
           layout(
               {{12216, true}, {16000, false}},
               {{L, 0}, {L, 0}, {VHC, 1}, {LVH, 0}}),
           0b1110),
       discrete,
       0,
       -1,
       Mirrored,
       {1},
       {2},
       {3, 2}},
      {"Battlemage, the same with a BAR of 256 MiB",
       types_of_buffers(
           layout(
               {{11960, true}, {16000, false}, {256, true}},
               {{L, 0}, {L, 0}, {VHC, 1}, {LVH, 2}}),
           0b1110),
       discrete,
       0,
       -1,
       Mirrored,
       {1},
       {2},
       {3, 2}},
      {"Lunar Lake, ANV with the xe driver",
       types_of_buffers(
           layout({{16000, true}}, {{L, 0}, {LVH, 0}, {LVHC, 0}}), 0b110),
       integrated,
       0,
       -1,
       Unified,
       {2},
       {2},
       {2}},
      {"DG2, ANV with the i915 driver",
       layout(
           {{4096, true}, {2048, false}},
           {{L, 0},
            {VHC, 1},
            {LVH, 0},
            {Protected, 0},
            {L, 0},
            {VHC, 1},
            {LVH, 0}}),
       discrete,
       0,
       -1,
       Mirrored,
       {0},
       {1},
       {2, 1}},
      {"Adreno 740, Turnip: three kinds of mapped memory",
       layout({{4096, true}}, {{LVH, 0}, {LVHC, 0}, {LVC, 0}, {Lazy, 0}}),
       integrated,
       0,
       -1,
       Unified,
       {1},
       {1},
       {1}},
      {"Mali without coherent caches",
       layout({{7600, true}}, {{LVH, 0}, {LVC, 0}, {Lazy, 0}}),
       integrated,
       write_combined,
       0,
       Flushed,
       {1},
       {1},
       {0}},
      {"M1, Honeykrisp",
       layout({{12052, true}}, {{LVHC, 0}, {LVH, 0}}),
       integrated,
       0,
       -1,
       Unified,
       {0},
       {0},
       {0}},
      {"M1, MoltenVK",
       layout({{16384, true}}, {{L, 0}, {LVHC, 0}, {LVC, 0}, {Lazy, 0}}),
       integrated,
       0,
       -1,
       Unified,
       {1},
       {1},
       {1}},
      {"NVK: a card with 3 GiB",
       layout({{3072, true}, {18079, false}}, {{L, 0}, {LVH, 0}, {VHC, 1}}),
       discrete,
       0,
       -1,
       Mirrored,
       {0},
       {2},
       {1, 2}},
      {"H200, NVIDIA",
       layout(
           {{143360, true}, {1500000, false}},
           {{0, 1}, {L, 0}, {VH, 1}, {VHC, 1}, {LVH, 0}}),
       discrete,
       0,
       -1,
       Mirrored,
       {1},
       {3},
       {4, 3}},
      {"RTX 2080, NVIDIA: a card with a BAR of 214 MiB",
       layout(
           {{7987, true}, {15000, false}, {214, true}},
           {{0, 1}, {L, 0}, {VH, 1}, {VHC, 1}, {LVH, 2}}),
       discrete,
       0,
       -1,
       Mirrored,
       {1},
       {3},
       {4, 3}},
      {"lavapipe",
       layout({{2048, true}}, {{LVHC, 0}}),
       software,
       0,
       -1,
       Unified,
       {0},
       {0},
       {0}},
      {"V3D, Mesa: nothing is cached",
       layout({{3500, true}}, {{LVH, 0}}),
       integrated,
       write_combined,
       0,
       Unified,
       {0},
       {0},
       {0}},
  };
  return all;
}

} // namespace

TEST_CASE("memory types: of real chips") {
  for (auto& chip : chips()) {
    CAPTURE(chip.name);
    CHECK(
        type_to_probe(chip.memory, chip.type, MemoryModel::Automatic) ==
        chip.probed);
    auto t = choose_memory_types(
        chip.memory,
        chip.type,
        MemoryModel::Automatic,
        {chip.probed, chip.reads});
    CAPTURE(t.why);
    CHECK(t.usable());
    CHECK(t.unified == (chip.model == Unified || chip.model == Flushed));
    CHECK(t.host_coherent == (chip.model != Flushed));
    CHECK(t.one_memory == (chip.model == OneMemory));
    CHECK(t.device == chip.device);
    CHECK(t.host == chip.host);
    CHECK(t.coherent == chip.coherent);
    CHECK(t.small);
    CHECK(t.why.starts_with(t.unified ? "unified: " : "mirrored: "));
    if (chip.probed >= 0) {
      CHECK(t.why.find("GB/s") != std::string::npos);
    }
  }
}

TEST_CASE("memory types: what is not measured goes by its flags") {
  for (auto& chip : chips()) {
    CAPTURE(chip.name);
    bool fast = chip.probed >= 0 && chip.reads >= fast_host_reads;
    auto t =
        choose_memory_types(chip.memory, chip.type, MemoryModel::Automatic);
    auto measured = choose_memory_types(
        chip.memory,
        chip.type,
        MemoryModel::Automatic,
        {chip.probed, chip.reads});
    CHECK((t.device == measured.device) == !fast);
    // So that what is said before the start holds after it.
    CHECK(
        heap_bytes(chip.memory, t.device) ==
        heap_bytes(chip.memory, measured.device));
  }
}

TEST_CASE(
    "memory types: each list has one type a heap, that the host can map") {
  for (auto& chip : chips()) {
    for (auto wanted :
         {MemoryModel::Automatic,
          MemoryModel::Unified,
          MemoryModel::Discrete,
          MemoryModel::Uncached}) {
      CAPTURE(chip.name);
      CAPTURE(int(wanted));
      auto t = choose_memory_types(chip.memory, chip.type, wanted);
      CHECK(t.usable());
      for (auto* list : {&t.device, &t.host, &t.coherent}) {
        uint32_t heaps = 0;
        for (int i : *list) {
          auto& type = chip.memory.memoryTypes[i];
          CHECK_FALSE((heaps & (1u << type.heapIndex)));
          heaps |= 1u << type.heapIndex;
          bool visible =
              type.propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
          CHECK((visible || (list == &t.device && !t.unified)));
          if (list == &t.coherent || (t.unified && t.host_coherent)) {
            CHECK((type.propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT));
          }
        }
      }
    }
  }
}

TEST_CASE("memory types: forced either way") {
  auto& all = chips();
  auto choose = [&](const char* name, MemoryModel wanted, bool apart = false) {
    for (auto& chip : all) {
      if (std::string_view(chip.name).starts_with(name)) {
        return choose_memory_types(chip.memory, chip.type, wanted, {}, apart);
      }
    }
    return MemoryTypes{};
  };
  auto t = choose("lavapipe", MemoryModel::Discrete);
  CHECK_FALSE(t.unified);
  CHECK_FALSE(t.one_memory);
  CHECK(t.device == std::vector{0});
  CHECK(t.host == std::vector{0});
  // A card's unified memory is its own, over the bus.
  t = choose("H200", MemoryModel::Unified);
  CHECK(t.unified);
  CHECK(t.device == std::vector{4});
  t = choose("lavapipe", MemoryModel::Uncached);
  CHECK_FALSE(t.unified);
  CHECK(t.one_memory);
  CHECK(choose("Lunar", MemoryModel::Uncached).unified);
  CHECK_FALSE(choose("Lunar", MemoryModel::Uncached).host_coherent);
  CHECK(choose("H200", MemoryModel::Uncached).device == std::vector{1});
  // Host caches apart, as a simulation: of unified memory.
  CHECK_FALSE(choose("lavapipe", MemoryModel::Automatic, true).host_coherent);
  CHECK(choose("lavapipe", MemoryModel::Discrete, true).host_coherent);
}

TEST_CASE("memory types: a card whose memory cannot be mapped, or has none") {
  auto card = layout({{4096, true}, {8192, false}}, {{L, 0}, {VHC, 1}});
  auto t = choose_memory_types(card, discrete, MemoryModel::Automatic);
  CHECK_FALSE(t.small);
  CHECK(t.device == std::vector{0});
  CHECK(t.coherent == std::vector{1});
  // Non-coherent host memory is a mirror too: better than none that is cached.
  card = layout({{4096, true}, {8192, false}}, {{L, 0}, {VH, 1}, {0xa, 1}});
  t = choose_memory_types(card, discrete, MemoryModel::Automatic);
  CHECK(t.host == std::vector{2});
  CHECK(t.coherent == std::vector{1});
  CHECK_FALSE(
      choose_memory_types({}, discrete, MemoryModel::Automatic).usable());
}
