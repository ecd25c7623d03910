// What the calling thread does some thousand times per token: keeping memory,
// taking it from free lists, finding kernels.
#include <doctest/doctest.h>

#include <thread>

#include "kernels/elementwise.h"
#include "kernels/rope.h"
#include "runtime/batch.h"

using namespace mlx::core::vulkan;

TEST_CASE("pins: streams and retiring threads at once") {
  // Four buffers that two streams use and donate, each batch released by
  // another thread than filled it: nothing is lost, nothing stays.
  constexpr int buffers = 4, batches = 2000;
  std::shared_ptr<int> owners[buffers];
  PinState kept[buffers];
  for (auto& owner : owners) {
    owner = std::make_shared<int>(0);
  }
  auto stream = [&](uint32_t id) {
    std::unique_ptr<Pins> last;
    for (int b = 0; b < batches; ++b) {
      auto pins = std::make_unique<Pins>(id);
      for (int use = 0; use < 8; ++use) {
        int k = (b + use * id) % buffers;
        Pins::unpin(kept[k], id);
        pins->keep(kept[k], owners[k]);
        CHECK(owners[k].use_count() > 1);
      }
      if (last && b % 7 == 0) {
        pins->hand_over(*last);
      }
      std::thread retire([done = std::move(last)]() mutable { done.reset(); });
      last = std::move(pins);
      retire.join();
    }
  };
  std::thread one(stream, 1), two(stream, 2);
  one.join();
  two.join();
  for (auto& owner : owners) {
    CHECK(owner.use_count() == 1);
  }
}

TEST_CASE("batches: their memory is used again, and nothing else") {
  BatchPool pool;
  auto owner = std::make_shared<int>(1);
  PinState buffer;
  auto batch = pool.take(3);
  batch->records.resize(1000);
  batch->accesses.resize(3000);
  batch->arguments.resize(64);
  batch->waits.resize(1);
  batch->pinned_bytes = 5;
  batch->pins.keep(buffer, owner);
  batch->pins.keep(std::make_shared<int>(2));
  const Record* records = batch->records.data();
  pool.give_back(std::move(batch));
  CHECK(owner.use_count() == 1);

  auto again = pool.take(4);
  CHECK(again->empty());
  CHECK(again->stream_id == 4);
  CHECK(again->arguments.empty());
  CHECK(again->accesses.empty());
  CHECK(again->pinned_bytes == 0);
  again->records.emplace_back();
  CHECK(again->records.data() == records);
  // It keeps for its own stream.
  again->pins.keep(buffer, owner);
  Pins::unpin(buffer, 3);
  CHECK(owner.use_count() == 2);
  Pins::unpin(buffer, 4);
  CHECK(owner.use_count() == 1);
  // A huge one is not kept.
  again->records.resize(5000);
  pool.give_back(std::move(again));
  CHECK(pool.take(1)->records.capacity() < 5000);
}

namespace {
template <typename V>
KernelHash hash_by_words(const V& v) {
  return with_values(hash_of_names(V::file, v.defines(), false), v.words());
}
template <typename V>
KernelHash hash_by_defines(const V& v) {
  return hash_of(V::file, v.defines(), false);
}
} // namespace

TEST_CASE("keys: a typed variant's hash is that of its defines") {
  RopeVariant rope{Type::bf16, false, true, true, true};
  CHECK(hash_by_words(rope) == hash_by_defines(rope));
  RopeVariant other = rope;
  other.VEC = false;
  CHECK_FALSE(hash_by_words(rope) == hash_by_words(other));
  // Values that changed places.
  RopeVariant swapped{Type::bf16, true, false, true, true};
  CHECK_FALSE(hash_by_words(rope) == hash_by_words(swapped));
  UnaryVariant exp{1, Type::f32, Type::f32, "Exp", false};
  CHECK(hash_by_words(exp) == hash_by_defines(exp));
  std::string text = "Exp"; // another address
  UnaryVariant same{1, Type::f32, Type::f32, text.c_str(), false};
  CHECK(hash_by_words(exp) == hash_by_words(same));
  UnaryVariant sin{1, Type::f32, Type::f32, "Sin", false};
  CHECK_FALSE(hash_by_words(exp) == hash_by_words(sin));
}

TEST_CASE("events: a value that nobody has promised is not signalled") {
  EventState event;
  CHECK_FALSE(event.signaled(1));
  event.signal_host(2);
  CHECK(event.signaled(1));
  CHECK(event.signaled(2));
  CHECK_FALSE(event.signaled(3));
  event.signal_on(nullptr, 3);
  CHECK(event.signaled(3));
}
