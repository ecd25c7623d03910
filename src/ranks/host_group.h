// Processes of one host (ranks) exchange data through memory that all of them
// map and all of their devices import. This is the host's part: the gate that
// decides when a record may be submitted. kernels/exchange.h is the devices'
// part.
//
// A rendezvous is a record that other ranks take part in. Collective ones are
// numbered from 1 and run in that order on every rank. The queue holds a batch
// before a rendezvous that may not start, so no device waits for work
// that another rank has not prepared. There are two protocols:
//   Meet: one dispatch writes and reads; its invocations wait for the packs of
//     the other ranks. It starts when all ranks have offered it, that is when
//     it is their next rendezvous, its kernels are compiled and the device has
//     nearly reached it. The devices then wait for milliseconds at most.
//   Give, Take: two dispatches. The second one starts when the first is retired
//     on all ranks, so no device waits. Used by devices that share a chip, by
//     software devices, and for large arrays, which are exchanged in pieces: a
//     piece is given while the previous one is taken.
// Send and Receive are between two ranks, through the slots of their channel,
// in the order of their numbers.
//
// A rank's slot has 2 * lead = 4 generations, used in turn. When exchange n
// writes its generation, every rank has read exchange n - 4, because batches
// finish in the order in which they start:
// - When Give n starts, Take n - 2 has started; so all other ranks had finished
//   their Give n - 2, before which they had started their Take n - 4.
// - When Meet n begins, exchange n - 1 has begun to read; so all other ranks
//   had finished their Give n - 1, before which they had started their
//   Take n - 3, or had begun their Meet n - 1, after everything that precedes
//   it.
//
// Threads: the recorder calls may_start(), offer() and start(); any thread may
// call done() and fail(). Free of MLX and Vulkan.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/gate.h"

namespace mlx::core::vulkan {

enum class Act : uint8_t { Meet, Give, Take, Send, Receive };

// Parameters of an exchange, which must be equal on all ranks.
struct TransferPlan {
  const char* name = ""; // a string literal, for messages
  uint32_t kind = 0; // operation and type
  uint64_t bytes = 0; // size of a rank's array
  uint64_t first = 0; // first byte of this piece
};

struct Rendezvous : Hold {
  Rendezvous(Act act, uint32_t peer, uint64_t number, const TransferPlan& plan);

  Act act;
  uint32_t peer; // for Send and Receive
  uint64_t number; // from 1; Send and Receive count per channel
  TransferPlan plan;
};

constexpr uint32_t most_host_ranks = 16;

// The numbers of the next rendezvous, after those that have started.
struct NextRendezvous {
  uint64_t ends = 1; // a Meet or a Take
  uint64_t gives = 1;
  // Number of started messages to and from each peer.
  std::array<uint64_t, most_host_ranks> sent{}, received{};

  void started(const Rendezvous& rendezvous);
};

struct HostGroupSizes {
  uint32_t rank = 0, ranks = 1;
  uint64_t slot = 0; // bytes of a rank's slot, one generation
  uint64_t channel = 0; // bytes of a channel's slot, one of two
};

class HostGroup : public Gate {
 public:
  static constexpr uint64_t lead = 2; // most exchanges given but not taken
  static constexpr uint64_t generations = 2 * lead;

  // `memory`: bytes(sizes) of shared memory, initially zero, which must outlive
  // the group. `processes`: the process ids of all ranks, which are watched.
  HostGroup(
      void* memory,
      const HostGroupSizes& sizes,
      std::span<const int> processes);
  ~HostGroup() override;
  HostGroup(const HostGroup&) = delete;
  HostGroup& operator=(const HostGroup&) = delete;

  static uint64_t bytes(const HostGroupSizes& sizes);
  const HostGroupSizes& sizes() const {
    return sizes_;
  }
  // Byte offsets into the memory: the first slot, a rank's slot of an exchange,
  // the slot of a message.
  static uint64_t slots();
  uint64_t slot(uint32_t rank, uint64_t number) const;
  uint64_t channel(uint32_t from, uint32_t to, uint64_t number) const;
  // Bytes from a rank's slot to the next rank's.
  uint64_t slot_stride() const {
    return generations * sizes_.slot;
  }

  // The number of the next rendezvous, for encoding.
  uint64_t next_collective() {
    return ++collectives_;
  }
  uint64_t next_sent(uint32_t peer) {
    return ++sends_[peer];
  }
  uint64_t next_received(uint32_t peer) {
    return ++receives_[peer];
  }

  // Whether a rendezvous may start after those that `next` counts, which is
  // next_rendezvous() for the first one. Recorder only.
  bool may_start(const Rendezvous& rendezvous, const NextRendezvous& next);
  const NextRendezvous& next_rendezvous() const {
    return next_;
  }
  // Allows other ranks to start their part: the rendezvous is next here, or
  // follows others that were offered. Returns false, and offers nothing, if it
  // is too far ahead.
  bool offer(const Rendezvous& rendezvous);

  size_t may_start(Holds holds) override;
  void announce(std::vector<const Hold*> holds) override;
  void start(const Hold& hold) override;
  void done(const Hold& hold) override;
  // Reads the errors of other ranks and of devices.
  std::string error() override;
  // Fails the group on all ranks; the first error is kept.
  void fail(const std::string& why) override;
  // Other ranks may end after their last rendezvous.
  void look_for_ended(const Hold& hold) override;
  std::string waits_for(const Hold& hold) override;
  // Whether a device's report of a late rank fails the group; trials at start
  // say no.
  void set_late_fails(bool fails) {
    late_fails_ = fails;
  }

 private:
  struct Shared;
  struct Rank;
  struct Channel;
  struct SharedPlan;
  Rank& rank(uint32_t r) const;
  Channel& channel_of(uint32_t from, uint32_t to) const;
  const SharedPlan& plan_of(const Rendezvous& rendezvous, uint32_t rank) const;
  bool agree(const Rendezvous& rendezvous, uint32_t other);
  bool reached(const Rendezvous& rendezvous, uint32_t rank) const;
  uint32_t behind(const Rendezvous& rendezvous) const;

  Shared* shared_;
  HostGroupSizes sizes_;
  std::vector<int> processes_, watches_;
  std::atomic<uint64_t> collectives_{0};
  std::vector<uint64_t> sends_, receives_; // used by the encoding thread
  NextRendezvous next_; // used by the recorder
  std::mutex mutex_; // guards error_
  std::string error_;
  std::atomic<bool> failed_{false}, late_fails_{true};
};

} // namespace mlx::core::vulkan
