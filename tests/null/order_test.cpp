// What the recorder decides without a device: order and barriers of records,
// which batch is next, who keeps what alive.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "runtime/order.h"
#include "runtime/pending.h"

using namespace mlx::core::vulkan;
using Indices = std::vector<uint32_t>;

namespace {

// Records that read and write whole buffers, by number.
class Program {
 public:
  void add(std::vector<uint64_t> reads, uint64_t write) {
    Record& r = records.emplace_back();
    r.first_access = uint32_t(accesses.size());
    for (auto x : reads) {
      accesses.push_back({x, 0, 8, false});
    }
    accesses.push_back({write, 0, 8, true});
    r.access_count = uint32_t(accesses.size()) - r.first_access;
  }
  Order ordered(const OrderDebug& debug = {}) const {
    return order(records, accesses, debug);
  }
  std::vector<Record> records;
  std::vector<Access> accesses;
};

// Two chains and a sum: levels {0, 2}, {1, 3}, {4}.
Program chains() {
  Program p;
  p.add({}, 1);
  p.add({1}, 2);
  p.add({}, 3);
  p.add({3}, 4);
  p.add({2, 4}, 5);
  return p;
}

} // namespace

TEST_CASE("order: by level, then as the program has it") {
  auto o = chains().ordered();
  CHECK(o.records == Indices{0, 2, 1, 3, 4});
  CHECK(o.levels == Indices{0, 2, 4});
  CHECK(o.last_barrier);
  auto none = Program().ordered();
  CHECK(none.records.empty());
  CHECK(none.levels.empty());
  CHECK(none.last_barrier);
}

TEST_CASE("order: without levels each record has a barrier") {
  auto o = chains().ordered({.levels = false});
  CHECK(o.records == Indices{0, 1, 2, 3, 4});
  CHECK(o.levels == Indices{0, 1, 2, 3, 4});
}

TEST_CASE("order: any one barrier can be dropped") {
  auto drop = [](int n) { return chains().ordered({.drop_barrier = n}); };
  CHECK(drop(0).levels == Indices{0, 2, 4}); // none precedes the first level
  CHECK(drop(0).last_barrier);
  CHECK(drop(1).levels == Indices{0, 4});
  CHECK(drop(2).levels == Indices{0, 2});
  CHECK(drop(2).last_barrier);
  CHECK_FALSE(drop(3).last_barrier);
  CHECK(drop(3).levels == Indices{0, 2, 4});
  CHECK(drop(4).last_barrier);
  CHECK_FALSE(Program().ordered({.drop_barrier = 0}).last_barrier);
}

TEST_CASE("order: a shuffle stays within its level") {
  Program p;
  for (uint64_t level = 0; level < 4; ++level) {
    for (uint64_t i = 0; i < 5; ++i) {
      p.add({level}, level < 3 && i == 4 ? level + 1 : 100 + 5 * level + i);
    }
  }
  auto plain = p.ordered();
  std::set<Indices> seen;
  for (uint64_t seed = 1; seed < 30; ++seed) {
    auto o = p.ordered({.shuffle = seed});
    CHECK(o.levels == plain.levels);
    seen.insert(o.records);
    for (size_t l = 0; l < o.levels.size(); ++l) {
      auto begin = o.records.begin() + o.levels[l];
      auto end = l + 1 < o.levels.size() ? o.records.begin() + o.levels[l + 1]
                                         : o.records.end();
      std::sort(begin, end);
    }
    CHECK(o.records == plain.records);
  }
  CHECK(seen.size() > 20);
  // A dropped barrier lets what it kept apart change places.
  bool mixed = false;
  for (uint64_t seed = 1; seed < 30; ++seed) {
    auto o = chains().ordered({.shuffle = seed, .drop_barrier = 1});
    CHECK(o.records[4] == 4);
    mixed |= o.records[0] == 1 || o.records[0] == 3;
  }
  CHECK(mixed);
}

namespace {

std::unique_ptr<Batch> batch(
    uint32_t stream,
    std::shared_ptr<EventState> event = nullptr) {
  auto b = std::make_unique<Batch>(stream);
  b->prepared = true;
  if (event) {
    b->waits.push_back({std::move(event), 1, nullptr});
  }
  return b;
}

} // namespace

TEST_CASE("pending: batches leave as they came, unless they have to wait") {
  PendingQueue q;
  CHECK(q.take() == nullptr);
  auto event = std::make_shared<EventState>();
  q.push(batch(2, event)); // is held, and its successor with it
  q.push(batch(2));
  q.push(batch(1));
  q.push(batch(3));
  q.push(batch(1));
  for (uint32_t stream : {1u, 3u, 1u}) {
    auto next = q.take();
    REQUIRE(next);
    CHECK(next->stream_id == stream);
  }
  CHECK(q.take() == nullptr);
  q.push(batch(1));
  event->signal_host(1);
  // The oldest first.
  for (size_t waits : {1u, 0u}) {
    auto next = q.take();
    REQUIRE(next);
    CHECK(next->stream_id == 2);
    CHECK(next->waits.size() == waits);
  }
  CHECK(q.take()->stream_id == 1);
  CHECK(q.take() == nullptr);
}

TEST_CASE("pending: all can be taken, in order") {
  PendingQueue q;
  auto never = std::make_shared<EventState>();
  q.push(batch(5, never));
  q.push(batch(4));
  q.push(batch(5));
  for (uint32_t stream : {5u, 4u, 5u}) {
    CHECK(q.take(true)->stream_id == stream);
  }
  CHECK(q.take(true) == nullptr);
}

TEST_CASE("pins: the newest batch of a stream holds the only pin") {
  auto owner = std::make_shared<int>(1);
  PinState buffer;
  auto first = std::make_unique<Pins>(1), second = std::make_unique<Pins>(1);
  CHECK(first->empty());
  first->keep(buffer, owner);
  first->keep(buffer, owner);
  CHECK_FALSE(first->empty());
  CHECK(owner.use_count() == 2);
  second->keep(buffer, owner);
  CHECK(owner.use_count() == 2);
  first.reset(); // the later batch keeps it
  CHECK(owner.use_count() == 2);
  Pins::unpin(buffer, 2); // not that stream's
  CHECK(owner.use_count() == 2);
  Pins::unpin(buffer, 1);
  CHECK(owner.use_count() == 1);
  second->keep(buffer, owner);
  CHECK(owner.use_count() == 2);
  second.reset();
  CHECK(owner.use_count() == 1);
}

TEST_CASE("pins: a second stream forbids donation") {
  auto owner = std::make_shared<int>(1);
  PinState buffer;
  Pins one(1);
  {
    Pins two(2);
    one.keep(buffer, owner);
    two.keep(buffer, owner);
    CHECK(owner.use_count() == 3);
    Pins::unpin(buffer, 1);
    CHECK(owner.use_count() == 2);
  }
  CHECK(owner.use_count() == 1);
}

TEST_CASE("pins: a batch frees what it alone owns") {
  auto owner = std::make_shared<int>(1);
  PinState buffer, other;
  Pins earlier(1), later(1);
  auto any = [](const PinState&) { return true; };
  earlier.keep(buffer, owner);
  CHECK_FALSE(earlier.frees(any));
  owner.reset();
  CHECK(earlier.frees(any));
  CHECK_FALSE(earlier.frees([&](auto& pin) { return &pin == &other; }));
  later.keep(buffer, std::make_shared<int>(2)); // moves the pin
  CHECK_FALSE(earlier.frees(any));
  CHECK(later.frees(any));
}

TEST_CASE("pins: the pins of a batch that never ran move to the last batch") {
  auto owner = std::make_shared<int>(1), object = std::make_shared<int>(2);
  PinState buffer;
  Pins earlier(1);
  {
    Pins failed(1);
    failed.keep(buffer, owner);
    failed.keep(object);
    failed.hand_over(earlier);
  }
  CHECK(owner.use_count() == 2);
  CHECK(object.use_count() == 2);
  Pins::unpin(buffer, 1);
  CHECK(owner.use_count() == 1);
  earlier.release();
  CHECK(object.use_count() == 1);
}
