// A batch while rewrite.h looks at it: groups of records that become one.
#pragma once

#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "runtime/rewrite.h"
#include "runtime/rewrite_log.h"
#include "runtime/rewrite_variants.h"

namespace mlx::core::vulkan {

constexpr uint32_t none = ~0u;

inline bool overlap(const Access& a, const Access& b) {
  return a.base == b.base && a.begin < b.end && b.begin < a.end;
}
inline bool same_range(const Access& a, const Access& b) {
  return a.base == b.base && a.begin == b.begin && a.end == b.end;
}

// Products of the same rows, with what follows them. The first member's place
// is the group's.
struct Group {
  static constexpr uint32_t most = 2 * MAX_SETS + 2;
  struct Set {
    uint32_t product = none; // the record
    uint32_t adder = none;
    bool adds_first = false; // y is the adder's first operand
  };

  explicit Group(const RowsVariant& v) : variant(fused_product(v, false)) {}
  void add(uint32_t record) {
    members[size++] = record;
  }

  uint32_t members[most];
  uint32_t size = 0;
  FusedVariant variant;
  const Kernel* kernel = nullptr; // once the group is complete
  Set sets[MAX_SETS];
  uint32_t set_count = 1;
  uint32_t norm = none; // the first member, if any
  uint32_t gate = none;
  uint32_t gate_set = 0; // which set is the gate, not what it gates

  uint32_t first() const {
    return members[0];
  }
  std::span<const uint32_t> records() const {
    return {members, size};
  }
};

// Heads of q, k and v on their way to attention, which rope_cache.comp takes
// at once. The last member's place is the group's: k and v may be made between,
// and who needs what earlier members make waits for the last one anyway.
struct HeadGroup {
  // What becomes of some heads: part of it, or a copy of them as they are.
  struct Chain {
    uint32_t norm = none, rope = none, copy = none; // records
    uint32_t B = 1; // sequences
    bool vec = false;
    RopePart part{};
  };
  static constexpr uint32_t most = 3 * MAX_ROPE_PARTS;

  Type type;
  uint32_t lanes = 0; // of the norms
  RopeCacheVariant variant{};
  const Kernel* kernel = nullptr;
  Chain chains[MAX_ROPE_PARTS];
  uint32_t chain_count = 0;
  uint32_t members[most];
  uint32_t size = 0;
  uint32_t place = 0;

  std::span<const uint32_t> records() const {
    return {members, size};
  }
};

class Program {
 public:
  Program(
      const std::vector<Record>& records,
      const std::vector<Access>& accesses,
      const std::vector<std::byte>& arguments,
      SelectLog* log);

  std::span<const Access> of(uint32_t record) const {
    auto& r = records[record];
    return {accesses.data() + r.first_access, r.access_count};
  }
  const std::byte* args_of(uint32_t record) const {
    auto& r = records[record];
    return r.args_in_memory ? arguments.data() + r.args_offset : r.pushed;
  }
  uint64_t address(uint32_t record, uint32_t operand) const {
    uint64_t a;
    std::memcpy(&a, args_of(record) + 8 * operand, 8);
    return a;
  }
  bool conflict(uint32_t i, uint32_t j) const;
  // Whether `record` may run where the group does whose first is `first`.
  bool can_pass(uint32_t record, uint32_t group, uint32_t first) const;
  // What the members touch, each range once.
  void append_accesses(
      std::span<const uint32_t> members,
      std::vector<Access>& out) const;
  // Where a record runs: with the first or last of its group.
  uint32_t place_of(uint32_t record) const;

  // Counts that a rule did not join the record, and why. False.
  bool miss(uint32_t record, Rule rule, Miss why) const;
  // Counts records that a rule has joined with others.
  void fire(std::span<const uint32_t> joined, Rule rule) const;
  // Drops the records for which stays(i) is false.
  template <typename F>
  void keep(std::vector<Record>& records, F stays) const {
    size_t kept = 0;
    for (uint32_t i = 0; i < records.size(); ++i) {
      if (stays(i)) {
        if (kept != i) {
          records[kept] = records[i];
        }
        ++kept;
      }
    }
    if (log) {
      log->keep(stays);
    }
    records.resize(kept);
  }

  const std::vector<Record>& records;
  const std::vector<Access>& accesses;
  const std::vector<std::byte>& arguments;
  SelectLog* const log; // or null
  std::vector<Group> groups;
  std::vector<HeadGroup> heads;
  std::vector<uint32_t>
      group_of; // by record: of `groups`, or `heads` + of_heads
  static constexpr uint32_t of_heads = 1u << 31;
  uint32_t last_norm = none;
  std::array<uint32_t, 4> norms; // the last ones

 private:
  struct Touched {
    uint64_t any = 0, written = 0; // a bit by each base
  };
  std::vector<Touched> touched_;
};

// Adds the record to a group, or makes it one that others may join.
void match(Program& p, uint32_t record, const FusedKernels& kernels);

void match_heads(Program& p, uint32_t record, const FusedKernels& kernels);

// The record that a group becomes, but for its accesses. A large argument block
// goes to `arguments`.
Record
build(const Program& p, const Group& group, std::vector<std::byte>& arguments);
Record build(
    const Program& p,
    const HeadGroup& group,
    std::vector<std::byte>& arguments);

} // namespace mlx::core::vulkan
