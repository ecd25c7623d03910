// MLX_VK_DEBUG=select: what each record of a batch is, the kernel that ran for
// it, the rule that joined it and the reasons of the rules that did not. The
// text holds all that the rules see, so that null_tests can apply them again
// (tests/null/batches). Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/batch.h"

namespace mlx::core::vulkan {

enum class Rule : uint8_t;
enum class Miss : uint8_t;

// Calls f(name, member) for each member of a descriptor, in order.
#define MLXVK_FIELD(member) f(#member, v.member);
#define MLXVK_FIELDS(Descriptor, ...)        \
  template <typename F>                      \
  void fields_of(Descriptor& v, F&& f) {     \
    MLXVK_FOR_EACH(MLXVK_FIELD, __VA_ARGS__) \
  }
MLXVK_FIELDS(QmvVariant, QMV_MEMBERS)
MLXVK_FIELDS(QmmFragmentsVariant, FRAGMENTS_MEMBERS)
MLXVK_FIELDS(AddRecord, type)
MLXVK_FIELDS(GateRecord, type, gate, operand)
MLXVK_FIELDS(NormRecord, type, weight, vec, lanes)
MLXVK_FIELDS(
    SoftmaxRecord,
    variant.T,
    variant.LANES,
    variant.CHUNKS,
    variant.VEC,
    rows,
    n)
MLXVK_FIELDS(ArgSortRecord, type, rows, n)
MLXVK_FIELDS(TakeRecord, item, rows, n, k, pitch)
MLXVK_FIELDS(SumRecord, type, rows, extent, inner)
MLXVK_FIELDS(PerRowRecord, type, divides, rows, n)
MLXVK_FIELDS(ScoresRecord, type, bits, group, last_use)
MLXVK_FIELDS(MaskRecord, type, adds, mask, ndim)
MLXVK_FIELDS(RopeRecord, type, traditional, freqs)
MLXVK_FIELDS(CopyRecord, word, ndim)
#undef MLXVK_FIELDS
#undef MLXVK_FIELD

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
    std::string what; // up to its operands and arguments
    uint32_t place;
    std::string why;
  };
  std::vector<Node> nodes_;
};

} // namespace mlx::core::vulkan
