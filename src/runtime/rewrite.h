// Joins dispatches that decoding repeats into one (docs/dev/rewrites.md). Pure
// but for the kernels that it requests; runs before order.h.
//
// A group of records takes the place of its first one. It reads and writes all
// that they do, so that other holders of a value are not affected. Later
// members thus move up: each is compared, by byte ranges, with all records that
// it would pass, and within a group only what a rule expects may overlap.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "runtime/batch.h"
#include "runtime/rewrite_variants.h"

namespace mlx::core::vulkan {

// The rule by which a record joins a group.
enum class Rule : uint8_t {
  Siblings, // a product of the same rows
  Residual, // a sum with a product
  Gate, // the gated product of two of them
  Norm, // the norm of their row
  Rope, // heads of q, k and v: norm, rotation, copy into a cache
  // For layers of experts:
  Router, // the operations after a router's softmax
  Experts, // gate, up and their gated product
  Combine, // the operations after the products of a row's experts
  Attention, // over a quantized cache (rewrite_attention.h)
  Count
};

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
  std::array<Row, size_t(Rule::Count)> rules;
};
RewriteCounters& rewrite_counters();
void count_joined(Rule rule, uint32_t records);
void count_missed(Rule rule, Miss why);
const char* name_of(Rule rule);
const char* name_of(Miss miss);

// Joined kernels.
class FusedKernels {
 public:
  virtual ~FusedKernels() = default;
  // Null if there is none. The variant is refused from then on, until it is
  // compiled.
  virtual const Kernel* find(const JoinedKernel& variant) = 0;
  virtual bool refused(const JoinedKernel& variant) const = 0;
  // Whether the device has the registers for it.
  virtual bool fits(const JoinedKernel& variant) const = 0;
  // Whether this many heads are rotated faster with their norms and copies.
  virtual bool fits_heads(uint64_t count) const = 0;
};

class SelectLog;

// Replaces the records by as many or fewer that do the same, in order.
void rewrite(
    std::vector<Record>& records,
    std::vector<Access>& accesses,
    std::vector<std::byte>& arguments,
    FusedKernels& kernels,
    SelectLog* log = nullptr);

// Finds the kernels that rewrite() would request if the list were two batches,
// cut anywhere, because a model's length decides where batches end.
void find_of_cuts(
    const std::vector<Record>& records,
    const std::vector<Access>& accesses,
    const std::vector<std::byte>& arguments,
    FusedKernels& kernels);

} // namespace mlx::core::vulkan
