#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime/hazards.h"

using namespace mlx::core::vulkan;

namespace {

Access read(uint64_t base, uint64_t begin, uint64_t end) {
  return {base, begin, end, false};
}
Access write(uint64_t base, uint64_t begin, uint64_t end) {
  return {base, begin, end, true};
}

bool conflict(const Access& a, const Access& b) {
  bool empty = a.begin >= a.end || b.begin >= b.end;
  return !empty && a.base == b.base && a.begin < b.end && b.begin < a.end &&
      (a.write || b.write);
}

bool conflict(const std::vector<Access>& a, const std::vector<Access>& b) {
  return std::any_of(a.begin(), a.end(), [&](auto& x) {
    return std::any_of(
        b.begin(), b.end(), [&](auto& y) { return conflict(x, y); });
  });
}

uint32_t second_level(const Access& first, const Access& second) {
  Leveler l;
  CHECK(l.add({&first, 1}) == 0);
  return l.add({&second, 1});
}

} // namespace

TEST_CASE("hazards: truth table") {
  // read after read, read after write, write after read, write after write
  CHECK(second_level(read(1, 0, 8), read(1, 0, 8)) == 0);
  CHECK(second_level(write(1, 0, 8), read(1, 0, 8)) == 1);
  CHECK(second_level(read(1, 0, 8), write(1, 0, 8)) == 1);
  CHECK(second_level(write(1, 0, 8), write(1, 0, 8)) == 1);
  // neighbours, one byte of overlap, inside, around
  CHECK(second_level(write(1, 0, 8), write(1, 8, 16)) == 0);
  CHECK(second_level(write(1, 8, 16), read(1, 0, 8)) == 0);
  CHECK(second_level(write(1, 0, 9), read(1, 8, 16)) == 1);
  CHECK(second_level(write(1, 0, 16), read(1, 4, 5)) == 1);
  CHECK(second_level(read(1, 4, 5), write(1, 0, 16)) == 1);
  // other allocations, empty ranges
  CHECK(second_level(write(1, 0, 8), write(2, 0, 8)) == 0);
  CHECK(second_level(write(1, 0, 8), read(1, 4, 4)) == 0);
  CHECK(second_level(write(1, 4, 4), read(1, 0, 8)) == 0);
}

TEST_CASE("hazards: a record does not conflict with itself") {
  Leveler l;
  std::vector<Access> in_place = {read(1, 0, 8), write(1, 0, 8)};
  CHECK(l.add(in_place) == 0);
  CHECK(l.add(in_place) == 1);
  CHECK(l.add(in_place) == 2);
}

TEST_CASE("hazards: chains and fans") {
  Leveler l;
  auto add = [&](std::vector<Access> a) { return l.add(a); };
  CHECK(add({write(1, 0, 8)}) == 0);
  CHECK(add({read(1, 0, 8), write(2, 0, 8)}) == 1);
  CHECK(add({read(1, 0, 8), write(3, 0, 8)}) == 1);
  CHECK(add({read(2, 0, 8), read(3, 0, 8), write(4, 0, 8)}) == 2);
  // A write must wait for the readers, not only for the last writer.
  CHECK(add({write(1, 0, 8)}) == 2);
  CHECK(add({read(1, 0, 8)}) == 3);
  CHECK(Leveler().add(std::vector<Access>{read(4, 0, 8)}) == 0);
}

TEST_CASE("hazards: a read hides neither the write below it nor its reader") {
  Leveler l;
  auto add = [&](std::vector<Access> a) { return l.add(a); };
  CHECK(add({write(1, 0, 100)}) == 0);
  CHECK(add({read(1, 0, 50)}) == 1);
  CHECK(add({read(1, 25, 75)}) == 1);
  CHECK(add({write(1, 0, 10)}) == 2);
  CHECK(add({write(1, 90, 100)}) == 1);
  CHECK(add({read(1, 60, 80)}) == 1);
}

// Compares with all pairs. Levels must separate conflicts; where the leveler
// did not merge spans, they are also the least possible.
void compare_random(int seed, int bases, int extent, int records, bool exact) {
  std::mt19937 random(seed);
  auto pick = [&](int n) { return int(random() % n); };
  Leveler l;
  std::vector<std::vector<Access>> all;
  std::vector<uint32_t> levels;
  bool separated = true, least_possible = true;
  for (int i = 0; i < records; ++i) {
    std::vector<Access> a;
    for (int k = 1 + pick(4); k > 0; --k) {
      uint64_t begin = pick(extent), end = begin + pick(extent / 2 + 1);
      a.push_back({uint64_t(pick(bases)), begin, end, pick(3) == 0});
    }
    uint32_t least = 0;
    uint32_t level = l.add(a);
    for (size_t j = 0; j < all.size(); ++j) {
      if (conflict(all[j], a)) {
        separated &= levels[j] < level;
        least = std::max(least, levels[j] + 1);
      }
    }
    least_possible &= level == least;
    all.push_back(a);
    levels.push_back(level);
  }
  CAPTURE(seed);
  CHECK(separated);
  CHECK((least_possible || !exact));
}

TEST_CASE("hazards: random records against all pairs") {
  for (int seed = 0; seed < 300; ++seed) {
    compare_random(seed, 5, 8, 60, true);
    compare_random(seed, 2, 100, 60, false);
    compare_random(seed, 1, 100000, 300, false); // spans are merged
  }
}
