// Kernels in the Metal Shading Language to GLSL of this project's dialect, for
// mx.fast.metal_kernel. Free of Vulkan and MLX; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace msl {

// A place in the user's header or body, both counted from 1.
struct Place {
  bool in_header = false;
  uint32_t line = 0, column = 0;
  // Float operations here round one by one, as written (pragmas.h).
  bool exact = false;
};

// An unsupported construct and what to use instead, as a sentence. what() is
// that sentence, message() the whole message for users.
class Error : public std::runtime_error {
 public:
  Error(const Place& place, const std::string& message)
      : std::runtime_error(message), place(place) {}
  Place place;

  // "[metal_kernel] NAME: line 12 of the body, column 3: `the line`: sentence"
  std::string message(
      std::string_view name,
      std::string_view header,
      std::string_view body) const;
};

// An argument of the kernel's function, in MLX's order: inputs, each followed
// by its x_shape, x_strides and x_ndim if the body names them, then outputs.
struct Argument {
  std::string name;
  std::string type; // of its elements, in MSL: float, bfloat16_t, int64_t, bool
  bool output = false; // device; else read only
  bool constant = false; // in the constant space (small inputs, shapes)
  bool reference = false; // constant T&: inputs of no dimensions, x_ndim
  bool atomic = false; // device atomic<T>*
};

struct TemplateValue {
  std::string name;
  std::variant<std::string, int64_t, bool> value; // a type by its MSL name
};

struct Source {
  std::string name;
  std::string header, body;
  std::vector<Argument> arguments;
  std::vector<TemplateValue> templates;
};

struct Target {
  // The number of invocations that every subgroup of the pipeline has; below
  // 32, SIMD-groups are emulated in shared memory.
  uint32_t subgroup = 32;
  // Whether the address of every argument is a multiple of 16, as MSL's vectors
  // require; otherwise they are read and written by items.
  bool aligned = false;
  uint32_t shared_bytes = 32 << 10;
  // Whether main() then reports loops that were cut off
  // (common/whole_loops.glsl); the argument block has two more members.
  bool whole_loops = false;
  // The byte range of each argument's array, relative to its address; for
  // strided arrays it can begin below that. With it, accesses by address are
  // checked against all arrays (common/msl_bounds.glsl); if empty, nothing is
  // checked.
  std::vector<std::pair<int64_t, int64_t>> extents;

  bool operator==(const Target&) const = default;
};

// A compute shader for threadgroups of any size. Its argument block
// (common/args.glsl's way) is: one 64-bit address for each argument in order,
// then `uvec3 base` (position of this dispatch's first threadgroup), `uvec3
// grid` (threads in the grid), and `uvec3 threads` (of a usual threadgroup;
// local_size is that of this dispatch, which is smaller at the grid's edges);
// with whole_loops, `uint` and `uint64_t`.
struct Translation {
  std::string glsl; // for with_threads()
  bool collective = false; // SIMD-group functions: needs Target::subgroup
  // Threads neither share anything nor ask for their place in a threadgroup, so
  // they may be regrouped; those outside of the grid return at once.
  bool independent = true;
  uint32_t shared_bytes = 0;
};

Translation translate(const Source& source, const Target& target);

// The whole shader, for threadgroups of `threads`.
std::string with_threads(
    const std::string& glsl,
    const std::array<uint32_t, 3>& threads);

} // namespace msl
