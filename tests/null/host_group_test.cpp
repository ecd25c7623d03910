#include "runtime/host_group.h"

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include <doctest/doctest.h>
#include "runtime/pending.h"

using namespace mlx::core::vulkan;

namespace {

// Ranks of one process, over the same memory.
struct Ranks {
  explicit Ranks(uint32_t count) {
    HostGroupSizes sizes{0, count, 4096, 4096};
    size = HostGroup::bytes(sizes);
    memory = mmap(
        nullptr,
        size,
        PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS,
        -1,
        0);
    std::vector<int> processes(count, getpid());
    for (; sizes.rank < count; ++sizes.rank) {
      groups.push_back(std::make_shared<HostGroup>(memory, sizes, processes));
    }
  }
  ~Ranks() {
    groups.clear();
    munmap(memory, size);
  }
  HostGroup& operator[](size_t r) {
    return *groups[r];
  }
  void* memory;
  size_t size;
  std::vector<std::shared_ptr<HostGroup>> groups;
};

Meeting meeting(Act act, uint64_t number, uint64_t bytes = 16) {
  return {act, 0, number, {"all_sum", 1, bytes}};
}

} // namespace

TEST_CASE("host group: a meeting starts when all have offered it") {
  Ranks ranks(3);
  auto m = meeting(Act::Meet, 1);
  CHECK_FALSE(ranks[0].may_start(m, 1));
  ranks[0].offer(m);
  ranks[1].offer(m);
  CHECK_FALSE(ranks[0].may_start(m, 1));
  ranks[2].offer(m);
  for (auto& g : ranks.groups) {
    CHECK(g->may_start(m, 1));
    g->pass(m);
    CHECK(g->next_meeting() == 2);
  }
  // In their order only.
  auto third = meeting(Act::Meet, 3);
  for (auto& g : ranks.groups) {
    g->offer(third);
  }
  CHECK_FALSE(ranks[0].may_start(third, ranks[0].next_meeting()));
  CHECK(ranks[0].error().empty());
}

TEST_CASE("host group: what was given is taken when all are done with it") {
  Ranks ranks(2);
  auto give = meeting(Act::Give, 1), take = meeting(Act::Take, 1);
  for (auto& g : ranks.groups) {
    CHECK(g->may_start(give, 1));
    g->pass(give);
    // A second one would use the other generation, but the third the first.
    CHECK_FALSE(g->may_start(meeting(Act::Give, 2), g->next_meeting()));
  }
  CHECK_FALSE(ranks[0].may_start(take, 1));
  ranks[0].done(give); // it need not wait for itself
  CHECK_FALSE(ranks[0].may_start(take, 1));
  ranks[1].done(give);
  CHECK(ranks[0].may_start(take, 1));
  ranks[0].pass(take);
  CHECK(ranks[0].may_start(meeting(Act::Give, 2), ranks[0].next_meeting()));
}

TEST_CASE("host group: a channel holds two messages") {
  Ranks ranks(2);
  auto send = [](uint64_t n) {
    return Meeting{Act::Send, 1, n, {"a message", 1, 8}};
  };
  Meeting first{Act::Receive, 0, 1, {"a message", 1, 8}};
  CHECK_FALSE(ranks[1].may_start(first, 1));
  for (uint64_t n : {1, 2}) {
    CHECK(ranks[0].may_start(send(n), 1));
    ranks[0].pass(send(n));
  }
  CHECK_FALSE(ranks[0].may_start(send(3), 1));
  ranks[0].done(send(1));
  CHECK(ranks[1].may_start(first, 1));
  CHECK_FALSE(ranks[0].may_start(send(3), 1));
  ranks[1].done(first);
  CHECK(ranks[0].may_start(send(3), 1));
  CHECK(ranks[0].channel(0, 1, 1) != ranks[0].channel(0, 1, 2));
  CHECK(ranks[0].channel(0, 1, 2) != ranks[0].channel(1, 0, 2));
}

TEST_CASE("host group: ranks that differ fail, all of them") {
  Ranks ranks(2);
  ranks[0].offer(meeting(Act::Meet, 1, 16));
  ranks[1].offer(meeting(Act::Meet, 1, 20));
  CHECK_FALSE(ranks[0].may_start(meeting(Act::Meet, 1, 16), 1));
  CHECK(
      ranks[0].error().find(
          "rank 0 is at all_sum of 16 bytes where rank 1 is at one of 20") !=
      std::string::npos);
  CHECK(ranks[1].error().find("Rank 0 failed: ") != std::string::npos);
}

TEST_CASE("host group: processes that have ended") {
  Ranks ranks(2);
  ranks[0].look_for_ended();
  CHECK(ranks[0].error().empty());
  int child = fork();
  if (child == 0) {
    _exit(0);
  }
  HostGroupSizes sizes{0, 2, 4096, 4096};
  std::vector<int> processes{getpid(), child};
  HostGroup group(ranks.memory, sizes, processes);
  for (int i = 0; i < 2000 && group.error().empty(); ++i) {
    group.look_for_ended();
    usleep(1000);
  }
  auto want = "The process of rank 1 (" + std::to_string(child) + ") has ended";
  CHECK(group.error().find(want) != std::string::npos);
}
