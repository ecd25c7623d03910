// After how many operations a batch is closed.
#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "runtime/batch_policy.h"

using namespace mlx::core::vulkan;

namespace {

constexpr uint64_t kib = 1024, mib = kib * kib;

// The batches of an eval of so many operations that pin `bytes` each.
// `known`: its caller waits. `no_hurry`: by how many are encoded.
template <typename F>
std::vector<uint32_t> batches(
    BatchPolicy policy,
    uint32_t all,
    uint64_t bytes,
    bool known,
    F no_hurry) {
  std::vector<uint32_t> lengths;
  policy.begin(known ? all : BatchPolicy::unknown);
  uint32_t length = 0;
  for (uint32_t i = 1; i <= all; ++i) {
    length++;
    if (length >= policy.look_at() &&
        policy.enough(length, length * bytes, [&] { return no_hurry(i); })) {
      policy.closed(length);
      lengths.push_back(length);
      length = 0;
    }
  }
  lengths.push_back(length);
  CHECK(std::accumulate(lengths.begin(), lengths.end(), 0u) == all);
  return lengths;
}

auto never = [](uint32_t) { return false; };
auto always = [](uint32_t) { return true; };
using Lengths = std::vector<uint32_t>;

} // namespace

TEST_CASE("batches grow while the device is idle") {
  BatchPolicy policy(BatchPolicy::usual);
  CHECK(
      batches(policy, 2000, 8 * kib, false, never) ==
      Lengths{25, 50, 100, 200, 400, 400, 400, 400, 25});
  CHECK(batches(policy, 20, 8 * kib, false, never) == Lengths{20});
}

TEST_CASE("batches are long while the device has one to begin") {
  BatchPolicy policy(BatchPolicy::usual);
  CHECK(
      batches(policy, 1000, 8 * kib, false, always) == Lengths{400, 400, 200});
  // Looked at now and then, so that it gets the rest when it runs out.
  auto until_200 = [](uint32_t i) { return i < 200; };
  auto lengths = batches(policy, 1000, 8 * kib, false, until_200);
  CHECK(lengths.front() >= 200);
  CHECK(lengths.front() <= 200 + BatchPolicy::first);
  CHECK(lengths[1] == 2 * BatchPolicy::first);
  CHECK(lengths[2] == 4 * BatchPolicy::first);
}

TEST_CASE("batches that pin much stay short, whatever the device does") {
  BatchPolicy policy(BatchPolicy::usual);
  for (uint32_t n : batches(policy, 2000, mib, false, always)) {
    CHECK(n <= BatchPolicy::usual);
  }
  CHECK(
      batches(policy, 600, mib, false, never) ==
      Lengths{25, 50, 100, 100, 100, 100, 100, 25});
}

TEST_CASE("an eval that is waited for ends with short batches") {
  BatchPolicy policy(BatchPolicy::usual);
  auto lengths = batches(policy, 2000, 8 * kib, true, never);
  CHECK(lengths.front() == BatchPolicy::first);
  CHECK(lengths.back() <= 2 * BatchPolicy::first);
  CHECK(lengths[lengths.size() - 2] <= 4 * BatchPolicy::first);
  CHECK(lengths.size() <= 13);
  auto busy = batches(policy, 2000, 8 * kib, true, always);
  CHECK(busy.front() == BatchPolicy::longest);
  CHECK(busy.back() <= 2 * BatchPolicy::first);
}

TEST_CASE("where there are seams batches end at them") {
  // A layer of 31 operations has seams before its 1st and its 22nd; five come
  // before the first layer.
  auto at_seam = [](uint32_t i) {
    return i >= 5 && ((i - 5) % 31 == 0 || (i - 5) % 31 == 21);
  };
  for (bool known : {false, true}) {
    for (uint64_t bytes : {8 * kib, mib}) {
      for (uint32_t busy : {0u, 3u, 7u, 1000u}) {
        BatchPolicy policy(BatchPolicy::usual);
        policy.begin(known ? 900 : BatchPolicy::unknown);
        uint32_t length = 0, closed = 0;
        auto close = [&] {
          policy.closed(length);
          CHECK(length <= BatchPolicy::longest + 31);
          closed++;
          length = 0;
        };
        for (uint32_t i = 0; i < 900; ++i) {
          if (at_seam(i) && policy.seam(length)) {
            close();
            CHECK_FALSE(policy.seam(length));
          }
          length++;
          bool full = length >= policy.look_at() &&
              policy.enough(
                  length, length * bytes, [&] { return i % 8 < busy; });
          CHECK_FALSE(full);
        }
        CHECK(closed >= 2);
      }
    }
  }
}

TEST_CASE("a seam that does not come is not waited for") {
  BatchPolicy policy(BatchPolicy::usual);
  CHECK_FALSE(policy.seam(0));
  auto until_closed = [&] {
    uint32_t length = 1;
    while (length < policy.look_at() ||
           !policy.enough(length, 0, [] { return false; })) {
      length++;
    }
    policy.closed(length);
    return length;
  };
  CHECK(until_closed() == BatchPolicy::patience);
  // Nor are others where a batch had none.
  CHECK(until_closed() == 2 * BatchPolicy::first);
  CHECK(until_closed() == 4 * BatchPolicy::first);
}

TEST_CASE("a number that was asked for is taken as it is") {
  for (uint32_t most : {1u, 7u, 400u, 1000000u}) {
    BatchPolicy policy(most);
    uint32_t expected = std::min(most, 1000u);
    for (bool known : {false, true}) {
      auto lengths = batches(policy, 1000, mib, known, always);
      CHECK(lengths.front() == expected);
      CHECK(lengths.size() == 1000 / expected + (most <= 1000));
    }
  }
}
