#include "pipeline/contraction.h"

#include <stdexcept>
#include <unordered_set>

#include "pipeline/reflect.h"

namespace mlx::core::vulkan {

namespace {

// From the SPIR-V specification.
constexpr uint32_t header_words = 5;
constexpr uint32_t op_type_void = 19;
constexpr uint32_t op_type_forward_pointer = 39;
constexpr uint32_t op_decorate = 71;
constexpr uint32_t op_group_member_decorate = 75;
constexpr uint32_t decoration_no_contraction = 42;

bool is_float_arithmetic(uint32_t op) {
  switch (op) {
    case 127: // OpFNegate
    case 129: // OpFAdd
    case 131: // OpFSub
    case 133: // OpFMul
    case 136: // OpFDiv
    case 140: // OpFRem
    case 141: // OpFMod
    case 142: // OpVectorTimesScalar
    case 143: // OpMatrixTimesScalar
    case 144: // OpVectorTimesMatrix
    case 145: // OpMatrixTimesVector
    case 146: // OpMatrixTimesMatrix
    case 147: // OpOuterProduct
    case 148: // OpDot
      return true;
    default:
      return false;
  }
}

} // namespace

bool forbids_contraction(std::string_view text) {
  constexpr std::string_view pragma = "#pragma STDC FP_CONTRACT OFF";
  auto is_end = [&](size_t i) { return i == text.size() || text[i] == '\n'; };
  for (auto at = text.find(pragma); at != text.npos;
       at = text.find(pragma, at + 1)) {
    if ((at == 0 || text[at - 1] == '\n') && is_end(at + pragma.size())) {
      return true;
    }
  }
  return false;
}

std::vector<uint32_t> without_contraction(const std::vector<uint32_t>& spirv) {
  if (!is_spirv(spirv)) {
    throw std::invalid_argument(
        "[vulkan] without_contraction: not a whole SPIR-V module.");
  }
  // Decorations stand before the first type; a target has each only once.
  size_t place = 0;
  std::unordered_set<uint32_t> decorated; // by `precise`
  std::vector<uint32_t> results;
  for (size_t i = header_words; i < spirv.size(); i += spirv[i] >> 16) {
    uint32_t op = spirv[i] & 0xffff;
    bool annotation = op >= op_decorate && op <= op_group_member_decorate;
    bool type = op >= op_type_void && op <= op_type_forward_pointer;
    if (!place && (annotation || type)) {
      place = i;
    }
    if (op == op_decorate && spirv[i + 2] == decoration_no_contraction) {
      decorated.insert(spirv[i + 1]);
    } else if (is_float_arithmetic(op)) {
      results.push_back(spirv[i + 2]);
    }
  }
  std::erase_if(results, [&](uint32_t id) { return decorated.contains(id); });

  std::vector<uint32_t> out;
  out.reserve(spirv.size() + 3 * results.size());
  out.assign(spirv.begin(), spirv.begin() + place);
  for (uint32_t id : results) {
    out.insert(
        out.end(), {3u << 16 | op_decorate, id, decoration_no_contraction});
  }
  out.insert(out.end(), spirv.begin() + place, spirv.end());
  return out;
}

} // namespace mlx::core::vulkan
