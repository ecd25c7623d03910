// The cache of buffers that no array uses.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "runtime/memory_cache.h"

using namespace mlx::core::vulkan;

namespace {

constexpr size_t kib = 1 << 10, mib = 1 << 20;
std::atomic<size_t> live{0}; // bytes of all buffers
std::atomic<int> delay_us{0};

Buffer* make(size_t size, BufferKind kind = BufferKind::Mapped) {
  live += size;
  return new Buffer(size, kind);
}
void destroy(Buffer* b) {
  std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
  live -= b->size;
  delete b;
}

// A cache that frees all that it has; nothing may be left.
struct Rig {
  explicit Rig(size_t limit = 1 << 30) : cache(destroy, limit) {}
  ~Rig() {
    delay_us = 0;
    cache.stop();
    cache.free_all();
    CHECK(live == 0);
  }
  Buffer* put(size_t size, BufferKind kind = BufferKind::Mapped) {
    auto* b = make(size, kind);
    cache.put(b);
    return b;
  }
  MemoryCache cache;
};

void until(bool (*done)()) {
  for (int i = 0; i < 5000 && !done(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(done());
}

} // namespace

TEST_CASE("memory cache: a small buffer is less than twice as large") {
  Rig rig;
  auto& cache = rig.cache;
  CHECK(cache.take(BufferKind::Mapped, 16) == nullptr);
  size_t bytes = 0;
  for (size_t size = 1; size <= MemoryCache::small; size += 1 + size / 9) {
    bytes += rig.put(size)->size;
  }
  CHECK(cache.bytes() == bytes);
  CHECK(cache.take(BufferKind::HostBorn, 100) == nullptr); // only its like
  for (size_t size : {1, 2, 3, 5, 64, 100, 1000, 4096, 5000, 30000, 50000}) {
    Buffer* b = cache.take(BufferKind::Mapped, size);
    REQUIRE(b);
    CHECK(b->size >= size);
    CHECK((b->size < 2 * size || size < 4));
    CHECK(b->next_free == nullptr);
    CHECK(cache.bytes() == bytes - b->size);
    cache.put(b);
    CHECK(cache.take(BufferKind::Mapped, b->size) == b); // the very one
    cache.put(b);
  }
  CHECK(cache.take(BufferKind::Mapped, 0) == nullptr);
  CHECK(cache.take(BufferKind::Mapped, 200 * kib) == nullptr);
}

TEST_CASE("memory cache: a large buffer is the closest, and the newest") {
  Rig rig;
  auto& cache = rig.cache;
  auto *a = rig.put(300 * kib), *b = rig.put(310 * kib),
       *c = rig.put(310 * kib);
  CHECK(cache.take(BufferKind::DeviceBorn, 300 * kib) == nullptr);
  CHECK(cache.take(BufferKind::Mapped, 277 * kib) == a);
  CHECK(cache.take(BufferKind::Mapped, 277 * kib) == nullptr); // 32 KiB more
  CHECK(cache.take(BufferKind::Mapped, 301 * kib) == c);
  CHECK(cache.take(BufferKind::Mapped, 310 * kib) == b);
  CHECK(cache.bytes() == 0);
  // Small arrays get them too, where no small one is left.
  cache.put(a);
  auto* d = rig.put(70 * kib);
  CHECK(cache.take(BufferKind::Mapped, 60 * kib) == d);
  for (auto* each : {b, c, d}) {
    cache.put(each);
  }
}

TEST_CASE("memory cache: no more than its limit, and small ones less") {
  Rig rig(200 * mib);
  auto& cache = rig.cache;
  for (size_t i = 0; i < MemoryCache::most_small / MemoryCache::small; ++i) {
    rig.put(MemoryCache::small);
  }
  rig.put(MemoryCache::small); // among large ones
  CHECK(cache.bytes() == MemoryCache::most_small + MemoryCache::small);
  rig.put(100 * mib);
  CHECK(live == cache.bytes());
  rig.put(100 * mib); // is destroyed
  CHECK(live == cache.bytes());
  // The oldest large ones go first, then all small ones.
  auto before = cache.set_limit(150 * mib);
  CHECK(before == 200 * mib);
  CHECK(cache.bytes() == MemoryCache::most_small);
  cache.set_limit(60 * mib);
  CHECK(live == 0);
}

TEST_CASE("memory cache: room is made before an allocation") {
  Rig rig;
  auto& cache = rig.cache;
  rig.put(10 * mib);
  auto* b = rig.put(20 * mib);
  cache.make_room(5 * mib, 30 * mib);
  CHECK(live == 30 * mib);
  cache.make_room(5 * mib, 25 * mib);
  CHECK(live == 20 * mib);
  CHECK(cache.take(BufferKind::Mapped, 20 * mib) == b);
  cache.put(b);
  rig.put(30 * mib);
  cache.clear(false);
  rig.put(40 * mib);
  cache.make_room(5 * mib, 1 << 30); // as much as that of what was evicted
  CHECK(live == 70 * mib);
  cache.make_room(10 * kib, 1 << 30);
  CHECK(live == 70 * mib);
  cache.make_room(5 * mib, 50 * mib); // all of it
  CHECK(live == 40 * mib);
  CHECK(cache.bytes() == 40 * mib);
}

TEST_CASE("memory cache: clearing leaves a reserve that does not count") {
  Rig rig;
  auto& cache = rig.cache;
  constexpr size_t size = 32 * kib, count = 2 * MemoryCache::reserve / size;
  for (size_t i = 0; i < count; ++i) {
    rig.put(size);
  }
  rig.put(16);
  cache.clear(true);
  CHECK(live <= MemoryCache::reserve);
  CHECK(live > MemoryCache::reserve - size);
  CHECK(cache.bytes() == 0);
  Buffer* small = cache.take(BufferKind::Mapped, 16); // the largest went
  REQUIRE(small);
  cache.put(small);
  CHECK(cache.bytes() == 16);
  // What is taken of it counts again when put back.
  Buffer* b = cache.take(BufferKind::Mapped, size);
  REQUIRE(b);
  cache.put(b);
  CHECK(cache.bytes() == size);
  cache.set_limit(MemoryCache::reserve - 1); // which has no room for it
  CHECK(live == 0);
}

TEST_CASE("memory cache: what was evicted is used again for a moment") {
  Rig rig;
  auto& cache = rig.cache;
  auto *a = rig.put(10 * mib), *b = rig.put(10 * mib);
  cache.clear(false);
  CHECK(cache.take(BufferKind::Mapped, 10 * mib) == b);
  cache.put(b); // it counts again
  cache.clear(false);
  auto* c = rig.put(10 * mib);
  CHECK(cache.take(BufferKind::Mapped, 10 * mib) == c);
  CHECK(cache.take(BufferKind::Mapped, 10 * mib) == b);
  CHECK(cache.take(BufferKind::Mapped, 10 * mib) == a);
  cache.put(a);
  cache.put(b);
  cache.clear(false);
  cache.put(c);
  auto begun = std::chrono::steady_clock::now();
  until([] { return live == 10 * mib; });
  CHECK(std::chrono::steady_clock::now() - begun > MemoryCache::moment / 2);
  CHECK(cache.bytes() == 10 * mib);
  // A query frees them at once, so that what it returns is true.
  cache.clear(false);
  CHECK(live == 10 * mib);
  CHECK(cache.bytes() == 0);
  CHECK(live == 0);
  // So many clears do not wait.
  begun = std::chrono::steady_clock::now();
  for (size_t i = 0; i <= MemoryCache::most_clears; ++i) {
    rig.put(mib);
    cache.clear(false);
  }
  CHECK(
      (live == 0 ||
       std::chrono::steady_clock::now() - begun > MemoryCache::moment));
}

TEST_CASE("memory cache: threads take, put, clear and ask") {
  Rig rig(64 * mib);
  delay_us = 300;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 300; ++i) {
        size_t size = size_t(1) << (random() % 24);
        auto* b = rig.cache.take(BufferKind::Mapped, size);
        if (!b) {
          rig.cache.make_room(size, 32 * mib);
          b = make(size);
        }
        CHECK(b->size >= size);
        rig.cache.put(b);
        if (random() % 16 == 0) {
          rig.cache.clear(false);
        }
        if (random() % 32 == 0) {
          CHECK(rig.cache.bytes() <= 64 * mib);
        }
        if (random() % 64 == 0) {
          rig.cache.free_all();
        }
      }
    });
  }
  for (auto& t : threads) {
    t.join();
  }
}
