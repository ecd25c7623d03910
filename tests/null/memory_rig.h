// A fake device whose memory is arranged as on a chip, and arrays on it.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "null/fake_kernels.h"
#include "runtime/device.h"
#include "runtime/encoder.h"

namespace mlx::core::vulkan {

inline constexpr VkMemoryPropertyFlags local = 0x1, mapped = 0x6, cached = 0x8,
                                       not_coherent = 0xa;
inline constexpr uint64_t mib = 1 << 20;

inline fake::Settings device_with(
    std::vector<VkMemoryType> types,
    std::vector<VkMemoryHeap> heaps) {
  fake::Settings s;
  s.types = std::move(types);
  s.heaps = std::move(heaps);
  return s;
}

inline fake::Settings lunar_lake(uint32_t seed = 1) {
  auto s = device_with(
      {{local, 0}, {local | mapped, 0}, {local | not_coherent, 0}},
      {{256 * mib, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}});
  s.seed = seed;
  return s;
}

// A card whose cached host memory is not coherent.
inline fake::Settings card(uint32_t seed = 1) {
  auto s = device_with(
      {{local, 0}, {mapped, 1}, {not_coherent, 1}},
      {{256 * mib, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}, {256 * mib, 0}});
  s.discrete = true;
  s.seed = seed;
  return s;
}

inline fake::Settings apu(
    uint64_t host = 256 * mib,
    uint64_t device = 256 * mib) {
  return device_with(
      {{local, 1}, {mapped, 0}, {local | mapped, 1}, {mapped | cached, 0}},
      {{host, 0}, {device, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}});
}

// ANV on the xe driver: the first type is for compressed images alone.
inline fake::Settings battlemage() {
  auto s = device_with(
      {{local, 0}, {local, 0}, {mapped | cached, 1}, {local | mapped, 0}},
      {{256 * mib, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}, {256 * mib, 0}});
  s.discrete = true;
  s.buffer_types = 0b1110;
  return s;
}

// The device, where the host reads what is not cached slowly, as it is with
// the chips above. What is left over at the end is an error.
class Rig {
 public:
  explicit Rig(fake::Settings settings) {
    set_host_reads_for_tests(50e6);
    settings.float16 = false; // no probe: the first submission is the test's
    fake::reset(std::move(settings));
    device.emplace();
  }
  ~Rig() {
    set_trim_hook(nullptr);
    device.reset();
    set_host_reads_for_tests(0);
    auto s = fake::statistics();
    CHECK(s.live_buffers == 0);
    CHECK(s.live_memory == 0);
    CHECK(s.live_pipelines == 0);
    for (auto& e : fake::errors()) {
      FAIL_CHECK(e);
    }
  }

  using Array = std::shared_ptr<Buffer>;
  Array array(size_t bytes, Placement p = Placement::Device) {
    auto& m = memory();
    return {m.allocate(bytes, p), [&m](Buffer* b) { m.release(b); }};
  }
  Array numbers(uint32_t n, uint32_t value) {
    auto a = array(n * 4, Placement::Host);
    std::fill_n(values(a), n, value);
    return a;
  }
  uint32_t* values(const Array& a) {
    return static_cast<uint32_t*>(memory().host_pointer(*a));
  }

  // z = 31 x + 17 y + salt.
  void mix(
      Encoder& enc,
      const Array& x,
      const Array& y,
      const Array& z,
      uint32_t salt) {
    auto all = [](const Array& a) {
      return a ? Binding{a.get(), 0, 0, a->size} : Binding{};
    };
    Binding in[] = {all(x), all(y)}, out[] = {all(z)};
    fake::MixParams p{uint32_t(z->size / 4), salt};
    enc.dispatch(
        fake::mix(device->pipelines()), in, out, &p, sizeof p, {1, 1, 1});
    for (auto& a : {x, y, z}) {
      enc.keep(a);
    }
  }

  Memory& memory() {
    return device->memory();
  }

  std::optional<Device> device;
};

inline constexpr uint32_t n = 700; // above the small-buffer limit

} // namespace mlx::core::vulkan
