// What the rules of rewrite.h did: counters, and the text of
// MLX_VK_DEBUG=select: what each record of a batch is, the kernel that ran for
// it, the rule that joined it and the reasons of the rules that did not. The
// text holds all that the rules see, so that null_tests can apply them again
// (tests/null/batches). Pure.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/batch.h"
#include "runtime/rewrite_families.h"

namespace mlx::core::vulkan {

// Why a rule did not join a record that it considered.
enum class Miss : uint8_t {
  Order, // it would pass a record that it depends on
  Overlap, // it writes what other workgroups may still read
  Form, // formats or orders of summation differ, or it is too large
  Registers, // the joined kernel would spill on this class of GPU
  Kernel, // not compiled
  Count
};

// Counts since the process began. Thread-safe.
struct RewriteCounters {
  struct Row {
    std::atomic<uint64_t> fired{0};
    std::array<std::atomic<uint64_t>, size_t(Miss::Count)> missed{};
  };
  std::array<Row, rule_names.count> rules;
};
RewriteCounters& rewrite_counters();
void count_joined(Rule rule, uint32_t records);
void count_missed(Rule rule, Miss why);
const char* name_of(Miss miss);

class SelectLog {
 public:
  // Records the batch before any rule is applied.
  SelectLog(
      const std::vector<Record>& records,
      const std::vector<Access>& accesses,
      const std::vector<std::byte>& arguments);

  void joined(uint32_t record, Rule rule);
  void missed(uint32_t record, Rule rule, Miss why);
  // These records run as one, in the place of record `place`.
  void run(std::span<const uint32_t> members, uint32_t place);

  // A line a record; `records` are what is left of the list.
  std::string text(const std::vector<Record>& records) const;

 private:
  struct Node {
    std::string descriptor; // up to its operands and arguments
    uint32_t place;
    std::string why;
  };
  std::vector<Node> nodes_;
};

} // namespace mlx::core::vulkan
