#include "pipeline/reflect.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include <SPIRV/spirv.hpp11>

namespace mlx::core::vulkan {

namespace {

using spv::Op;
using enum spv::Op;

struct TypeInfo {
  Op op;
  std::vector<uint32_t> operands; // after the result id
};

class Module {
 public:
  Reflection found; // capabilities, local size
  bool compute = false; // has a compute entry point
  std::unordered_map<uint32_t, TypeInfo> types;
  std::unordered_map<uint32_t, uint32_t> constants;
  std::unordered_map<uint32_t, uint32_t> array_strides;
  // struct id << 32 | member
  std::unordered_map<uint64_t, uint32_t> offsets;
  uint32_t push_pointer = 0; // type of the push constant variable
  std::vector<uint32_t> shared_pointers;
  mutable int depth = 0, visited = 0;

  // Reads one instruction with operands `w`.
  void read(Op op, std::span<const uint32_t> w);

  const TypeInfo& type(uint32_t id) const {
    auto it = types.find(id);
    if (it == types.end()) {
      throw std::runtime_error(
          "[vulkan] SPIR-V: the argument block has a member of unknown type.");
    }
    return it->second;
  }

  uint32_t size(uint32_t id) const {
    // A damaged module may hold a type that contains itself.
    if (++visited > 10000 || depth > 32) {
      throw std::runtime_error("[vulkan] SPIR-V: types are nested too deeply.");
    }
    ++depth;
    uint32_t n = size_of_type(id);
    --depth;
    return n;
  }

  uint32_t size_of_type(uint32_t id) const {
    auto& t = type(id);
    switch (t.op) {
      case OpTypeBool: // shared variables only
        return 4;
      case OpTypeInt:
      case OpTypeFloat:
        return t.operands.at(0) / 8;
      case OpTypePointer: // an address
        return 8;
      case OpTypeVector:
      case OpTypeMatrix: // shared variables only
        return size(t.operands.at(0)) * t.operands.at(1);
      case OpTypeArray: {
        uint32_t n = constant(t.operands.at(1));
        auto stride = array_strides.find(id);
        return n *
            (stride != array_strides.end() ? stride->second
                                           : size(t.operands.at(0)));
      }
      case OpTypeStruct: {
        uint32_t end = 0;
        for (uint32_t m = 0; m < t.operands.size(); ++m) {
          auto at = offsets.find(uint64_t(id) << 32 | m);
          // Structs in shared memory have no layout; members are summed.
          uint32_t offset = at != offsets.end() ? at->second : end;
          end = std::max(end, offset + size(t.operands[m]));
        }
        return end;
      }
      default:
        throw std::runtime_error(
            "[vulkan] SPIR-V: the argument block has a member that is not a "
            "number, vector, array, struct or address.");
    }
  }

  uint32_t constant(uint32_t id) const {
    auto it = constants.find(id);
    if (it == constants.end()) {
      throw std::runtime_error(
          "[vulkan] SPIR-V: an array's length is not a constant.");
    }
    return it->second;
  }

  // The type that a pointer type points to.
  uint32_t pointee(uint32_t id) const {
    auto& t = type(id);
    if (t.op != OpTypePointer) {
      throw std::runtime_error(
          "[vulkan] SPIR-V: expected a pointer to the argument block.");
    }
    return t.operands.at(1);
  }
};

void Module::read(Op op, std::span<const uint32_t> w) {
  auto need = [&](size_t n) { return w.size() >= n; };
  switch (op) {
    case OpCapability:
      if (need(1)) {
        found.capabilities.push_back(w[0]);
      }
      break;
    case OpEntryPoint:
      compute |= need(1) && w[0] == uint32_t(spv::ExecutionModel::GLCompute);
      break;
    case OpExecutionMode:
      if (need(5) && w[1] == uint32_t(spv::ExecutionMode::LocalSize)) {
        std::copy_n(w.begin() + 2, 3, found.local_size);
      }
      break;
    case OpTypeBool:
    case OpTypeInt:
    case OpTypeFloat:
    case OpTypeVector:
    case OpTypeMatrix:
    case OpTypeArray:
    case OpTypeStruct:
    case OpTypePointer:
      if (need(1)) {
        types[w[0]] = {op, {w.begin() + 1, w.end()}};
      }
      break;
    case OpConstant:
      if (need(3)) {
        constants[w[1]] = w[2];
      }
      break;
    case OpVariable:
      if (need(3)) {
        auto storage = static_cast<spv::StorageClass>(w[2]);
        if (storage == spv::StorageClass::PushConstant) {
          push_pointer = w[0];
        } else if (storage == spv::StorageClass::Workgroup) {
          shared_pointers.push_back(w[0]);
        }
        found.bindings |= storage == spv::StorageClass::UniformConstant ||
            storage == spv::StorageClass::Uniform ||
            storage == spv::StorageClass::StorageBuffer;
      }
      break;
    case OpDecorate:
      if (need(3) && w[1] == uint32_t(spv::Decoration::ArrayStride)) {
        array_strides[w[0]] = w[2];
      }
      break;
    case OpMemberDecorate:
      if (need(4) && w[2] == uint32_t(spv::Decoration::Offset)) {
        offsets[uint64_t(w[0]) << 32 | w[1]] = w[3];
      }
      break;
    default:
      break;
  }
}

} // namespace

bool is_spirv(std::span<const uint32_t> spirv) {
  if (spirv.size() < spirv_header || spirv[0] != spv::MagicNumber) {
    return false;
  }
  size_t i = spirv_header;
  while (i < spirv.size()) {
    uint32_t words = spirv[i] >> 16;
    if (words == 0 || words > spirv.size() - i) {
      return false;
    }
    i += words;
  }
  return true;
}

Reflection reflect(std::span<const uint32_t> spirv, bool args_in_memory) {
  if (!is_spirv(spirv)) {
    throw std::runtime_error("[vulkan] SPIR-V: not a whole module.");
  }
  Module m;
  for (size_t i = spirv_header; i < spirv.size(); i += spirv[i] >> 16) {
    m.read(
        static_cast<Op>(spirv[i] & 0xffff),
        spirv.subspan(i + 1, (spirv[i] >> 16) - 1));
  }
  if (!m.compute) {
    throw std::runtime_error("[vulkan] SPIR-V: no compute entry point.");
  }
  Reflection r = std::move(m.found);
  std::sort(r.capabilities.begin(), r.capabilities.end());
  r.capabilities.erase(
      std::unique(r.capabilities.begin(), r.capabilities.end()),
      r.capabilities.end());
  for (uint32_t pointer : m.shared_pointers) {
    r.shared_size += m.size(m.pointee(pointer));
  }
  if (m.push_pointer) {
    uint32_t block = m.pointee(m.push_pointer);
    r.push_size = r.args_size = m.size(block);
    if (args_in_memory) {
      auto& push = m.type(block);
      if (push.op != OpTypeStruct || push.operands.empty()) {
        throw std::runtime_error(
            "[vulkan] SPIR-V: arguments in memory need a pushed address.");
      }
      r.args_size = m.size(m.pointee(push.operands[0]));
    }
  }
  return r;
}

} // namespace mlx::core::vulkan
