// GLSL -> SPIR-V 1.5, in this process (glslang).
// Thread-safe: any number of threads may compile at once.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace mlx::core::vulkan {

// A kernel that does not compile. what() names the variant and holds the
// compiler's messages, each with its file and line.
class CompileError : public std::runtime_error {
 public:
  CompileError(std::string file, std::string variant, std::string message)
      : std::runtime_error(
            "[vulkan] The kernel " + variant + " does not compile:\n" +
            message),
        file(std::move(file)),
        variant(std::move(variant)),
        message(std::move(message)) {}
  std::string file, variant, message;
};

// What precedes a kernel's own text: #version, the extensions of the dialect,
// and the define block. Some names ask for an extension when they are defined:
//   NATIVE_F16     float16_t arithmetic
//   BF16_EXT       GL_EXT_bfloat16
//   COOPMAT        GL_KHR_cooperative_matrix
//   FLOAT_CONTROLS NaN, Inf and signed zero are preserved in 32 bits
std::string prologue(std::string_view define_block);

// Compiles `prologue` + `text`; `file` names the text in messages. Includes
// come from read_source(). Throws CompileError. A `text` with the pragma of
// contraction.h keeps the driver from contracting.
std::vector<uint32_t> compile_glsl(
    const std::string& file,
    const std::string& variant,
    const std::string& prologue,
    const std::string& text);

// Version of the compiler and of what is done to its output; part of every
// cache key.
const std::string& compiler_version();

} // namespace mlx::core::vulkan
