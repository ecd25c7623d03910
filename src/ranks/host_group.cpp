#include "ranks/host_group.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "kernels/exchange.h"
#include "vk/integers.h"

namespace mlx::core::vulkan {

namespace {

constexpr uint64_t page = 4096;
constexpr uint64_t whole_pages(uint64_t bytes) {
  return round_up(bytes, page);
}

// A rank offers at most so many rendezvous ahead, and another rank is ahead of
// it by as many at most, so no plan is overwritten before every rank has read
// it.
constexpr uint64_t most_offers = 256, most_plans = 4 * most_offers;

// A rendezvous is offered when the device is expected to be there in less
// seconds. Other ranks' devices may wait for it then, for a second at most.
constexpr float near_seconds = 0.1f;

void raise_to(std::atomic<uint64_t>& x, uint64_t value) {
  uint64_t old = x.load();
  while (old < value && !x.compare_exchange_weak(old, value)) {
  }
}

int watch_process(int process) {
#ifdef SYS_pidfd_open
  return static_cast<int>(syscall(SYS_pidfd_open, process, 0));
#else
  return -1;
#endif
}

bool has_ended(int process, int watch) {
  if (watch >= 0) {
    pollfd ask{watch, POLLIN, 0};
    return poll(&ask, 1, 0) == 1;
  }
  return kill(process, 0) != 0 && errno == ESRCH;
}

// Ranks must use the same protocol, too: one that meets would wait for an
// offer, and one that gives and takes for what is given.
uint64_t kind_of(const Rendezvous& m) {
  return uint64_t(m.plan.kind) << 1 | (m.act == Act::Meet);
}

std::string describe(const char* name, uint64_t bytes, uint64_t first = 0) {
  auto text = std::string(name) + " of " + std::to_string(bytes) + " bytes";
  return first ? text + " (byte " + std::to_string(first) + ")" : text;
}

const Rendezvous& rendezvous_of(const Hold& hold) {
  return static_cast<const Rendezvous&>(hold); // this gate holds nothing else
}

} // namespace

Rendezvous::Rendezvous(
    Act act,
    uint32_t peer,
    uint64_t number,
    const TransferPlan& plan)
    : Hold{act == Act::Meet ? near_seconds : 0, act == Act::Give},
      act(act),
      peer(peer),
      number(number),
      plan(plan) {}

struct HostGroup::SharedPlan {
  std::atomic<uint64_t> number, kind, bytes, first;

  // Writes the number last: a rank that sees it sees the rest.
  void write(const Rendezvous& m) {
    kind = kind_of(m);
    bytes = m.plan.bytes;
    first = m.plan.first;
    number = m.number;
  }
};

struct alignas(64) HostGroup::Rank {
  alignas(64) std::atomic<uint64_t> offered, given;
  alignas(64) std::atomic<uint32_t> failed; // `why` is there
  char why[1020];
  SharedPlan plans[most_plans];
};

struct alignas(64) HostGroup::Channel {
  std::atomic<uint64_t> sent, received;
  SharedPlan plans[2];
};

struct HostGroup::Shared {
  // Words that devices write (kernels/exchange.h).
  alignas(page) uint32_t words[page / 4];
  alignas(page) Rank ranks[most_host_ranks];
  Channel channels[most_host_ranks * most_host_ranks];

  uint32_t word(uint32_t i) {
    return std::atomic_ref(words[i]).load(std::memory_order_acquire);
  }
};

HostGroup::HostGroup(
    void* memory,
    const HostGroupSizes& sizes,
    std::span<const int> processes)
    : shared_(static_cast<Shared*>(memory)),
      sizes_(sizes),
      processes_(processes.begin(), processes.end()),
      sends_(sizes.ranks),
      receives_(sizes.ranks) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
  for (int process : processes_) {
    watches_.push_back(watch_process(process));
  }
}

HostGroup::~HostGroup() {
  for (int watch : watches_) {
    if (watch >= 0) {
      close(watch);
    }
  }
}

uint64_t HostGroup::slots() {
  return whole_pages(sizeof(Shared));
}

uint64_t HostGroup::bytes(const HostGroupSizes& s) {
  return slots() + whole_pages(s.ranks * generations * s.slot) +
      whole_pages(uint64_t(s.ranks) * s.ranks * 2 * s.channel);
}

uint64_t HostGroup::slot(uint32_t rank, uint64_t number) const {
  return slots() + (rank * generations + number % generations) * sizes_.slot;
}

uint64_t HostGroup::channel(uint32_t from, uint32_t to, uint64_t number) const {
  auto& s = sizes_;
  return slots() + whole_pages(s.ranks * generations * s.slot) +
      ((uint64_t(from) * s.ranks + to) * 2 + number % 2) * s.channel;
}

HostGroup::Rank& HostGroup::rank(uint32_t r) const {
  return shared_->ranks[r];
}

HostGroup::Channel& HostGroup::channel_of(uint32_t from, uint32_t to) const {
  return shared_->channels[from * most_host_ranks + to];
}

const HostGroup::SharedPlan& HostGroup::plan_of(const Rendezvous& m, uint32_t r)
    const {
  return m.act == Act::Receive ? channel_of(r, sizes_.rank).plans[m.number % 2]
                               : rank(r).plans[m.number % most_plans];
}

bool HostGroup::agree(const Rendezvous& m, uint32_t other) {
  auto& d = plan_of(m, other);
  if (d.number == m.number && d.kind == kind_of(m) && d.bytes == m.plan.bytes &&
      d.first == m.plan.first) {
    return true;
  }
  bool same = d.kind >> 1 == m.plan.kind;
  fail(
      "Ranks must call the same operations in the same order with the same "
      "shapes and dtypes, but rank " +
      std::to_string(sizes_.rank) + " is at " +
      describe(m.plan.name, m.plan.bytes, m.plan.first) + " where rank " +
      std::to_string(other) + " is at " +
      describe(same ? "one" : "another operation or dtype,", d.bytes, d.first));
  return false;
}

// Whether rank r has done its part of what the rendezvous requires.
bool HostGroup::reached(const Rendezvous& m, uint32_t r) const {
  switch (m.act) {
    case Act::Give:
      return true;
    case Act::Meet:
      return rank(r).offered >= m.number;
    case Act::Take:
      return rank(r).given >= m.number;
    case Act::Send:
      return r != m.peer || channel_of(sizes_.rank, r).received + 2 >= m.number;
    default:
      return r != m.peer || channel_of(r, sizes_.rank).sent >= m.number;
  }
}

// The first rank that has not reached the rendezvous, or the number of ranks.
// It may be this rank: its offer is due when its device is near, and what it
// has given counts when that is retired.
uint32_t HostGroup::behind(const Rendezvous& m) const {
  uint32_t r = 0;
  while (r < sizes_.ranks && reached(m, r)) {
    ++r;
  }
  return r;
}

void NextRendezvous::started(const Rendezvous& m) {
  switch (m.act) {
    case Act::Meet:
      ends = gives = m.number + 1;
      break;
    case Act::Give:
      gives = m.number + 1;
      break;
    case Act::Take:
      ends = m.number + 1;
      break;
    case Act::Send:
      sent[m.peer] = m.number;
      break;
    case Act::Receive:
      received[m.peer] = m.number;
      break;
  }
}

size_t HostGroup::may_start(Holds holds) {
  auto next = next_;
  size_t i = 0;
  while (i < holds.size() && may_start(rendezvous_of(*holds[i]), next)) {
    next.started(rendezvous_of(*holds[i++]));
  }
  return i;
}

bool HostGroup::may_start(const Rendezvous& m, const NextRendezvous& next) {
  if (m.act == Act::Give) {
    return m.number == next.gives && m.number < next.ends + lead;
  }
  if (m.act == Act::Send) {
    return m.number == next.sent[m.peer] + 1 && reached(m, m.peer);
  }
  if (m.act == Act::Receive) {
    return m.number == next.received[m.peer] + 1 && reached(m, m.peer) &&
        agree(m, m.peer);
  }
  if (m.number != next.ends) {
    return false;
  }
  bool all = true;
  for (uint32_t r = 0; r < sizes_.ranks; ++r) {
    bool there = reached(m, r);
    bool told = there || plan_of(m, r).number == m.number;
    if (r != sizes_.rank && told && !agree(m, r)) {
      return false;
    }
    all = all && there;
  }
  return all;
}

bool HostGroup::offer(const Rendezvous& m) {
  if (m.number >= next_.ends + most_offers) {
    return false;
  }
  auto& mine = rank(sizes_.rank);
  if (mine.offered < m.number) {
    mine.plans[m.number % most_plans].write(m);
    mine.offered = m.number;
  }
  return true;
}

// Offers the next rendezvous in their order.
void HostGroup::announce(std::vector<const Hold*> holds) {
  auto number = [](const Hold* hold) { return rendezvous_of(*hold).number; };
  std::sort(holds.begin(), holds.end(), [&](auto* a, auto* b) {
    return number(a) < number(b);
  });
  uint64_t next = next_.ends;
  for (auto* hold : holds) {
    if (number(hold) != next || !offer(rendezvous_of(*hold))) {
      break;
    }
    next++;
  }
}

void HostGroup::start(const Hold& hold) {
  auto& m = rendezvous_of(hold);
  if (m.act == Act::Give) {
    rank(sizes_.rank).plans[m.number % most_plans].write(m);
  } else if (m.act == Act::Send) {
    channel_of(sizes_.rank, m.peer).plans[m.number % 2].write(m);
  }
  next_.started(m);
}

void HostGroup::done(const Hold& hold) {
  auto& m = rendezvous_of(hold);
  if (m.act == Act::Give) {
    raise_to(rank(sizes_.rank).given, m.number);
  } else if (m.act == Act::Send) {
    raise_to(channel_of(sizes_.rank, m.peer).sent, m.number);
  } else if (m.act == Act::Receive) {
    raise_to(channel_of(m.peer, sizes_.rank).received, m.number);
  }
}

std::string HostGroup::error() {
  if (!failed_) {
    uint32_t late = late_fails_ ? shared_->word(EXCHANGE_LATE(sizes_.rank)) : 0;
    if (late) {
      uint32_t other = late - 1;
      bool over = has_ended(processes_[other], watches_[other]);
      fail(
          "The device of rank " + std::to_string(other) +
          (over ? ", whose process has ended, did not do its part"
                : " did not do its part within a second of this one's; other "
                  "work may keep it busy"));
    }
    for (uint32_t r = 0; r < sizes_.ranks && !failed_; ++r) {
      auto& other = rank(r);
      if (r != sizes_.rank && other.failed.load(std::memory_order_acquire)) {
        fail("Rank " + std::to_string(r) + " failed: " + other.why);
      }
    }
  }
  if (!failed_) {
    return {};
  }
  std::lock_guard lock(mutex_);
  return error_;
}

void HostGroup::fail(const std::string& why) {
  std::lock_guard lock(mutex_);
  if (failed_) {
    return;
  }
  auto sentence = why.substr(0, why.find_last_not_of('.') + 1);
  error_ = "[distributed] " + sentence + ". Restart the job's processes.";
  failed_ = true;
  auto& mine = rank(sizes_.rank);
  size_t size = std::min(why.size(), sizeof mine.why - 1);
  std::memcpy(mine.why, why.data(), size);
  mine.why[size] = 0;
  mine.failed.store(1, std::memory_order_release);
}

void HostGroup::look_for_ended(const Hold& hold) {
  auto& m = rendezvous_of(hold);
  for (uint32_t r = 0; r < sizes_.ranks && !failed_; ++r) {
    // Checked again, since the process may have reached it before it ended.
    if (r != sizes_.rank && !reached(m, r) &&
        has_ended(processes_[r], watches_[r]) && !reached(m, r)) {
      fail(
          "The process of rank " + std::to_string(r) + " (" +
          std::to_string(processes_[r]) + ") has ended");
    }
  }
}

std::string HostGroup::waits_for(const Hold& hold) {
  auto& m = rendezvous_of(hold);
  uint32_t other = behind(m);
  other = other < sizes_.ranks ? other : sizes_.rank; // held for one before it
  if (other == sizes_.rank) {
    return "[mlx-vulkan] rank " + std::to_string(other) +
        " has much to do before " + describe(m.plan.name, m.plan.bytes) + ".";
  }
  return "[mlx-vulkan] rank " + std::to_string(sizes_.rank) +
      " waits for rank " + std::to_string(other) + " (process " +
      std::to_string(processes_[other]) + ") with " +
      describe(m.plan.name, m.plan.bytes) + ".";
}

} // namespace mlx::core::vulkan
