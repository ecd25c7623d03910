// The kernels that the fake device knows, as GLSL: only their interface is
// real, the device runs its own programs (fake_vulkan.h).
#pragma once

#include <string>

#include "null/fake_vulkan.h"
#include "pipeline/pipeline.h"
#include "runtime/encoder.h"

namespace fake {

struct MixParams {
  uint32_t n, salt;
};

inline std::string source(uint32_t local_size, const char* args) {
  return "#include \"common/types.glsl\"\nstruct Args {" + std::string(args) +
      "};\n#define ARGS_BLOCK Args" +
      "\n#include \"common/args.glsl\"\nlayout(local_size_x = " +
      std::to_string(local_size) +
      ") in;\nvoid main() { store(A.z, 0u, A.n + A.salt); }\n";
}

inline const mlx::core::vulkan::Kernel& mix(
    mlx::core::vulkan::PipelineTable& table) {
  static const std::string text = source(
      program_mix, "Ptr_u32 x; Ptr_u32 y; Ptr_u32 z; uint n; uint salt;");
  return table.get_source("mix", text);
}

inline const mlx::core::vulkan::Kernel& mix_in_memory(
    mlx::core::vulkan::PipelineTable& table) {
  static const std::string text = source(
      program_mix_in_memory,
      "Ptr_u32 x; Ptr_u32 y; Ptr_u32 z; uint n; uint salt; uint pad[40];");
  return table.get_source("mix_in_memory", text);
}

// Its loop stands in line `loop_line`.
inline const mlx::core::vulkan::Kernel& mix_endless(
    mlx::core::vulkan::PipelineTable& table) {
  static const std::string text =
      "#include \"common/loops.glsl\"\n#include \"common/types.glsl\"\n"
      "struct Args { Ptr_u32 x; Ptr_u32 y; Ptr_u32 z; uint n; uint salt; };\n#define ARGS_BLOCK Args\n"
      "#include \"common/args.glsl\"\nlayout(local_size_x = " +
      std::to_string(program_mix_endless) +
      ") in; void main() {\n  BOUNDED_WHILE(A.n > 0, 9) { A.z.v[0]++; }\n}\n";
  static_assert(loop_line == 7 && loop_bound == 9);
  return table.get_source("mix_endless", text);
}

inline const mlx::core::vulkan::Kernel& groups(
    mlx::core::vulkan::PipelineTable& table) {
  static const std::string text = source(
      program_groups, "Ptr_u32 x; Ptr_u32 y; Ptr_u32 z; uint n; uint salt;");
  return table.get_source("groups", text);
}

// z = salt in every item, by one of the kernels above but mix_in_memory.
inline void dispatch_mix(
    mlx::core::vulkan::Encoder& encoder,
    const mlx::core::vulkan::Kernel& kernel,
    mlx::core::vulkan::Buffer* z,
    uint32_t salt) {
  using mlx::core::vulkan::Binding;
  Binding in[] = {{}, {}}, out[] = {{z, 0, 0, z->size}};
  MixParams p{uint32_t(z->size / 4), salt};
  encoder.dispatch(kernel, in, out, &p, sizeof p, {1, 1, 1});
}

} // namespace fake
