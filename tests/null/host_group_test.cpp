#include "ranks/host_group.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include "kernels/exchange.h"
#include "kernels/probe.h"
#include "null/fake_kernels.h"
#include "runtime/device.h"
#include "runtime/encoder.h"
#include "runtime/profile.h"
#include "runtime/recorder.h"

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

Rendezvous rendezvous(Act act, uint64_t number, uint64_t bytes = 16) {
  return {act, 0, number, {"all_sum", 1, bytes}};
}

} // namespace

TEST_CASE("host group: a rendezvous starts when all have offered it") {
  Ranks ranks(3);
  auto m = rendezvous(Act::Meet, 1);
  CHECK_FALSE(ranks[0].may_start(m, {}));
  ranks[0].offer(m);
  ranks[1].offer(m);
  CHECK_FALSE(ranks[0].may_start(m, {}));
  ranks[2].offer(m);
  for (auto& g : ranks.groups) {
    CHECK(g->may_start(m, {}));
    g->start(m);
    CHECK(g->next_rendezvous().ends == 2);
  }
  // In their order only.
  auto third = rendezvous(Act::Meet, 3);
  for (auto& g : ranks.groups) {
    g->offer(third);
  }
  CHECK_FALSE(ranks[0].may_start(third, ranks[0].next_rendezvous()));
  CHECK(ranks[0].error().empty());
}

TEST_CASE("host group: what was given is taken when all are done with it") {
  Ranks ranks(2);
  auto give = rendezvous(Act::Give, 1), take = rendezvous(Act::Take, 1);
  for (auto& g : ranks.groups) {
    CHECK(g->may_start(give, {}));
    g->start(give);
  }
  CHECK_FALSE(ranks[0].may_start(take, {}));
  ranks[0].done(give);
  CHECK_FALSE(ranks[0].may_start(take, {}));
  ranks[1].done(give);
  CHECK(ranks[0].may_start(take, {}));
  ranks[0].start(take);
  CHECK(
      ranks[0].may_start(rendezvous(Act::Give, 2), ranks[0].next_rendezvous()));
}

TEST_CASE("host group: two are given before the first is taken") {
  Ranks ranks(2);
  auto& g = ranks[0];
  auto may = [&](Act act, uint64_t n) {
    return g.may_start(rendezvous(act, n), g.next_rendezvous());
  };
  CHECK_FALSE(may(Act::Give, 2)); // in their order
  for (uint64_t n : {1, 2}) {
    CHECK(may(Act::Give, n));
    for (auto& each : ranks.groups) {
      each->start(rendezvous(Act::Give, n));
      each->done(rendezvous(Act::Give, n));
    }
  }
  CHECK_FALSE(may(Act::Give, 3));
  CHECK_FALSE(may(Act::Take, 2));
  CHECK_FALSE(may(Act::Meet, 3));
  CHECK(may(Act::Take, 1));
  g.start(rendezvous(Act::Take, 1));
  CHECK(may(Act::Give, 3));
  CHECK(may(Act::Take, 2));
  g.start(rendezvous(Act::Take, 2));
  for (auto& each : ranks.groups) {
    each->offer(rendezvous(Act::Meet, 3));
  }
  CHECK(may(Act::Meet, 3));
  g.start(rendezvous(Act::Meet, 3));
  CHECK(may(Act::Give, 4));
  CHECK(g.error().empty());
}

TEST_CASE("host group: a channel holds two messages") {
  Ranks ranks(2);
  auto send = [](uint64_t n) {
    return Rendezvous{Act::Send, 1, n, {"a message", 1, 8}};
  };
  Rendezvous first{Act::Receive, 0, 1, {"a message", 1, 8}};
  auto may = [&](int rank, const Rendezvous& m) {
    return ranks[rank].may_start(m, ranks[rank].next_rendezvous());
  };
  CHECK_FALSE(may(1, first));
  CHECK_FALSE(may(0, send(2))); // of another stream, before the first
  for (uint64_t n : {1, 2}) {
    CHECK(may(0, send(n)));
    ranks[0].start(send(n));
  }
  CHECK_FALSE(may(0, send(3)));
  ranks[0].done(send(1));
  CHECK(may(1, first));
  CHECK_FALSE(may(1, {Act::Receive, 0, 2, first.plan}));
  CHECK_FALSE(may(0, send(3)));
  ranks[1].start(first);
  ranks[1].done(first);
  CHECK(may(0, send(3)));
  ranks[0].done(send(2));
  CHECK(may(1, {Act::Receive, 0, 2, first.plan}));
  CHECK(ranks[0].channel(0, 1, 1) != ranks[0].channel(0, 1, 2));
  CHECK(ranks[0].channel(0, 1, 2) != ranks[0].channel(1, 0, 2));
}

TEST_CASE("host group: ranks that differ fail, all of them") {
  Ranks ranks(2);
  ranks[0].offer(rendezvous(Act::Meet, 1, 16));
  ranks[1].offer(rendezvous(Act::Meet, 1, 20));
  CHECK_FALSE(ranks[0].may_start(rendezvous(Act::Meet, 1, 16), {}));
  CHECK(
      ranks[0].error().find(
          "rank 0 is at all_sum of 16 bytes where rank 1 is at one of 20") !=
      std::string::npos);
  CHECK(ranks[1].error().find("Rank 0 failed: ") != std::string::npos);
}

TEST_CASE("host group: a piece of another array, or another piece, is not it") {
  for (TransferPlan other :
       {TransferPlan{"all_sum", 1, 96, 32},
        TransferPlan{"all_sum", 1, 64, 0}}) {
    Ranks ranks(2);
    ranks[0].offer({Act::Meet, 0, 1, {"all_sum", 1, 64, 32}});
    ranks[1].offer({Act::Meet, 0, 1, other});
    CHECK_FALSE(
        ranks[0].may_start({Act::Meet, 0, 1, {"all_sum", 1, 64, 32}}, {}));
    CHECK(
        ranks[0].error().find("is at all_sum of 64 bytes (byte 32) where") !=
        std::string::npos);
  }
}

TEST_CASE("host group: what is offered is not far ahead") {
  Ranks ranks(2);
  uint64_t offered = 0;
  while (offered < 2000 && ranks[0].offer(rendezvous(Act::Meet, offered + 1))) {
    ++offered;
  }
  CHECK(offered > 100);
  CHECK(offered < 1024 / 2); // plans, with another rank ahead by as many
  ranks[0].start(rendezvous(Act::Meet, 1));
  CHECK(ranks[0].offer(rendezvous(Act::Meet, offered + 1)));
}

TEST_CASE("host group: ranks that go different ways fail, all of them") {
  for (bool gives_first : {false, true}) {
    Ranks ranks(2);
    // What is small is met, what is large is given and taken.
    auto meet = rendezvous(Act::Meet, 1, 16);
    auto give = rendezvous(Act::Give, 1, 16),
         take = rendezvous(Act::Take, 1, 16);
    for (bool gives : {gives_first, !gives_first}) {
      if (gives) {
        ranks[1].start(give);
      } else {
        ranks[0].offer(meet);
      }
    }
    ranks[1].done(give);
    CHECK_FALSE(ranks[0].may_start(meet, {}));
    CHECK_FALSE(ranks[1].may_start(take, ranks[1].next_rendezvous()));
    for (auto& g : ranks.groups) {
      CHECK(g->error().find("must call the same") != std::string::npos);
    }
  }
}

TEST_CASE("host group: processes that have ended") {
  Ranks ranks(2);
  auto first = rendezvous(Act::Meet, 1), second = rendezvous(Act::Meet, 2);
  ranks[0].look_for_ended(first);
  CHECK(ranks[0].error().empty());
  int child = fork();
  if (child == 0) {
    ranks[1].offer(first);
    _exit(0);
  }
  HostGroupSizes sizes{0, 2, 4096, 4096};
  std::vector<int> processes{getpid(), child};
  HostGroup group(ranks.memory, sizes, processes);
  for (int i = 0; i < 2000 && group.error().empty(); ++i) {
    group.look_for_ended(second);
    usleep(1000);
  }
  auto want = "The process of rank 1 (" + std::to_string(child) + ") has ended";
  CHECK(group.error().find(want) != std::string::npos);
  // Whose process has ended may have done all that it had to.
  HostGroup other(ranks.memory, sizes, processes);
  other.look_for_ended(first);
  CHECK(other.error().empty());
}

namespace {

// Rank 0 with a device; what rank 1 does the test says.
struct Rank {
  Rank() {
    fake::reset({});
    device = std::make_unique<Device>();
    encoder = std::make_unique<Encoder>(*device, 0);
    z = device->memory().allocate(2800, Placement::Host);
  }
  ~Rank() {
    encoder.reset();
    device->memory().release(z);
  }
  void mix() {
    fake::dispatch_mix(*encoder, fake::mix(device->pipelines()), z, 1);
  }
  void mix(Act act, uint64_t number) {
    encoder->hold(
        ranks.groups[0], std::make_shared<Rendezvous>(rendezvous(act, number)));
    mix();
  }

  Ranks ranks{2};
  std::unique_ptr<Device> device;
  std::unique_ptr<Encoder> encoder;
  Buffer* z = nullptr;
};

void a_while() {
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
}

} // namespace

TEST_CASE(
    "host group: a batch goes ahead up to a rendezvous, and on when it may") {
  Rank r;
  auto submissions = [] { return counters().submissions.load(); };
  uint64_t before = submissions();
  r.mix();
  r.mix(Act::Meet, 1);
  r.mix(Act::Meet, 2);
  r.mix();
  auto done = r.encoder->close();
  a_while();
  CHECK_FALSE(done->submitted());
  CHECK(submissions() == before + 1); // the first
  r.ranks[1].offer(rendezvous(Act::Meet, 1));
  // Both of this rank's were offered at once.
  CHECK(r.ranks[1].may_start(rendezvous(Act::Meet, 1), {}));
  a_while();
  CHECK_FALSE(done->submitted());
  r.ranks[1].offer(rendezvous(Act::Meet, 2));
  done->wait();
  CHECK(done->error().empty());
  CHECK(r.ranks[0].next_rendezvous().ends == 3);
}

TEST_CASE("host group: a stream that compiles does not delay a rendezvous") {
  Rank r;
  // So that the process is known to take part in exchanges.
  r.ranks[1].offer(rendezvous(Act::Meet, 1));
  r.mix(Act::Meet, 1);
  r.encoder->close()->wait();
  constexpr std::chrono::milliseconds compile(400);
  fake::settings().compile_ms = compile.count();
  auto begun = std::chrono::steady_clock::now();
  auto elapsed = [&] { return std::chrono::steady_clock::now() - begun; };
  Encoder other(*r.device, 1);
  ProbeLanesVariant lanes{.WG_SIZE = 256};
  auto& kernel = r.device->pipelines().get(lanes.file, lanes.defines());
  Binding read{r.z, 0, 0, 1024}, write{r.z, 0, 1024, 2048};
  ProbeArgs args{256};
  other.dispatch(
      kernel, {&read, 1}, {&write, 1}, &args, sizeof(args), {1, 1, 1});
  auto compiled = other.close();
  r.mix(Act::Meet, 2);
  auto met = r.encoder->close();
  r.ranks[1].offer(rendezvous(Act::Meet, 2));
  met->wait();
  CHECK(elapsed() < compile);
  CHECK_FALSE(compiled->submitted());
  compiled->wait();
  CHECK(elapsed() >= compile);
  CHECK(compiled->error().empty());
  CHECK(met->error().empty());
}

TEST_CASE("host group: what is given is retired before it is taken") {
  Rank r;
  auto submissions = [] { return counters().submissions.load(); };
  uint64_t before = submissions();
  r.mix(Act::Give, 1);
  r.mix(Act::Give, 2);
  r.mix(Act::Take, 1);
  r.mix(Act::Give, 3);
  r.mix(Act::Take, 2);
  auto done = r.encoder->close();
  auto& other = r.ranks[1];
  auto told = [&](uint64_t number) {
    auto m = rendezvous(Act::Take, number);
    for (int i = 0; i < 1000; ++i) {
      if (other.waits_for(m).find("rank 1 has much") != std::string::npos) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  };
  auto give = [&](uint64_t number) {
    other.start(rendezvous(Act::Give, number));
    other.done(rendezvous(Act::Give, number));
  };
  CHECK(told(2));
  a_while();
  CHECK(submissions() == before + 2); // each is told of at once
  CHECK_FALSE(done->submitted());
  give(1);
  CHECK(told(3));
  a_while();
  CHECK(submissions() == before + 3); // one is taken while one is given
  CHECK_FALSE(done->submitted());
  give(2);
  done->wait();
  CHECK(done->error().empty());
  CHECK(submissions() == before + 4);
}

TEST_CASE("host group: a failure ends what is held, and what comes after") {
  Rank r;
  r.mix();
  auto first = r.encoder->close();
  first->wait();
  r.mix(Act::Meet, 1);
  auto held = r.encoder->close();
  r.ranks[1].fail("it broke");
  held->wait();
  CHECK(held->error().find("Rank 1 failed: it broke") != std::string::npos);
  r.mix();
  auto after = r.encoder->close();
  after->wait();
  CHECK_FALSE(after->error().empty());
  CHECK(first->error().empty());
}

TEST_CASE("host group: a device that waited in vain fails its batch") {
  Rank r;
  r.ranks[1].offer(rendezvous(Act::Meet, 1));
  // As its kernel writes it.
  static_cast<uint32_t*>(r.ranks.memory)[EXCHANGE_LATE(0)] = 1 + 1;
  r.mix(Act::Meet, 1);
  auto done = r.encoder->close();
  done->wait();
  CHECK(done->error().find("The device of rank 1") != std::string::npos);
  CHECK(r.ranks[1].error().find("Rank 0 failed") != std::string::npos);
}
