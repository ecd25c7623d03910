#include "runtime/host_group.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "kernels/exchange.h"

namespace mlx::core::vulkan {

namespace {

constexpr uint64_t page = 4096;
constexpr uint64_t whole_pages(uint64_t bytes) {
  return (bytes + page - 1) / page * page;
}

// Meetings that a rank may be ahead of another: those of a batch of each of its
// streams, which is far fewer.
constexpr uint64_t most_deals = 1024;

struct SharedDeal {
  std::atomic<uint64_t> number, kind, bytes;
};

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

std::string describe(const char* what, uint64_t bytes) {
  return std::string(what) + " of " + std::to_string(bytes) + " bytes";
}

} // namespace

struct alignas(64) HostGroup::Rank {
  alignas(64) std::atomic<uint64_t> offered, given;
  alignas(64) std::atomic<uint32_t> failed; // `why` is there
  char why[1020];
  SharedDeal deals[most_deals];
};

struct alignas(64) HostGroup::Channel {
  std::atomic<uint64_t> sent, received;
  SharedDeal deals[2];
};

struct HostGroup::Shared {
  // Of kernels/exchange.h, for the devices.
  alignas(page) uint32_t words[page / 4];
  alignas(page) Rank ranks[most_ranks];
  Channel channels[most_ranks * most_ranks];

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

uint64_t HostGroup::channel(uint32_t from, uint32_t to, uint64_t number) const {
  auto& s = sizes_;
  return slots() + whole_pages(s.ranks * generations * s.slot) +
      ((uint64_t(from) * s.ranks + to) * 2 + number % 2) * s.channel;
}

HostGroup::Rank& HostGroup::rank(uint32_t r) const {
  return shared_->ranks[r];
}

HostGroup::Channel& HostGroup::channel_of(uint32_t from, uint32_t to) const {
  return shared_->channels[from * most_ranks + to];
}

namespace {

void write_deal(SharedDeal& d, const Meeting& m) {
  d.number = m.number;
  d.kind = m.deal.kind;
  d.bytes = m.deal.bytes;
}

} // namespace

bool HostGroup::agree(const Meeting& m, uint32_t other) {
  auto& d = m.act == Act::Receive
      ? channel_of(other, sizes_.rank).deals[m.number % 2]
      : rank(other).deals[m.number % most_deals];
  if (d.number == m.number && d.kind == m.deal.kind &&
      d.bytes == m.deal.bytes) {
    return true;
  }
  bool same = d.kind == m.deal.kind;
  fail(
      "Ranks must call the same operations in the same order with the same "
      "shapes and dtypes, but rank " +
      std::to_string(sizes_.rank) + " is at " +
      describe(m.deal.what, m.deal.bytes) + " where rank " +
      std::to_string(other) + " is at " +
      (same ? "one of " + std::to_string(d.bytes) + " bytes"
            : "another operation or dtype, of " + std::to_string(d.bytes) +
               " bytes"));
  return false;
}

// Whether all are as far as a collective meeting asks. This rank too: what it
// has not offered is not near, and while a batch is held for what it has given
// the recorder looks whether that is retired, which others wait for.
bool HostGroup::all_reached(const Meeting& m, uint32_t& behind) const {
  for (behind = 0; behind < sizes_.ranks; ++behind) {
    auto& other = rank(behind);
    auto& reached = m.act == Act::Meet ? other.offered : other.given;
    if (reached < m.number) {
      return false;
    }
  }
  return true;
}

bool HostGroup::peer_ready(const Meeting& m) const {
  return m.act == Act::Send
      ? channel_of(sizes_.rank, m.peer).received + 2 >= m.number
      : channel_of(m.peer, sizes_.rank).sent >= m.number;
}

bool HostGroup::may_start(const Meeting& m, const NextMeetings& next) {
  if (m.act == Act::Give) {
    return m.number == next.gives && m.number < next.ends + lead;
  }
  if (m.act == Act::Send || m.act == Act::Receive) {
    return peer_ready(m) && (m.act == Act::Send || agree(m, m.peer));
  }
  uint32_t behind = 0;
  if (m.number != next.ends || !all_reached(m, behind)) {
    return false;
  }
  for (uint32_t r = 0; r < sizes_.ranks; ++r) {
    if (r != sizes_.rank && !agree(m, r)) {
      return false;
    }
  }
  return true;
}

NextMeetings HostGroup::after(const Meeting& m, NextMeetings next) {
  if (m.act == Act::Meet || m.act == Act::Take) {
    next.ends = m.number + 1;
  }
  if (m.act == Act::Meet || m.act == Act::Give) {
    next.gives = m.number + 1;
  }
  return next;
}

void HostGroup::offer(const Meeting& m) {
  auto& mine = rank(sizes_.rank);
  if (mine.offered < m.number) {
    write_deal(mine.deals[m.number % most_deals], m);
    mine.offered = m.number;
  }
}

void HostGroup::pass(const Meeting& m) {
  if (m.act == Act::Give) {
    write_deal(rank(sizes_.rank).deals[m.number % most_deals], m);
  } else if (m.act == Act::Send) {
    write_deal(channel_of(sizes_.rank, m.peer).deals[m.number % 2], m);
  }
  next_ = after(m, next_);
}

void HostGroup::done(const Meeting& m) {
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
    if (uint32_t late = shared_->word(EXCHANGE_LATE(sizes_.rank))) {
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
  error_ = "[distributed] " + why + ". Restart the job's processes.";
  failed_ = true;
  auto& mine = rank(sizes_.rank);
  // What another rank said is told by that one.
  size_t size = std::min(why.size(), sizeof mine.why - 1);
  std::memcpy(mine.why, why.data(), size);
  mine.why[size] = 0;
  mine.failed.store(1, std::memory_order_release);
  std::atomic_ref(shared_->words[EXCHANGE_END]).store(1);
}

void HostGroup::look_for_ended() {
  for (uint32_t r = 0; r < sizes_.ranks && !failed_; ++r) {
    if (r != sizes_.rank && has_ended(processes_[r], watches_[r])) {
      fail(
          "The process of rank " + std::to_string(r) + " (" +
          std::to_string(processes_[r]) + ") has ended");
    }
  }
}

std::string HostGroup::waits_for(const Meeting& m) {
  uint32_t other = m.peer;
  if (m.act == Act::Meet || m.act == Act::Take) {
    all_reached(m, other);
  }
  if (other == sizes_.rank) {
    return "[mlx-vulkan] rank " + std::to_string(other) +
        " has much to do before " + describe(m.deal.what, m.deal.bytes) + ".";
  }
  return "[mlx-vulkan] rank " + std::to_string(sizes_.rank) +
      " waits for rank " + std::to_string(other) + " (process " +
      std::to_string(processes_[other]) + ") with " +
      describe(m.deal.what, m.deal.bytes) + ".";
}

} // namespace mlx::core::vulkan
