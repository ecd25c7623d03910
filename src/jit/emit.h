// A fused elementwise graph -> GLSL. Pure: no MLX, no Vulkan, no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/key.h"

namespace mlx::core::vulkan {

// Values are numbered: inputs first, then operations, in order.
struct FusedInput {
  Type type = Type::f32;
  bool constant = false; // inlined; `bits` hold the item
  bool scalar = false; // no dimensions: item 0 is read
  uint64_t bits = 0;

  bool strided() const {
    return !constant && !scalar;
  }
};

struct FusedOp {
  Type type = Type::f32;
  std::string function; // of common/*_ops.glsl; empty: a cast
  std::vector<int> args;
};

struct FusedGraph {
  std::vector<FusedInput> inputs;
  std::vector<FusedOp> ops;
  std::vector<int> outputs; // values
};

// One text for every form; defines choose among them:
//   FORM 0  all arrays share one dense layout
//   FORM 1  row-contiguous outputs, inputs of up to 4 dimensions of any stride
//   FORM 2  the same with up to 16 dimensions
//   FORM 3  as FORM 0, four items at a time (addresses are aligned for it)
//   LARGE   64-bit indices
// Arguments: an address per input that is not constant, one per output, then
// uint64 items (FORM 0, 3), or uint64 rows, uint32 last, int32 ndim, int32
// shape[D] and int64 strides[D] per input that is neither constant nor scalar.
// Throws std::invalid_argument for a graph that is not in order.
std::string emit_fused(const FusedGraph& graph);

// "float", "int8_t", ...: the value type of a dtype.
const char* glsl_type(Type type);
// A literal with exactly these bits.
std::string glsl_constant(Type type, uint64_t bits);

} // namespace mlx::core::vulkan
