// Code generator for fused elementwise graphs: graph to GLSL. Pure: no MLX, no
// Vulkan, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/key.h"
#include "runtime/descriptor.h"

namespace mlx::core::vulkan {

// Values are numbered in order: inputs first, then operations.
struct FusedInput {
  Type type = Type::f32;
  bool constant = false; // inlined; `bits` holds the value
  bool scalar = false; // no dimensions: item 0 is broadcast
  uint64_t bits = 0;

  bool strided() const {
    return !constant && !scalar;
  }
};

struct FusedOp {
  Type type = Type::f32;
  std::string function; // a function of common/*_ops.glsl; empty: a cast
  std::vector<int> args;
};

struct FusedGraph {
  std::vector<FusedInput> inputs;
  std::vector<FusedOp> ops;
  std::vector<int> outputs; // value numbers
};

// Returns one text for every FORM (kernels/elementwise.h) and both values of
// LARGE. Arguments: an address per non-constant input and per output, then the
// item count (uint64) of a dense form, or StridedItems over the strided inputs.
// Throws std::invalid_argument if the graph is not in topological order.
std::string emit_fused(const FusedGraph& graph);

// The gate of quantized products that the graph computes, if any.
std::optional<GateRecord> gate_of(const FusedGraph& graph);

// A literal with exactly these bits.
std::string glsl_constant(Type type, uint64_t bits);

} // namespace mlx::core::vulkan
