// A fused elementwise graph -> GLSL. Pure: no MLX, no Vulkan, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/key.h"
#include "runtime/descriptor.h"

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

// One text for every FORM (kernels/elementwise.h) and both of LARGE. Arguments:
// an address per input that is not constant, one per output, then uint64 items
// of a dense form, or StridedItems whose operands are the strided inputs.
// Throws std::invalid_argument for a graph that is not in order.
std::string emit_fused(const FusedGraph& graph);

// Which gate of quantized products the graph is, if it is one.
std::optional<GateRecord> gate_of(const FusedGraph& graph);

// A literal with exactly these bits.
std::string glsl_constant(Type type, uint64_t bits);

} // namespace mlx::core::vulkan
