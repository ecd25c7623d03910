// Memory on the fake device: caches that are not coherent, full heaps, budgets.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "null/memory_rig.h"
#include "null/text.h"
#include "runtime/device.h"
#include "runtime/encoder.h"

using namespace mlx::core::vulkan;

TEST_CASE("memory: host caches that are apart are flushed and invalidated") {
  for (auto& settings : {lunar_lake(), card()}) {
    Rig rig(settings);
    CHECK(rig.memory().types().unified == !settings.discrete);
    CHECK(rig.memory().types().host_coherent == settings.discrete);
    auto x = rig.numbers(n, 3), y = rig.numbers(n, 4);
    auto z = rig.array(n * 4);
    Encoder enc(*rig.device, 0);
    rig.mix(enc, x, y, z, 5);
    enc.close();
    CHECK(rig.values(z)[n - 1] == 3 * 31 + 4 * 17 + 5);
    // Back and forth: what the host changed counts.
    rig.values(z)[0] = 1000;
    rig.mix(enc, z, nullptr, x, 0);
    enc.close();
    CHECK(rig.values(x)[0] == 31000);
    CHECK(rig.values(x)[1] == (3 * 31 + 4 * 17 + 5) * 31);
    auto s = fake::statistics();
    CHECK(s.flushes > 0);
    CHECK(s.invalidations > 0);
    // Unified memory of that kind needs no copies.
    CHECK((s.copies == 0) == !settings.discrete);
  }
}

TEST_CASE("memory: a part is written, and the rest stays") {
  for (auto& settings : {lunar_lake(), card(), apu()}) {
    Rig rig(settings);
    auto x = rig.numbers(n, 3), y = rig.numbers(n, 4);
    Encoder enc(*rig.device, 0);
    enc.bring_to_device(*x);
    Binding in[] = {{y.get(), 0, 0, y->size}, {}};
    Binding out[] = {{x.get(), 0, 0, x->size}}; // as if it were all
    fake::MixParams half{n / 2, 5};
    auto& mix = fake::mix(rig.device->pipelines());
    enc.dispatch(mix, in, out, &half, sizeof half, {1, 1, 1});
    enc.keep(x);
    enc.keep(y);
    enc.close();
    CHECK(rig.values(x)[n / 2 - 1] == 4 * 31 + 5);
    CHECK(rig.values(x)[n / 2] == 3);
    CHECK(rig.values(x)[n - 1] == 3);
  }
}

TEST_CASE("memory: what the host's cache holds is not written back later") {
  // Host writes, then the device overwrites all of it, in the same array and
  // in one that has got its memory.
  for (auto& settings : {lunar_lake(), card()}) {
    Rig rig(settings);
    Encoder enc(*rig.device, 0);
    auto x = rig.numbers(n, 1), z = rig.numbers(n, 2);
    auto before = fake::statistics().flushes;
    rig.mix(enc, x, nullptr, z, 7); // z is covered, its old values are not used
    enc.close()->wait_retired();
    auto flushes = fake::statistics().flushes - before;
    CHECK(flushes == (settings.discrete ? 1 : 2)); // x, and z's only memory
    CHECK(rig.values(z)[9] == 38);
    before = fake::statistics().flushes;
    x.reset(); // before its memory goes to somebody else
    CHECK(fake::statistics().flushes == before + 1);
    // Used again without having been freed.
    CHECK(rig.memory().recycle(*z));
    before = fake::statistics().flushes;
    rig.mix(enc, nullptr, nullptr, z, 9);
    enc.close()->wait_retired();
    CHECK(fake::statistics().flushes == before + !settings.discrete);
    CHECK(rig.values(z)[9] == 9);
  }
}

TEST_CASE("memory: a recorded download is there once its batch is done") {
  for (auto& settings : {lunar_lake(), card()}) {
    Rig rig(settings);
    Encoder enc(*rig.device, 0);
    auto z = rig.numbers(n, 2);
    rig.mix(enc, nullptr, nullptr, z, 7);
    enc.copy_to_host(*z);
    fake::hold(true);
    auto done = enc.close();
    // As a CPU stream asks, behind a fence: before the device has run.
    rig.memory().expect_download(*z);
    auto* p = rig.values(z);
    rig.memory().end_expecting();
    fake::hold(false);
    done->wait();
    CHECK(p[0] == 7);
    CHECK(p[n - 1] == 7);
  }
}

TEST_CASE("memory: a download in another stream's batch is not waited for") {
  for (auto& settings : {lunar_lake(), card()}) {
    Rig rig(settings);
    Encoder one(*rig.device, 0), two(*rig.device, 1);
    auto z = rig.numbers(n, 2), w = rig.array(n * 4);
    rig.mix(one, nullptr, nullptr, z, 7);
    one.close();
    // A CPU stream's reader behind a fence of stream two, which is held.
    EventState go;
    auto share = std::shared_ptr<EventState>(&go, [](auto*) {});
    two.wait({share, 1, nullptr});
    two.copy_to_host(*z);
    auto held = two.close();
    rig.memory().expect_download(*z);
    rig.values(z);
    rig.memory().end_expecting();
    CHECK(!held->submitted());
    // Who reads the host side or the device's without that fence.
    CHECK(rig.memory().valid_host_pointer(*z) == nullptr);
    rig.mix(one, z, nullptr, w, 0);
    one.close();
    CHECK(rig.values(z)[n - 1] == 7);
    CHECK(rig.values(w)[n - 1] == 7 * 31);
    CHECK(!held->submitted());
    go.signal_host(1);
    held->wait();
    CHECK(rig.values(z)[n - 1] == 7);
  }
}

TEST_CASE("memory: a download counts for other streams once it is submitted") {
  for (auto& settings : {lunar_lake(), card()}) {
    for (bool fails : {false, true}) {
      CAPTURE(fails);
      Rig rig(settings);
      Encoder one(*rig.device, 0), two(*rig.device, 1), three(*rig.device, 2);
      auto z = rig.numbers(n, 2);
      rig.mix(one, nullptr, nullptr, z, 7);
      one.close();
      auto event = std::make_shared<EventState>();
      two.wait({event, 1, nullptr});
      two.copy_to_host(*z);
      auto held = two.close();
      if (fails) {
        event->signal_host(1, "no");
        held->wait();
      }
      three.copy_to_host(*z);
      fake::hold(true);
      auto done = three.close();
      rig.memory().expect_download(*z);
      auto* p = rig.values(z);
      rig.memory().end_expecting();
      fake::hold(false);
      done->wait();
      CHECK(p[0] == 7);
      CHECK(p[n - 1] == 7);
      event->signal_host(1);
      held->wait();
    }
  }
}

TEST_CASE("memory: a cache that is not yet invalidated is not shown back") {
  // The host has asked for what the device is writing, and has seen nothing of
  // it, when another stream reads it: a CPU stream's input with a GPU reader.
  for (auto& settings : {lunar_lake(), card()}) {
    for (bool recorded : {true, false}) {
      CAPTURE(recorded);
      Rig rig(settings);
      Encoder one(*rig.device, 0), two(*rig.device, 1);
      auto z = rig.numbers(n, 2), w = rig.array(n * 4);
      rig.mix(one, nullptr, nullptr, z, 7);
      if (recorded) {
        one.copy_to_host(*z);
      }
      fake::hold(true);
      auto z_done = one.close();
      two.wait({nullptr, 0, z_done});
      if (recorded) {
        rig.memory().expect_download(*z);
        rig.values(z);
        rig.memory().end_expecting();
      } else {
        rig.memory().set_cpu_writer(*z, {}); // fetched; waits for nothing
      }
      auto submitted = [](const Completion& batch) {
        while (!batch.submitted()) {
          std::this_thread::yield();
        }
      };
      rig.mix(two, nullptr, nullptr, w, 0);
      submitted(*two.close()); // and what was pushed before it
      auto before = fake::statistics().flushes;
      rig.mix(two, z, nullptr, w, 0);
      submitted(*two.close());
      // The device may have written by now, or not.
      CHECK(fake::statistics().flushes == before);
      fake::hold(false);
      CHECK(rig.values(w)[n - 1] == 7 * 31);
      CHECK(rig.values(z)[n - 1] == 7);
      // What the host writes after that is shown.
      rig.values(z)[0] = 3;
      rig.mix(two, z, nullptr, w, 0);
      two.close();
      CHECK(rig.values(w)[0] == 3 * 31);
    }
  }
}

TEST_CASE("memory: random programs of host and device, caches apart") {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    bool small = seed % 3 == 0;
    Rig rig(seed % 2 ? lunar_lake(seed) : card(seed));
    Encoder enc(*rig.device, 0);
    std::mt19937 random(seed);
    uint32_t size = small ? 50 : n;
    std::vector<Rig::Array> arrays;
    std::vector<uint32_t> want;
    for (int i = 0; i < 6; ++i) {
      arrays.push_back(rig.numbers(size, i));
      want.push_back(i);
    }
    for (int step = 0; step < 200; ++step) {
      size_t x = random() % 6, y = random() % 6, z = random() % 6;
      if (random() % 4 == 0) {
        // Nobody may read what the host is about to write.
        if (auto done = enc.close()) {
          done->wait();
        }
        REQUIRE(rig.values(arrays[x])[size - 1] == want[x]);
        std::fill_n(rig.values(arrays[x]), size, uint32_t(step));
        want[x] = step;
      } else {
        rig.mix(enc, arrays[x], arrays[y], arrays[z], step);
        want[z] = want[x] * 31 + want[y] * 17 + step;
      }
    }
    if (auto done = enc.close()) {
      done->wait(); // small arrays have one side, for which nobody waits
    }
    for (size_t i = 0; i < 6; ++i) {
      CHECK(rig.values(arrays[i])[0] == want[i]);
    }
  }
}

TEST_CASE("memory: an APU's weights are not held twice") {
  Rig rig(apu());
  CHECK_FALSE(rig.memory().types().unified);
  CHECK(rig.memory().types().one_memory);
  Encoder enc(*rig.device, 0);
  auto z = rig.array(n * 4);
  auto host = [] { return fake::statistics().live_buffers; };
  auto before = host();
  auto weights = rig.numbers(n, 3), viewed = rig.numbers(n, 5);
  rig.values(viewed); // somebody may still read there
  CHECK(host() == before + 2);
  rig.mix(enc, weights, viewed, z, 1);
  enc.close()->wait_retired();
  CHECK(host() == before + 3); // one side of `weights`, both of `viewed`
  CHECK(rig.memory().valid_host_pointer(*weights) == nullptr);
  CHECK(rig.memory().valid_host_pointer(*viewed) != nullptr);
  // Still right for the device and for the host, by a new host side.
  rig.mix(enc, weights, viewed, z, 2);
  enc.close();
  CHECK(rig.values(z)[8] == 3 * 31 + 5 * 17 + 2);
  CHECK(rig.values(weights)[8] == 3);
  // Uploads of two streams: the host side stays until both are done.
  auto shared = rig.numbers(n, 6);
  Encoder other(*rig.device, 1);
  auto z2 = rig.array(n * 4);
  rig.mix(enc, shared, nullptr, z, 1);
  rig.mix(other, shared, nullptr, z2, 2);
  enc.close()->wait_retired();
  CHECK(rig.memory().valid_host_pointer(*weights) != nullptr);
  other.close()->wait_retired();
  CHECK(rig.values(z)[0] == 6 * 31 + 1);
  CHECK(rig.values(z2)[0] == 6 * 31 + 2);
  CHECK(rig.values(shared)[0] == 6);
  // What the backend does not own: its owner may still have the pointer.
  auto foreign = rig.array(n * 4, Placement::Host);
  auto* pointer = rig.values(foreign);
  std::fill_n(pointer, n, 8);
  rig.memory().keep_host_side(*foreign);
  rig.mix(enc, foreign, nullptr, z, 1);
  enc.close()->wait_retired();
  CHECK(rig.values(foreign) == pointer);
  CHECK(pointer[0] == 8);
}

TEST_CASE("memory: a failed upload loses nothing") {
  auto s = apu();
  s.fail_submit = 0;
  Rig rig(s);
  Encoder enc(*rig.device, 0);
  auto x = rig.numbers(n, 3), z = rig.array(n * 4);
  rig.mix(enc, x, nullptr, z, 1);
  auto failed = enc.close();
  failed->wait_retired();
  CHECK_FALSE(failed->error().empty());
  rig.mix(enc, x, nullptr, z, 1);
  enc.close();
  CHECK(rig.values(z)[0] == 94);
}

TEST_CASE("memory: a failed copy to the host is made again") {
  auto s = card();
  s.fail_submit = 1;
  Rig rig(s);
  Encoder enc(*rig.device, 0);
  auto x = rig.numbers(n, 3), z = rig.array(n * 4);
  rig.mix(enc, x, nullptr, z, 1);
  enc.close()->wait_retired();
  CHECK_THROWS(rig.values(z));
  CHECK(rig.values(z)[0] == 94);
}

TEST_CASE("memory: where one heap is full, the next one serves") {
  constexpr size_t size = 4 * mib;
  for (bool budget : {false, true}) {
    auto s = apu(64 * mib, 32 * mib);
    if (budget) {
      s.budgets = {60 * mib, 28 * mib};
    }
    Rig rig(s);
    std::vector<Rig::Array> all;
    auto text = message([&] {
      for (int i = 0; i < 100; ++i) {
        all.push_back(rig.array(size - 1024));
      }
    });
    auto used = fake::statistics();
    CHECK(used.heap_memory[1] > 20 * mib);
    CHECK(used.heap_memory[0] > 40 * mib);
    CHECK(all.size() >= 16);
    CHECK(has(text, "The device's heap of 32 MiB"));
    CHECK(has(text, "The host's heap of 64 MiB"));
    CHECK(has(text, "driver allows 28 MiB") == budget);
    CHECK(has(text, "mx.set_cache_limit"));
    // They are as good as the others.
    Encoder enc(*rig.device, 0);
    rig.mix(enc, nullptr, nullptr, all.back(), 7);
    enc.close()->wait();
    all.pop_back();
    all.push_back(rig.array(size - 1024));
  }
}

TEST_CASE("memory: blocks of the best type serve without the driver") {
  constexpr size_t size = 512 << 10;
  Rig rig(apu(64 * mib, 32 * mib));
  auto& memory = rig.device->memory();
  CHECK(memory.allocate_in_blocks(size, Placement::Device) == nullptr);
  std::vector<Rig::Array> all;
  while (fake::statistics().heap_memory[0] < 40 * mib) {
    all.push_back(rig.array(size - 1024));
  }
  uint64_t used = fake::statistics().heap_memory[1];
  all.pop_back(); // in the other heap
  CHECK(memory.allocate_in_blocks(size - 1024, Placement::Device) == nullptr);
  all.erase(all.begin());
  auto* b = memory.allocate_in_blocks(size - 1024, Placement::Device);
  REQUIRE(b);
  CHECK(fake::statistics().heap_memory[1] == used);
  memory.release(b);
}

TEST_CASE("memory: types that are not for buffers are left out") {
  Rig rig(battlemage());
  CHECK(rig.device->memory().types().device == std::vector{1});
  auto a = rig.array(1 * mib);
  CHECK(fake::statistics().heap_memory[0] >= 4 * mib);
  Encoder enc(*rig.device, 0);
  rig.mix(enc, nullptr, nullptr, a, 7);
  enc.close()->wait();
}

TEST_CASE("memory: no space is left between arrays") {
  // VMA would look at each for every other array.
  Rig rig(apu());
  std::vector<Rig::Array> all;
  for (size_t size : {4, 240, 241, 4096, 100'000}) {
    all.push_back(rig.array(size));
  }
  CHECK(fake::statistics().uneven_buffers == 0);
}

TEST_CASE("memory: a card's arrays take its own memory first") {
  auto s = card();
  s.heaps[0].size = 32 * mib;
  Rig rig(s);
  std::vector<Rig::Array> all;
  auto text = message([&] {
    for (int i = 0; i < 100; ++i) {
      all.push_back(rig.array(4 * mib));
    }
  });
  CHECK(all.size() > 60); // and nearly all of the host's 256 MiB
  for (size_t i = 0; i < all.size(); ++i) {
    CHECK(rig.memory().in_place(*all[i]) == (i >= 7));
  }
  CHECK(has(text, "The host's heap of 256 MiB"));
}

namespace {
// What MLX's cache is to the allocator.
std::vector<std::shared_ptr<Buffer>> cache;
int trims;
void trim() {
  ++trims;
  cache.clear();
}
} // namespace

TEST_CASE("memory: what is cached goes before an allocation fails") {
  auto s = apu(16 * mib, 64 * mib);
  Rig rig(s);
  trims = 0;
  set_trim_hook(trim);
  for (int i = 0; i < 25; ++i) {
    cache.push_back(rig.array(4 * mib));
  }
  CHECK(trims == 1);
  CHECK(cache.size() < 25);
  // Also for the side that the device or the host needs.
  for (auto placement : {Placement::Host, Placement::Device}) {
    cache.clear();
    trims = 0;
    auto x = rig.array(4 * mib, placement);
    if (placement == Placement::Host) {
      rig.values(x)[0] = 3;
    } else {
      Encoder enc(*rig.device, 0);
      rig.mix(enc, nullptr, nullptr, x, 1);
    }
    while (trims == 0) {
      auto more = rig.array(4 * mib);
      if (trims == 0) {
        cache.push_back(more);
      }
    }
    trims = 0;
    std::vector<Rig::Array> held; // room for none
    CHECK(message([&] {
            while (true) {
              held.push_back(rig.array(4 * mib));
            }
          }).size() > 0);
    cache.swap(held);
    trims = 0;
    if (placement == Placement::Host) {
      Encoder enc(*rig.device, 0);
      rig.mix(enc, nullptr, nullptr, x, 1);
    }
    CHECK(rig.values(x)[0] == 1);
    CHECK(trims == 1);
  }
  cache.clear();
}

TEST_CASE("memory: batches on the queue are retired before giving up") {
  auto s = apu(16 * mib, 64 * mib);
  s.max_delay_us = 5000;
  Rig rig(s);
  Encoder enc(*rig.device, 0);
  // Each is kept by its batch alone.
  for (int i = 0; i < 60; ++i) {
    auto a = rig.array(4 * mib);
    rig.mix(enc, nullptr, nullptr, a, i);
    enc.close();
  }
  enc.close()->wait_retired();
  CHECK(fake::statistics().live_buffers < 60);
}

TEST_CASE("memory: the budget comes first, then the heap") {
  auto s = apu(32 * mib, 128 * mib);
  s.budgets = {32 * mib, 24 * mib}; // others use the device's heap
  Rig rig(s);
  trims = 0;
  set_trim_hook(trim);
  std::vector<Rig::Array> all;
  while (fake::statistics().heap_memory[0] < 4 * mib) {
    all.push_back(rig.array(4 * mib));
  }
  CHECK(all.size() >= 4);
  CHECK(fake::statistics().heap_memory[1] <= 24 * mib);
  CHECK(trims == 0);
  // Beyond it the other heap, then whatever there is.
  for (int i = 0; i < 20; ++i) {
    all.push_back(rig.array(4 * mib));
  }
  auto used = fake::statistics();
  CHECK(used.heap_memory[0] > 20 * mib);
  CHECK(used.heap_memory[1] > 40 * mib);
  CHECK(trims > 0);
  CHECK(message([&] {
          for (int i = 0; i < 100; ++i) {
            all.push_back(rig.array(4 * mib));
          }
        }).size() > 0);
  CHECK(fake::statistics().heap_memory[1] <= 128 * mib);
}

TEST_CASE("memory: the budget is sampled, not asked for each array") {
  auto s = apu();
  s.budgets = {100 * mib, 80 * mib};
  Rig rig(s);
  CHECK(rig.memory().budget() == 180 * mib);
  auto before = fake::statistics().budget_queries;
  for (int i = 0; i < 1000; ++i) {
    rig.memory().budget();
  }
  CHECK(fake::statistics().budget_queries < before + 100);
  fake::settings().budgets = {50 * mib, 80 * mib};
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  CHECK(rig.memory().budget() == 130 * mib);
  // A driver that promises more than there is.
  fake::settings().budgets = {1000 * mib, 1000 * mib};
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  CHECK(rig.memory().budget() == 512 * mib);
}

TEST_CASE("memory: an array beyond the largest buffer is told how to split") {
  auto s = apu();
  s.max_allocation = 16 * mib;
  Rig rig(s);
  trims = 0;
  set_trim_hook(trim);
  for (auto placement : {Placement::Device, Placement::Host}) {
    auto text = message([&] { rig.array(16 * mib, placement); });
    CHECK(has(text, "16777216 bytes"));
    CHECK(has(text, "largest single array is 16 MiB"));
    CHECK(has(text, "mx.split()"));
    CHECK(has(text, "doctor"));
  }
  CHECK(trims == 0); // it would not help
  CHECK(message([&] { rig.array(16 * mib - tail_padding); }).empty());
}

TEST_CASE("memory: a largest buffer of no whole units is used to its end") {
  auto s = apu();
  s.max_allocation = 16 * mib - 4; // RADV: 2^32 - 4
  Rig rig(s);
  CHECK(message([&] { rig.array(16 * mib - 4 - tail_padding); }).empty());
  CHECK(message([&] { rig.array(16 * mib - 3 - tail_padding); }).size() > 0);
}
