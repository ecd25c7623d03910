// Joins dispatches that decoding repeats into one (docs/dev/rewrites.md). Pure
// but for the kernels that it requests; runs before order.h.
//
// A group of records takes the place of its first one. It reads and writes all
// that they do, so that other holders of a value are not affected. Later
// members thus move up: each is compared, by byte ranges, with all records that
// it would pass, and within a group only what a rule expects may overlap.
//
// A batch is a list of described records, groups are records that become one,
// and patterns are data. The engine alone knows order, overlaps and moves, and
// counts what joins and what does not.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "runtime/batch.h"
#include "runtime/rewrite_families.h"
#include "runtime/rewrite_log.h"

namespace mlx::core::vulkan {

class PipelineTable;

// Joined kernels.
class FusedKernels {
 public:
  virtual ~FusedKernels() = default;
  // Registers the kernel. Null if it does not compile; its variant is refused
  // from then on.
  virtual const Kernel* find(const JoinedKernel& variant) = 0;
  // Lets a kernel of the table be compiled.
  virtual void start(const Kernel& kernel) = 0;
  virtual bool refused(const JoinedKernel& variant) const = 0;
  // Whether the device has the registers for it.
  virtual bool fits(const JoinedKernel& variant) const = 0;
  // Whether this many heads are rotated faster with their norms and copies.
  virtual bool fits_heads(uint64_t count) const = 0;
};

// Replaces the records by as many or fewer that do the same, in order, and
// returns null. Until all kernels of the result are compiled it starts them,
// returns one of them and changes nothing, because the records stay as they are
// where a joined kernel does not compile.
const Kernel* rewrite(
    std::vector<Record>& records,
    std::vector<Access>& accesses,
    std::vector<std::byte>& arguments,
    FusedKernels& kernels,
    SelectLog* log = nullptr);

// Starts the kernels that the list would need if it were cut in two batches, at
// any record, because a model's length decides where batches end. Returns one
// of them that is being compiled, or null.
const Kernel* start_of_cuts(
    const std::vector<Record>& records,
    const std::vector<Access>& accesses,
    const std::vector<std::byte>& arguments,
    FusedKernels& kernels);

// On: later batches also wait for the kernels of their parts (start_of_cuts()).
// For `mlx-vulkan cache warm`. Any thread.
void prepare_cuts(bool on);

// The joined kernels of a device, compiled at first use. One that does not
// compile is named on stderr once, and its records run as they are. Threads:
// the recorder's.
class CompiledFusions : public FusedKernels {
 public:
  CompiledFusions(PipelineTable& pipelines, const Target& target);

  const Kernel* find(const JoinedKernel& variant) override;
  void start(const Kernel& kernel) override;
  bool refused(const JoinedKernel& variant) const override;
  bool fits(const JoinedKernel& variant) const override;
  bool fits_heads(uint64_t count) const override;

  const Kernel* rewrite(Batch& batch);

 private:
  PipelineTable& pipelines_;
  const Target& target_;
  std::vector<std::pair<JoinedKernel, const Kernel*>> known_;
  std::vector<JoinedKernel> refused_;
};

inline bool overlap(const Access& a, const Access& b) {
  return a.base == b.base && a.begin < b.end && b.begin < a.end;
}
inline bool same_range(const Access& a, const Access& b) {
  return a.base == b.base && a.begin == b.begin && a.end == b.end;
}

// Whether the order of two records matters.
inline bool conflict(std::span<const Access> a, std::span<const Access> b) {
  for (const auto& x : a) {
    for (const auto& y : b) {
      if ((x.write || y.write) && overlap(x, y)) {
        return true;
      }
    }
  }
  return false;
}

// Typed access to the records of a batch.
struct Records {
  const std::vector<Record>& records;
  const std::vector<Access>& accesses;
  const std::vector<std::byte>& arguments;

  std::span<const Access> of(uint32_t record) const {
    auto& r = records[record];
    return {accesses.data() + r.first_access, r.access_count};
  }
  const Access& output(uint32_t record) const {
    return of(record).back();
  }
  uint64_t address(uint32_t record, uint32_t operand) const {
    return read<uint64_t>(record, 8 * operand);
  }
  uint64_t output_address(uint32_t record) const {
    return address(record, records[record].access_count - 1);
  }
  template <typename R>
  const R& record(uint32_t record) const {
    return *std::get_if<R>(&records[record].descriptor);
  }
  // The parameters of a descriptor R.
  template <typename R>
  typename R::Args args(uint32_t record) const {
    return read<typename R::Args>(record, 8 * records[record].access_count);
  }
  // What the record does to heads; null if it does nothing to them.
  const Heads* heads(uint32_t record) const {
    return std::visit(
        [](auto& descriptor) -> const Heads* {
          if constexpr (requires { descriptor.heads; }) {
            return &descriptor.heads;
          } else {
            return nullptr;
          }
        },
        records[record].descriptor);
  }
  // Where its heads begin: in its first operand, or in its output.
  uint64_t heads_at(uint32_t record, Heads::Side side) const {
    auto& h = *heads(record);
    return side == Heads::in ? address(record, 0) + h.in_offset
                             : output_address(record) + h.out_offset;
  }

 private:
  template <typename T>
  T read(uint32_t record, size_t at) const {
    auto& r = records[record];
    T value;
    std::memcpy(
        &value,
        (r.args_in_memory ? arguments.data() + r.args_offset : r.pushed) + at,
        sizeof value);
    return value;
  }
};

inline Records records_of(const Batch& b) {
  return {b.records, b.accesses, b.arguments};
}

constexpr uint32_t window = 64; // records that a pattern spans at most

// The last record of kind R near the end of an open batch that made the range,
// or none.
template <typename R>
uint32_t find_maker(const Records& p, const Access& range) {
  auto end = static_cast<uint32_t>(p.records.size());
  for (uint32_t i = end; i-- > 0 && i + window >= end;) {
    if (std::holds_alternative<R>(p.records[i].descriptor) &&
        same_range(p.output(i), range)) {
      return i;
    }
  }
  return none;
}
// From nodes[0], sets each nodes[e + 1]: the last record that edge e leads to,
// or none.
void trace(const Records& p, std::span<const Edge> edges, uint32_t* nodes);
// Whether these records, of which any may be none, may run behind all others:
// no other one after them conflicts.
bool may_run_last(const Records& p, std::span<const uint32_t> members);

// Records that become one, in ascending order unless the group runs last.
struct Group {
  static constexpr uint32_t most = 3 * MAX_ROPE_PARTS;
  static_assert(most >= 2 * MAX_SETS + 2);

  Group() {} // not = default: that would fill `members` with zeros

  uint32_t members[most];
  uint32_t size = 0;
  uint32_t place = none; // of the record in whose place the group runs
  JoinedKernel variant;
  const Kernel* kernel = nullptr; // once the group is complete
  Families::Parts parts;

  std::span<const uint32_t> records() const {
    return {members, size};
  }
  bool has(uint32_t record) const {
    return std::count(members, members + size, record) > 0;
  }
  bool runs_last() const {
    return Families::run_last[parts.index()];
  }
};

class Program : public Records {
 public:
  Program(const Records& all, const FusedKernels& kernels);

  // Forms groups from the beginning.
  void match();
  bool conflict(uint32_t i, uint32_t j) const {
    return may_conflict(i, j) && vulkan::conflict(of(i), of(j));
  }
  // A fast test by bits: false means that they do not conflict.
  bool may_conflict(uint32_t i, uint32_t j) const {
    auto &a = nodes_[i], &b = nodes_[j];
    return (a.written & b.any) | (a.any & b.written);
  }
  // Appends the members' accesses, each range once.
  void append_accesses(
      std::span<const uint32_t> members,
      std::vector<Access>& out) const;
  // The index of the record in whose place this one runs.
  uint32_t place_of(uint32_t record) const {
    return nodes_[record].place;
  }
  // The number of its group, or none.
  uint32_t group_of(uint32_t record) const {
    return nodes_[record].group;
  }
  // The last records of a kind that stand near enough before `record`, newest
  // first, until f is true; false if it never is.
  template <typename F>
  bool any_recent(uint8_t kind, uint32_t record, F f) const {
    auto& r = recent_[kind];
    for (uint32_t i = 0; i < std::min(r.count, Recent::most); ++i) {
      uint32_t k = r.at[(r.count - 1 - i) % Recent::most];
      if (k + window > record && f(k)) {
        return true;
      }
    }
    return false;
  }
  // Whether f(k) holds for a group of the family that may still grow: one of
  // the last few that run last and whose place is near `record`.
  template <typename F>
  bool any_growing(uint8_t family, uint32_t record, F f) const {
    size_t n = run_last_.size();
    for (size_t i = 0; i < std::min(n, most_growing); ++i) {
      uint32_t g = run_last_[n - 1 - i];
      if (groups[g].parts.index() == family &&
          groups[g].place + near_by >= record && f(g)) {
        return true;
      }
    }
    return false;
  }

  // Counts why `record` did not join, once if several groups have the same
  // reason; returns false.
  bool miss(uint32_t record, Rule rule, Miss why) {
    Event e{record, rule, why};
    if (events.empty() || events.back() != e) {
      events.push_back(e);
    }
    return false;
  }
  std::vector<Group> groups;
  // Records that joined (Miss::Count) and that did not.
  struct Event {
    uint32_t record;
    Rule rule;
    Miss miss;
    bool operator==(const Event&) const = default;
  };
  std::vector<Event> events;
  const FusedKernels& kernels;

 private:
  static constexpr size_t most_growing = 2; // of the groups that run last
  // A record joins a group at most so many records behind the group's last.
  static constexpr uint32_t near_by = 10;

  // One of 64 bits, by the base of the access.
  static uint64_t bit_of(const Access& a) {
    return uint64_t(1) << (a.base * 0x9e3779b97f4a7c15ull >> 58);
  }
  struct Node {
    uint64_t any = 0, written = 0; // bits of its accesses
    uint32_t group, place;
  };
  struct Recent {
    static constexpr uint32_t most = 6;
    uint32_t at[most];
    uint32_t count = 0;
  };

  // Whether the added records may run at the place of groups[number].
  bool can_move(
      const Group& g,
      uint32_t number,
      std::span<const uint32_t> added) const;
  bool can_pass(uint32_t record, const Group& g, uint32_t number) const;
  bool can_sink(uint32_t member, uint32_t from, const Group& g, uint32_t to)
      const;
  bool apply(const Pattern& pattern, uint32_t record);
  // Makes the records `added` members of the match's changed group, which
  // replaces groups[number] or is appended to the groups; the last of them is
  // being matched.
  bool join(Match& match, uint32_t number, std::span<const uint32_t> added);
  // Tries nodes `record` and `maker`, whose output is the operand, with the
  // groups that they may join or begin: groups[joined] if the pattern joins.
  bool attempt(
      const Pattern& pattern,
      uint32_t record,
      uint32_t maker,
      int8_t operand,
      uint32_t joined = none);
  // Tries to join groups[number], or a new group.
  bool attempt_with(
      uint32_t number,
      const Pattern& pattern,
      uint32_t record,
      uint32_t maker,
      int8_t operand);

  std::vector<Node> nodes_; // of the records
  std::vector<uint32_t> run_last_; // groups that do, in order
  std::array<Recent, std::variant_size_v<Descriptor>> recent_;
};

// A pattern and the nodes found for it.
struct Match {
  static constexpr uint32_t most = 4;

  const Program& p;
  const Pattern& pattern;
  uint32_t nodes[most]; // records; none: an optional one that is not there
  int8_t operands[most - 1]; // of each edge
  Group changed;

  // The descriptor of node 0.
  template <typename R>
  const R& record() const {
    return p.record<R>(nodes[0]);
  }
  template <typename T>
  T& parts() {
    return *std::get_if<T>(&changed.parts);
  }
  bool allows(
      uint32_t record,
      uint32_t operand,
      uint32_t member,
      uint32_t other) const;
  // Whether one invocation makes all accesses to memory that the record and
  // the members of the changed group share and one of them writes.
  bool shares(uint32_t record) const;
};

} // namespace mlx::core::vulkan
