// Processes of one host (ranks) that exchange data through memory which all of
// them map and all of their devices import. This is the host's part: who may
// submit what when. kernels/exchange.h is the devices' part.
//
// A record that other ranks take part in is a meeting. Collective ones are
// numbered from 1 and run in that order on every rank: PendingQueue holds a
// batch before a meeting that may not start, so no device ever waits for work
// that another rank has not got ready. There are two ways:
//   Meet: one dispatch gives and takes, and its invocations wait for the other
//     ranks' packs. It starts when all ranks have offered it: it is next there,
//     its kernels are compiled, and the device is nearly there. What is left to
//     wait for on the device is a difference of milliseconds at most.
//   Give, Take: two dispatches; the second starts when the first is retired on
//     all ranks. No device ever waits. For devices that share one chip,
//     software ones, and large arrays: those go in pieces, a meeting each, of
//     which a next one is given while one is taken.
// Send and Receive are between two ranks, through the slots of their channel,
// in the order of their numbers.
//
// A rank's slot has 2 * lead generations, used in turn, and that is enough:
// nobody reads what n - 4 left where n writes. Batches are done in the order
// that they start in, so that
// - where Give n starts, Take n - 2 has; for that all others had done their
//   Give n - 2, before which they had started their Take n - 4;
// - where Meet n begins, n - 1 has begun to take; for that all others had done
//   their Give n - 1, before which they had started their Take n - 3, or had
//   begun their Meet n - 1, after all that they had before it.
//
// Threads: the recorder asks and passes; done() and fail() may come from any.
// Free of MLX and Vulkan.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace mlx::core::vulkan {

enum class Act : uint8_t { Meet, Give, Take, Send, Receive };

// What all ranks of a meeting must have in common.
struct Deal {
  const char* what = ""; // a literal, for messages
  uint32_t kind = 0; // of operation and type
  uint64_t bytes = 0; // of a rank's array
  uint64_t first = 0; // of them that this piece has
};

struct Meeting {
  Act act = Act::Meet;
  uint32_t peer = 0; // of Send and Receive
  uint64_t number = 0; // from 1; of Send and Receive those of their channel
  Deal deal;
};

constexpr uint32_t most_host_ranks = 16;

// The meetings that come next, where those before have started.
struct NextMeetings {
  uint64_t ends = 1; // a Meet or a Take
  uint64_t gives = 1;
  // Messages to and from each peer that have started.
  std::array<uint64_t, most_host_ranks> sent{}, received{};

  void started(const Meeting& meeting);
};

struct HostGroupSizes {
  uint32_t rank = 0, ranks = 1;
  uint64_t slot = 0; // bytes of a rank's slot, one generation
  uint64_t channel = 0; // bytes of a channel's slot, one of two
};

class HostGroup {
 public:
  static constexpr uint64_t lead = 2; // given, and not taken yet
  static constexpr uint64_t generations = 2 * lead;

  // `memory` is mapped, zero at first, of bytes(sizes), and stays. `processes`
  // are those of all ranks; they are watched.
  HostGroup(
      void* memory,
      const HostGroupSizes& sizes,
      std::span<const int> processes);
  ~HostGroup();
  HostGroup(const HostGroup&) = delete;
  HostGroup& operator=(const HostGroup&) = delete;

  static uint64_t bytes(const HostGroupSizes& sizes);
  const HostGroupSizes& sizes() const {
    return sizes_;
  }
  // Offsets into the memory.
  static uint64_t slots();
  uint64_t channel(uint32_t from, uint32_t to, uint64_t number) const;

  // While encoding: the number of a next meeting.
  uint64_t next_collective() {
    return ++collectives_;
  }
  uint64_t next_sent(uint32_t peer) {
    return ++sends_[peer];
  }
  uint64_t next_received(uint32_t peer) {
    return ++receives_[peer];
  }

  // The recorder's. Of meetings in their order: whether the one may start,
  // where those before it have, as `next` says: next_meetings() at first.
  bool may_start(const Meeting& meeting, const NextMeetings& next);
  const NextMeetings& next_meetings() const {
    return next_;
  }
  // Other ranks may start their part of it: it is next here, or follows others
  // that have been offered. False, and nothing is offered, where it is too far
  // ahead.
  bool offer(const Meeting& meeting);
  void pass(const Meeting& meeting); // it starts
  void done(const Meeting& meeting); // it is retired. Any thread

  // Why nothing of this group starts any more, or empty. Looks for what other
  // ranks and devices have said.
  std::string error();
  // Tells all ranks. The first sentence stays. Any thread.
  void fail(const std::string& why);
  // Fails if the process of a rank that `meeting` waits for has ended. Others
  // may have done all of theirs.
  void look_for_ended(const Meeting& meeting);
  // Once in a while, while `meeting` is held: says on stderr who is waited for.
  std::string waits_for(const Meeting& meeting);
  // False: what devices say of late ranks is for who tries them.
  void set_late_fails(bool fails) {
    late_fails_ = fails;
  }

 private:
  struct Shared;
  struct Rank;
  struct Channel;
  struct SharedDeal;
  Rank& rank(uint32_t r) const;
  Channel& channel_of(uint32_t from, uint32_t to) const;
  const SharedDeal& deal_of(const Meeting& meeting, uint32_t rank) const;
  bool agree(const Meeting& meeting, uint32_t other);
  bool reached(const Meeting& meeting, uint32_t rank) const;
  uint32_t behind(const Meeting& meeting) const;

  Shared* shared_;
  HostGroupSizes sizes_;
  std::vector<int> processes_, watches_;
  std::atomic<uint64_t> collectives_{0};
  std::vector<uint64_t> sends_, receives_; // the encoding thread's
  NextMeetings next_; // the recorder's
  std::mutex mutex_; // error_
  std::string error_;
  std::atomic<bool> failed_{false}, late_fails_{true};
};

} // namespace mlx::core::vulkan
