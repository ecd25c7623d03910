// Copies packs of other ranks from the shared memory to memory of this rank's
// device, where its kernels wait for them. While a kernel runs, a device may go
// on reading a stale copy of host memory (an H200 does, with every kind of
// load), but not of its own memory, which the host writes through the same
// cache.
//
// A slot has as many generations as in the shared memory, for the same reason:
// a rank gives n + 2 only when this rank's kernel is done with n. Threads: the
// encoding thread calls add(); a thread of the carrier does the jobs in their
// order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "ranks/host_group.h"
#include "runtime/allocation.h"

namespace mlx::core::vulkan {

class Carrier {
 public:
  // Bytes of a slot. More would take the CPU too long.
  static constexpr uint64_t room = 256 << 10;

  struct Job {
    uint64_t number = 0; // the rendezvous's
    uint64_t from = 0; // offset of rank 0's first pack in the shared memory
    uint64_t stride = 0; // from rank to rank, bytes
    uint32_t stamp = 0; // kernels/exchange.h
    uint32_t packs = 0; // per rank
  };

  // `region`: the shared bytes.
  Carrier(std::shared_ptr<HostGroup> group, const void* region);
  ~Carrier();
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  void add(const Job& job);
  // The device address of rank 0's packs, and bytes from there to the next
  // rank's.
  uint64_t address(uint64_t number) const;
  static uint64_t stride() {
    return room;
  }
  // The device address of a word that is set when the group fails, which ends
  // the kernels' waits.
  uint64_t end() const;

 private:
  void loop();
  bool carry(const Job& job, uint32_t rank);
  bool give_up(uint64_t turn);
  uint64_t size() const; // bytes of all slots
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
