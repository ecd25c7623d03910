// What the calling thread does some thousand times per token: keeping memory,
// taking it from free lists, finding kernels.
#include <doctest/doctest.h>

#include <thread>

#include "kernels/elementwise.h"
#include "kernels/rope.h"
#include "runtime/batch.h"
#include "runtime/free_lists.h"

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

TEST_CASE("free lists: a buffer is large enough, and less than twice that") {
  FreeLists lists;
  CHECK(lists.take(BufferKind::Mapped, 16) == nullptr);
  std::vector<std::unique_ptr<Buffer>> all;
  size_t bytes = 0;
  for (size_t size = 1; size <= FreeLists::largest; size += 1 + size / 9) {
    all.push_back(std::make_unique<Buffer>(size, BufferKind::Mapped));
    CHECK(lists.put(all.back().get()));
    bytes += size;
  }
  CHECK(lists.bytes() == bytes);
  CHECK(lists.take(BufferKind::Heap, 100) == nullptr); // only its like
  for (size_t size : {1, 2, 3, 5, 64, 100, 1000, 4096, 5000, 30000, 50000}) {
    Buffer* b = lists.take(BufferKind::Mapped, size);
    REQUIRE(b);
    CHECK(b->size >= size);
    CHECK((b->size < 2 * size || size < 4));
    CHECK(b->next_free == nullptr);
    bytes -= b->size;
    CHECK(lists.bytes() == bytes);
    CHECK(lists.put(b));
    CHECK(lists.take(BufferKind::Mapped, b->size) == b); // the very one
    CHECK(lists.put(b));
    bytes += b->size;
  }
  CHECK(lists.take(BufferKind::Mapped, 0) == nullptr);
  CHECK(lists.take(BufferKind::Mapped, FreeLists::largest + 1) == nullptr);
  Buffer large(FreeLists::largest + 1, BufferKind::Mapped);
  CHECK_FALSE(lists.put(&large));
  size_t left = 0;
  for (Buffer* b = lists.take_all(); b; b = b->next_free) {
    left += b->size;
  }
  CHECK(left == bytes);
  CHECK(lists.bytes() == 0);
  CHECK(lists.take_all() == nullptr);
}

TEST_CASE("free lists: hold no more than their bound") {
  FreeLists lists;
  std::vector<std::unique_ptr<Buffer>> all;
  size_t put = 0;
  for (size_t i = 0; i < FreeLists::most / FreeLists::largest + 5; ++i) {
    all.push_back(
        std::make_unique<Buffer>(FreeLists::largest, BufferKind::Mapped));
    put += lists.put(all.back().get());
  }
  CHECK(put == FreeLists::most / FreeLists::largest);
}

TEST_CASE("free lists: a cleared cache leaves a reserve that does not count") {
  FreeLists lists;
  std::vector<std::unique_ptr<Buffer>> all;
  constexpr size_t size = 32 << 10, count = 2 * FreeLists::reserve / size;
  auto put = [&](size_t bytes) {
    all.push_back(std::make_unique<Buffer>(bytes, BufferKind::Mapped));
    REQUIRE(lists.put(all.back().get()));
  };
  for (size_t i = 0; i < count; ++i) {
    put(size);
  }
  put(16);
  size_t released = 0;
  for (Buffer* b = lists.take_all_but_reserve(); b; b = b->next_free) {
    CHECK(b->size == size); // the largest
    released += b->size;
  }
  CHECK(lists.bytes() == 0);
  CHECK(count * size + 16 - released <= FreeLists::reserve);
  CHECK(count * size + 16 - released > FreeLists::reserve - size);
  // What is taken of it counts again when put back.
  Buffer* b = lists.take(BufferKind::Mapped, size);
  REQUIRE(b);
  CHECK(lists.bytes() == 0);
  CHECK(lists.put(b));
  CHECK(lists.bytes() == size);
  CHECK(lists.take_all());
  CHECK(lists.bytes() == 0);
  CHECK(!lists.take(BufferKind::Mapped, size));
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
