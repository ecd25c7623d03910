// New memory of NVIDIA's driver on the fake device.
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "null/memory_rig.h"
#include "null/text.h"

using namespace mlx::core::vulkan;

namespace {

// `other`: the card has another driver.
fake::Settings
nvidia_card(int work_us, uint64_t heap = 256 * mib, bool other = false) {
  auto s = card();
  s.heaps[0].size = s.max_allocation = heap;
  s.driver = other ? VK_DRIVER_ID_MESA_NVK : VK_DRIVER_ID_NVIDIA_PROPRIETARY;
  s.work_us = work_us;
  return s;
}

// Submits a batch that writes z.
std::shared_ptr<Completion>
submit(Rig& rig, Encoder& enc, const Rig::Array& z, uint32_t salt) {
  rig.mix(enc, nullptr, nullptr, z, salt);
  auto batch = enc.close();
  while (!batch->submitted()) {
    std::this_thread::yield();
  }
  return batch;
}

// Seconds that an allocation takes.
double seconds_for(Rig& rig, Rig::Array& a, size_t bytes) {
  auto begun = std::chrono::steady_clock::now();
  a = rig.array(bytes);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  return took.count();
}

} // namespace

TEST_CASE("memory: NVIDIA's device is idle when it is given new memory") {
  for (bool nvidia : {true, false}) {
    CAPTURE(nvidia);
    Rig rig(nvidia_card(5000, 256 * mib, !nvidia));
    Encoder enc(*rig.device, 0);
    std::vector<Rig::Array> all;
    auto z = rig.array(n * 4);
    for (uint32_t i = 0; i < 8; ++i) {
      submit(rig, enc, z, i);
      all.push_back(rig.array(24 * mib)); // more than VMA's blocks have left
    }
    CHECK((fake::statistics().busy_allocations == 0) == nvidia);
    enc.close();
    CHECK(rig.values(z)[n - 1] == 7);
  }
}

TEST_CASE("memory: an allocation waits for work of more than a second") {
  Rig rig(nvidia_card(400'000));
  Encoder enc(*rig.device, 0);
  auto z = rig.array(n * 4), other = rig.array(4);
  for (uint32_t i = 0; i < 4; ++i) {
    submit(rig, enc, z, i);
  }
  other = rig.array(100 * mib);
  CHECK(fake::statistics().busy_allocations == 0);
}

TEST_CASE("memory: blocks that NVIDIA's device had are kept for the next") {
  auto s = nvidia_card(0, 24 * 1024 * mib);
  Rig rig(s);
  auto fill = [&](int arrays, size_t bytes) {
    std::vector<Rig::Array> all;
    for (int i = 0; i < arrays; ++i) {
      all.push_back(rig.array(bytes, Placement::Device));
    }
    auto now = fake::statistics();
    return std::pair(now.allocations, now.heap_memory[0]);
  };
  fill(10, 100 * mib);
  auto first = fill(10, 100 * mib), second = fill(10, 100 * mib);
  CHECK(second == first);
  // A sixteenth of the heap at most, besides VMA's own empty block.
  auto [many, most] = fill(64, 100 * mib);
  CHECK(most >= 6400 * mib);
  CHECK(many > second.first);
  auto left = fake::statistics().heap_memory[0];
  CHECK(left >= 1024 * mib);
  CHECK(left <= (1536 + 384) * mib);
  // They make room for what needs it.
  CHECK(message([&] { fill(1, s.heaps[0].size - 500 * mib); }).empty());
  CHECK(fake::statistics().busy_allocations == 0);
}

TEST_CASE("memory: threads share the blocks that NVIDIA's device had") {
  auto s = nvidia_card(0, 24 * 1024 * mib);
  Rig rig(s);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 50; ++i) {
        std::vector<Rig::Array> some;
        for (size_t k = 0; k <= i % 6; ++k) {
          some.push_back(rig.array((40 + 30 * t) * mib, Placement::Device));
        }
      }
    });
  }
  for (auto& t : threads) {
    t.join();
  }
  CHECK(fake::statistics().heap_memory[0] <= (1536 + 384) * mib);
  CHECK(fake::errors().empty());
}

TEST_CASE("memory: blocks that are kept make room within a budget") {
  auto s = nvidia_card(0, 24 * 1024 * mib);
  s.budgets = {2000 * mib, 2000 * mib};
  Rig rig(s);
  std::vector<Rig::Array> all;
  for (int i = 0; i < 12; ++i) {
    all.push_back(rig.array(100 * mib, Placement::Device));
  }
  all.clear();
  CHECK(fake::statistics().heap_memory[0] > 700 * mib);
  std::this_thread::sleep_for(std::chrono::milliseconds(110));
  rig.memory().budget(); // asks the driver how much is in use
  all.push_back(rig.array(1400 * mib, Placement::Device));
  CHECK(fake::statistics().heap_memory[0] <= 2000 * mib);
}

TEST_CASE("memory: arrays of NVIDIA's card are parts of a block's buffer") {
  for (bool nvidia : {true, false}) {
    CAPTURE(nvidia);
    Rig rig(nvidia_card(0, 256 * mib, !nvidia));
    Encoder enc(*rig.device, 0);
    std::vector<Rig::Array> x, z;
    auto before = fake::statistics().live_buffers;
    for (uint32_t i = 0; i < 20; ++i) {
      z.push_back(rig.array(n * 4));
    }
    auto made = fake::statistics().live_buffers - before;
    CHECK(made == (nvidia ? 1 : 20));
    // Copies to and from them begin where they do.
    for (uint32_t i = 0; i < 20; ++i) {
      x.push_back(rig.numbers(n, i));
      rig.mix(enc, x[i], x[i / 2], z[i], 1000 * i);
    }
    enc.close();
    for (uint32_t i = 0; i < 20; ++i) {
      CHECK(rig.values(z[i])[n - 1] == 31 * i + 17 * (i / 2) + 1000 * i);
    }
    // A block of its own is a buffer, too.
    auto large = rig.array(100 * mib);
    rig.mix(enc, nullptr, nullptr, large, 5);
    enc.close();
    CHECK(rig.values(large)[n - 1] == 5);
  }
}

TEST_CASE("memory: a device that hangs keeps an allocation for a second") {
  Rig rig(nvidia_card(0));
  Encoder enc(*rig.device, 0);
  auto z = rig.array(n * 4), other = rig.array(4);
  fake::hold(true);
  auto batch = submit(rig, enc, z, 1);
  CHECK(seconds_for(rig, other, n * 4) < 0.9); // VMA's blocks have room
  double took = seconds_for(rig, other, 100 * mib);
  CHECK(took > 0.9);
  CHECK(took < 10);
  CHECK(!batch->reached());
  fake::hold(false);
  CHECK(rig.values(z)[n - 1] == 1);
}
