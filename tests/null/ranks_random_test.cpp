// Ranks as processes, each with a fake device whose rendezvous wait for the
// other devices', as an exchange kernel does: whatever the order of
// submissions, none may wait for ever, and nothing may be taken before it is
// given or given over what is still to be taken (ranks/host_group.h).
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include "null/fake_kernels.h"
#include "ranks/host_group.h"
#include "runtime/device.h"
#include "runtime/encoder.h"

using namespace mlx::core::vulkan;

namespace {

using Clock = std::chrono::steady_clock;
constexpr uint32_t most = 3; // ranks
constexpr auto device_waits = std::chrono::seconds(2);
constexpr auto rank_may_take = std::chrono::seconds(30);

// What the fake devices know of each other: the last rendezvous given and
// taken, and the last message of a channel.
struct Progress {
  std::atomic<uint64_t> given, taken;
};
struct Job {
  std::atomic<int> processes[most];
  Progress progress[most];
  Progress channels[most][most]; // from, to
};

// A dispatch's salt: what it does for which rendezvous.
constexpr uint32_t takes = 1u << 31, gives = 1u << 30, message = 1u << 29;
constexpr uint32_t peer_shift = 24;
constexpr uint32_t number_mask = (1u << peer_shift) - 1;

class Devices {
 public:
  Devices(Job& job, uint32_t rank, uint32_t ranks)
      : job_(job), rank_(rank), ranks_(ranks) {}

  void run(uint32_t salt) {
    uint64_t number = salt & number_mask;
    if (salt & message) {
      pass(salt & gives, salt >> peer_shift & 3, number);
      return;
    }
    auto& mine = job_.progress[rank_];
    if (salt & gives) {
      uint64_t over =
          number > HostGroup::generations ? number - HostGroup::generations : 0;
      for (uint32_t r = 0; r < ranks_; ++r) {
        if (job_.progress[r].taken < over) {
          say("gave rendezvous %lu over one that rank %u takes", number, r);
        }
      }
      mine.given = number;
    }
    if (salt & takes) {
      bool waits = salt & gives;
      auto begun = Clock::now();
      for (uint32_t r = 0; r < ranks_; ++r) {
        while (job_.progress[r].given < number) {
          if (!waits || Clock::now() - begun > device_waits) {
            say("takes rendezvous %lu, which rank %u has not given", number, r);
            return;
          }
          std::this_thread::yield();
        }
      }
      mine.taken = number;
    }
  }
  bool good() const {
    return good_;
  }

 private:
  // A channel has two slots.
  void pass(bool sends, uint32_t peer, uint64_t number) {
    auto& channel =
        sends ? job_.channels[rank_][peer] : job_.channels[peer][rank_];
    if (sends) {
      if (channel.taken + 2 < number) {
        say("sent message %lu over one that rank %u takes", number, peer);
      }
      channel.given = number;
    } else {
      if (channel.given < number) {
        say("takes message %lu, which rank %u has not sent", number, peer);
      }
      channel.taken = number;
    }
  }
  void say(const char* format, uint64_t number, uint32_t other) {
    std::fprintf(stderr, "rank %u ", rank_);
    std::fprintf(stderr, format, static_cast<unsigned long>(number), other);
    std::fputc('\n', stderr);
    good_ = false;
  }
  Job& job_;
  uint32_t rank_, ranks_;
  std::atomic<bool> good_{true};
};

// Streams of a rank. All ranks do the same; when, is each one's own affair.
class Program {
 public:
  Program(std::shared_ptr<HostGroup> group, uint32_t seed)
      : group_(std::move(group)), same_(seed) {
    own_.seed(seed * 31 + group_->sizes().rank);
    for (uint32_t s = 0; s < streams; ++s) {
      encoders_.push_back(std::make_unique<Encoder>(device_, s));
      z_.push_back(device_.memory().allocate(2800, Placement::Host));
    }
  }
  ~Program() {
    encoders_.clear();
    for (auto* z : z_) {
      device_.memory().release(z);
    }
  }

  // Whether nothing failed.
  bool run() {
    for (int i = 0; i < 120; ++i) {
      step(pick(streams));
      if (own_() % 16 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(own_() % 800));
      }
    }
    bool good = true;
    for (auto& e : encoders_) {
      e->close(); // others may wait for it
    }
    for (auto& e : encoders_) {
      if (auto last = e->close()) {
        last->wait();
        good = good && last->error().empty();
      }
    }
    return good;
  }

 private:
  static constexpr uint32_t streams = 2;

  uint32_t pick(uint32_t n) {
    return static_cast<uint32_t>(same_() % n);
  }

  void step(uint32_t s) {
    switch (pick(10)) {
      case 0:
      case 1:
      case 2:
        exchange(s, 1, true);
        break;
      case 3:
        exchange(s, 1 + pick(4), false);
        break;
      case 4: { // an eval, and perhaps a wait for it
        auto done = encoders_[s]->close();
        if (pick(4) == 0 && done) {
          encoders_[1 - s]->close(); // which s may wait for
          done->wait();
        }
        break;
      }
      case 5: { // s goes on after the other stream
        uint32_t other = 1 - s;
        if (auto done = encoders_[other]->current_completion()) {
          encoders_[s]->wait({nullptr, 0, done});
        }
        break;
      }
      case 6:
      case 7:
        send(s, pick(group_->sizes().ranks), 1 + pick(3));
        break;
      default:
        mix(s, 0);
    }
  }

  // From one rank to the next, in parts.
  void send(uint32_t s, uint32_t from, uint32_t parts) {
    auto& sizes = group_->sizes();
    uint32_t to = (from + 1) % sizes.ranks;
    bool sends = sizes.rank == from;
    encoders_[s]->close_if_awaited();
    for (uint32_t i = 0; i < parts && (sends || sizes.rank == to); ++i) {
      uint32_t peer = sends ? to : from;
      uint64_t number =
          sends ? group_->next_sent(peer) : group_->next_received(peer);
      meet(s, sends ? Act::Send : Act::Receive, number, peer);
    }
  }

  // As ops/distributed.cpp does it.
  void exchange(uint32_t s, uint32_t pieces, bool meets) {
    encoders_[s]->close_if_awaited();
    std::deque<uint64_t> given;
    for (uint32_t i = 0; i < pieces; ++i) {
      uint64_t number = group_->next_collective();
      if (meets) {
        meet(s, Act::Meet, number);
        continue;
      }
      meet(s, Act::Give, number);
      given.push_back(number);
      if (given.size() == HostGroup::lead) {
        meet(s, Act::Take, given.front());
        given.pop_front();
      }
    }
    for (uint64_t number : given) {
      meet(s, Act::Take, number);
    }
  }

  void meet(uint32_t s, Act act, uint64_t number, uint32_t peer = 0) {
    bool sends = act == Act::Send, receives = act == Act::Receive;
    uint32_t salt = static_cast<uint32_t>(number);
    salt |= act == Act::Meet || act == Act::Give || sends ? gives : 0;
    salt |= act == Act::Meet || act == Act::Take || receives ? takes : 0;
    salt |= sends || receives ? message | peer << peer_shift : 0;
    TransferPlan plan{"an exchange", sends || receives, 16};
    encoders_[s]->hold(
        group_, std::make_shared<Rendezvous>(act, peer, number, plan));
    mix(s, salt);
  }

  void mix(uint32_t s, uint32_t salt) {
    auto& kernel = fake::mix(device_.pipelines());
    fake::dispatch_mix(*encoders_[s], kernel, z_[s], salt);
  }

  Device device_;
  std::shared_ptr<HostGroup> group_;
  std::mt19937 same_, own_;
  std::vector<std::unique_ptr<Encoder>> encoders_;
  std::vector<Buffer*> z_;
};

// The whole life of a rank's process.
[[noreturn]] void
be_rank(void* memory, Job& job, HostGroupSizes sizes, uint32_t seed) {
  std::vector<int> processes(sizes.ranks);
  for (uint32_t r = 0; r < sizes.ranks; ++r) {
    while ((processes[r] = job.processes[r]) == 0) {
      std::this_thread::yield();
    }
  }
  Devices devices(job, sizes.rank, sizes.ranks);
  fake::Settings settings;
  settings.seed = seed * 7 + sizes.rank;
  settings.max_delay_us = 300;
  settings.before_mix = [&](uint32_t salt) { devices.run(salt); };
  fake::reset(settings);
  bool good = false;
  {
    auto group = std::make_shared<HostGroup>(memory, sizes, processes);
    Program program(group, seed);
    good = program.run();
    if (auto e = group->error(); !e.empty()) {
      std::fprintf(stderr, "rank %u: %s\n", sizes.rank, e.c_str());
    }
  }
  for (auto& e : fake::errors()) {
    std::fprintf(stderr, "rank %u: %s\n", sizes.rank, e.c_str());
    good = false;
  }
  std::_Exit(good && devices.good() ? 0 : 1);
}

// Of each rank how it ended: 0 is well, -1 did not.
std::vector<int> run_ranks(uint32_t ranks, uint32_t seed) {
  HostGroupSizes sizes{0, ranks, 4096, 4096};
  size_t bytes = HostGroup::bytes(sizes), all = bytes + sizeof(Job);
  void* memory = mmap(
      nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto& job = *reinterpret_cast<Job*>(static_cast<std::byte*>(memory) + bytes);
  std::fflush(nullptr); // or each child would print it again
  for (; sizes.rank < ranks; ++sizes.rank) {
    int child = fork();
    if (child == 0) {
      be_rank(memory, job, sizes, seed);
    }
    job.processes[sizes.rank] = child;
  }
  std::vector<int> ends(ranks, -1);
  auto until = Clock::now() + rank_may_take;
  for (uint32_t r = 0; r < ranks; ++r) {
    int status = 0;
    while (waitpid(job.processes[r], &status, WNOHANG) == 0) {
      if (Clock::now() > until) {
        kill(job.processes[r], SIGKILL);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ends[r] = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  munmap(memory, all);
  return ends;
}

} // namespace

TEST_CASE("host group: processes that meet at random") {
  // MLX_VK_TEST_ROUNDS=500 for a soak.
  const char* rounds = std::getenv("MLX_VK_TEST_ROUNDS");
  for (uint32_t seed = 1; seed <= uint32_t(rounds ? std::atoi(rounds) : 6);
       ++seed) {
    CAPTURE(seed);
    uint32_t ranks = 2 + seed % (most - 1);
    CHECK(run_ranks(ranks, seed) == std::vector<int>(ranks, 0));
  }
}
