#include "pipeline/contraction.h"

#include <stdexcept>
#include <unordered_set>

#include <SPIRV/spirv.hpp11>

#include "pipeline/reflect.h"

namespace mlx::core::vulkan {

namespace {

using enum spv::Op;
constexpr auto no_contraction = uint32_t(spv::Decoration::NoContraction);

bool is_float_arithmetic(spv::Op op) {
  switch (op) {
    case OpFNegate:
    case OpFAdd:
    case OpFSub:
    case OpFMul:
    case OpFDiv:
    case OpFRem:
    case OpFMod:
    case OpVectorTimesScalar:
    case OpMatrixTimesScalar:
    case OpVectorTimesMatrix:
    case OpMatrixTimesVector:
    case OpMatrixTimesMatrix:
    case OpOuterProduct:
    case OpDot:
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
  for (size_t i = spirv_header; i < spirv.size(); i += spirv[i] >> 16) {
    auto op = static_cast<spv::Op>(spirv[i] & spv::OpCodeMask);
    bool annotation = op >= OpDecorate && op <= OpGroupMemberDecorate;
    bool type = op >= OpTypeVoid && op <= OpTypeForwardPointer;
    if (!place && (annotation || type)) {
      place = i;
    }
    if (op == OpDecorate && spirv[i + 2] == no_contraction) {
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
        out.end(), {3u << 16 | uint32_t(OpDecorate), id, no_contraction});
  }
  out.insert(out.end(), spirv.begin() + place, spirv.end());
  return out;
}

} // namespace mlx::core::vulkan
