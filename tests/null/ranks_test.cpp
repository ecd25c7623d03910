// The handshake of ranks, and the steps of their exchanges (ranks/).
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include "ranks/exchange.h"
#include "ranks/handshake.h"
#include "ranks/shared_memory.h"

using namespace mlx::core::vulkan;

namespace {

Hello good(const char* uuid) {
  Hello h{};
  assign(h.host, "a boot");
  assign(h.uuid, uuid);
  h.wants = 1;
  return h;
}

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// A group over memory of its own.
struct Group {
  explicit Group(HostGroupSizes sizes) {
    memory.create(HostGroup::bytes(sizes));
    group = std::make_shared<HostGroup>(
        memory.data(), sizes, std::vector<int>(sizes.ranks, getpid()));
  }
  ~Group() {
    group.reset();
    memory.unmap();
    memory.close_file();
  }
  SharedMemory memory;
  std::shared_ptr<HostGroup> group;
};

// Checks that the steps move every item once, within their slots.
void check_steps(Exchange e, bool meets, HostGroupSizes sizes) {
  CAPTURE(e.items);
  CAPTURE(e.parts);
  CAPTURE(meets);
  Group g(sizes);
  auto steps = steps_of(e, *g.group, meets, 8);
  CHECK(e.variant.QUADS == (meets ? 1 : 4));
  uint64_t given = 0, taken = 0, gives = 0, takes = 0;
  for (auto& step : steps) {
    auto& a = step.args;
    auto& m = step.rendezvous;
    uint64_t pack = 16 * e.variant.QUADS;
    CHECK(a.slot == g.group->slot(sizes.rank, m.number));
    CHECK(pack * a.packs * a.parts <= sizes.slot);
    CHECK(
        a.packs * EXCHANGE_ITEMS(e.variant.QUADS, e.itemsize) >=
        uint64_t(a.items));
    CHECK(a.from + pack * a.packs <= g.group->slot(0, m.number) + sizes.slot);
    CHECK(a.threads == step.grid.x * 256);
    CHECK(m.plan.first == a.first * e.itemsize);
    if (a.steps & EXCHANGE_GIVE) {
      CHECK(a.first == given);
      CHECK(m.number == ++gives);
      given += a.items;
    }
    if (a.steps & EXCHANGE_TAKE) {
      CHECK(a.first == taken);
      CHECK(m.number == ++takes);
      taken += a.items;
    }
    CHECK(gives >= takes);
    CHECK(gives - takes <= HostGroup::lead);
    CHECK((m.act == Act::Meet) == meets);
  }
  CHECK(given == e.items);
  CHECK(taken == e.items);
}

} // namespace

TEST_CASE("ranks: why they stay with the ring") {
  CHECK(against(std::vector{good("a"), good("b")}).empty());
  auto why = [](auto&& change) {
    std::vector all{good("a"), good("b")};
    change(all[1]);
    return against(all);
  };
  CHECK(
      has(why([](Hello& h) { assign(h.host, "another"); }), "different hosts"));
  CHECK(has(why([](Hello& h) { h.wants = 0; }), "not set for rank 1"));
  CHECK(has(why([](Hello& h) { h.software = 1; }), "software devices"));
  CHECK(why([](Hello& h) {
          assign(h.why, "it has no /proc");
        }) == "rank 1 cannot: it has no /proc");
  std::vector<Outcome> outcomes(2);
  CHECK(against(outcomes).empty());
  assign(outcomes[0].why, std::string(1000, 'x'));
  CHECK(against(outcomes) == "rank 0 cannot: " + std::string(255, 'x'));
}

TEST_CASE(
    "ranks: devices wait for each other where each is a chip of its own") {
  CHECK(can_meet({good("a"), good("b"), good("c")}));
  CHECK_FALSE(can_meet({good("a"), good("b"), good("a")}));
  auto software = good("b"), alone = good("b");
  software.software = alone.alone = 1;
  CHECK_FALSE(can_meet({good("a"), software}));
  CHECK_FALSE(can_meet({good("a"), alone}));
}

TEST_CASE("ranks: shared memory is opened by its path and name alone") {
  SharedMemory first, second, other;
  first.create(8192);
  REQUIRE(first.data() != nullptr);
  auto path = first.path(), name = SharedMemory::name_of(path);
  second.open(path.c_str(), name.c_str(), 8192);
  REQUIRE(second.data() != nullptr);
  static_cast<char*>(first.data())[5000] = 7;
  CHECK(static_cast<char*>(second.data())[5000] == 7);
  other.open(path.c_str(), "another", 8192);
  CHECK(other.data() == nullptr);
  for (auto* memory : {&first, &second, &other}) {
    memory->unmap();
    memory->close_file();
  }
}

TEST_CASE("ranks: the steps of an exchange") {
  for (bool software : {true, false}) {
    for (int ranks : {2, 3, 16}) {
      auto sizes = sizes_of(ranks - 1, ranks, software);
      for (uint64_t items : {1, 63, 4096, 20000, 123457}) {
        Exchange sum{
            .kind = Collective::Sum,
            .name = "all_sum",
            .variant = {Type::f32, Type::f32, "Sum", false, 1},
            .items = items,
            .itemsize = 4};
        check_steps(sum, false, sizes);
        if (fits_carrier(sum) && items <= 4096) {
          check_steps(sum, true, sizes);
        }
        auto scatter = sum;
        scatter.kind = Collective::Scatter;
        scatter.parts = uint32_t(ranks);
        check_steps(scatter, false, sizes);
      }
    }
  }
}

TEST_CASE("ranks: an exchange without items takes no number") {
  Group g(sizes_of(0, 2, true));
  Exchange e{
      .kind = Collective::Sum,
      .name = "all_sum",
      .variant = {Type::f32, Type::f32, "Sum", false, 1},
      .items = 0,
      .itemsize = 4};
  CHECK(steps_of(e, *g.group, false, 8).empty());
  CHECK(g.group->next_collective() == 1);
}

TEST_CASE("ranks: small exchanges fit the carrier, larger ones do not") {
  Exchange e{
      .kind = Collective::Sum,
      .name = "all_sum",
      .variant = {Type::f32, Type::f32, "Sum", false, 1},
      .items = 1000,
      .itemsize = 4};
  CHECK(fits_carrier(e));
  e.items = 3 * (Carrier::room / 16); // 12 bytes of items in each pack
  CHECK_FALSE(fits_carrier(e));
}
