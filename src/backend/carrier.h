// Brings what other ranks have given from the shared memory to memory of this
// rank's own device, where its kernels wait for it. A device may go on reading
// a stale copy of host memory as long as a kernel runs (an H200 does, whatever
// the load is called), but not of its own memory, which the host writes through
// the same cache.
//
// A slot has as many generations as in the shared memory, and for the same
// reason: a rank gives its n + 2 only when this one's kernel has done with n.
// Threads: add() belongs to who encodes; a thread of its own carries, one job
// after the other in their order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime/allocation.h"
#include "runtime/host_group.h"

namespace mlx::core::vulkan {

class Carrier {
 public:
  // Bytes of a slot: what is larger takes the CPU too long.
  static constexpr uint64_t room = 256 << 10;

  struct Job {
    uint64_t number = 0; // of the rendezvous
    uint64_t from = 0; // of rank 0's first pack in the shared memory
    uint64_t stride = 0; // from rank to rank, bytes
    uint32_t stamp = 0; // kernels/exchange.h
    uint32_t packs = 0; // of each rank
  };

  // `region` are the shared bytes.
  Carrier(std::shared_ptr<HostGroup> group, const void* region);
  ~Carrier();
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  void add(const Job& job);
  // Where the packs of rank 0 will be, and how far on the next rank's are.
  uint64_t address(uint64_t number) const;
  static uint64_t stride() {
    return room;
  }
  // Of the word that ends the kernels' waits, which is set when the group
  // fails.
  uint64_t end() const;

 private:
  void loop();
  bool carry(const Job& job, uint32_t rank);
  bool give_up(uint64_t turn);
  uint64_t size() const; // of all slots
  uint64_t place(uint64_t number, uint32_t rank) const;

  std::shared_ptr<HostGroup> group_;
  const char* region_;
  Allocation memory_;
  std::mutex mutex_; // jobs_
  std::condition_variable added_;
  std::deque<Job> jobs_;
  std::atomic<uint32_t> waiting_{0}; // jobs
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

} // namespace mlx::core::vulkan
