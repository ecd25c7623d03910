#include "ranks/carrier.h"

#include <chrono>
#include <cstring>

#include "kernels/exchange.h"
#include "runtime/device.h"

namespace mlx::core::vulkan {

namespace {

constexpr uint64_t pack_bytes = 16;
// Polls for a pack or a job before it sleeps between polls: a millisecond or
// so.
constexpr uint64_t spins = 1 << 16;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// False if the pack is missing or incomplete.
bool read_pack(const char* at, uint32_t stamp, uint32_t (&w)[4]) {
  auto* words = reinterpret_cast<const volatile uint32_t*>(at);
  for (int i = 0; i < 4; ++i) {
    w[i] = words[i];
  }
  return w[3] == exchange_stamp(stamp, w[0], w[1], w[2]);
}

} // namespace

Carrier::Carrier(std::shared_ptr<HostGroup> group, const void* region)
    : group_(std::move(group)), region_(static_cast<const char*>(region)) {
  // Never freed: kernels may be looking there when the process ends.
  memory_ = device().memory().allocate_mapped(size() + pack_bytes);
  std::memset(memory_.mapped, 0, size() + pack_bytes);
  thread_ = std::thread([this] { loop(); });
}

Carrier::~Carrier() {
  stopping_ = true;
  { std::lock_guard lock(mutex_); }
  added_.notify_all();
  if (forked_from_started_device()) {
    thread_.detach(); // it runs in the parent only
  } else {
    thread_.join();
  }
}

uint64_t Carrier::size() const {
  return group_->sizes().ranks * HostGroup::generations * room;
}

uint64_t Carrier::end() const {
  return memory_.address + size();
}

uint64_t Carrier::place(uint64_t number, uint32_t rank) const {
  return (number % HostGroup::generations * group_->sizes().ranks + rank) *
      room;
}

uint64_t Carrier::address(uint64_t number) const {
  return memory_.address + place(number, 0);
}

void Carrier::add(const Job& job) {
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back(job);
    waiting_++;
  }
  added_.notify_one();
}

bool Carrier::give_up(uint64_t turn) {
  if (turn < spins) {
    pause();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  if (turn % 1024 != 1023) {
    return false;
  }
  bool failed = !group_->error().empty();
  if (failed) {
    // A kernel may be waiting for the same pack.
    auto* end = static_cast<char*>(memory_.mapped) + size();
    *reinterpret_cast<volatile uint32_t*>(end) = 1;
  }
  return failed || stopping_;
}

bool Carrier::carry(const Job& job, uint32_t rank) {
  const char* from = region_ + job.from + rank * job.stride;
  char* to = static_cast<char*>(memory_.mapped) + place(job.number, rank);
  uint32_t w[4];
  for (uint32_t i = 0; i < job.packs; ++i) {
    const char* pack = from + i * pack_bytes;
    for (uint64_t turn = 0; !read_pack(pack, job.stamp, w); ++turn) {
      if (give_up(turn)) {
        return false;
      }
    }
    std::memcpy(to + i * pack_bytes, w, pack_bytes);
  }
  // Drains the CPU's write-combining buffers.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return true;
}

void Carrier::loop() {
  while (true) {
    for (uint64_t turn = 0; waiting_ == 0 && turn < spins; ++turn) {
      pause();
    }
    Job job;
    {
      std::unique_lock lock(mutex_);
      added_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_) {
        return;
      }
      job = jobs_.front();
      jobs_.pop_front();
      waiting_--;
    }
    auto& sizes = group_->sizes();
    for (uint32_t rank = 0; rank < sizes.ranks; ++rank) {
      if (rank != sizes.rank && !carry(job, rank)) {
        break;
      }
    }
  }
}

} // namespace mlx::core::vulkan
