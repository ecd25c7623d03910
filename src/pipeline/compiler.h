// In-process compiler from GLSL to SPIR-V 1.5 (glslang). Thread-safe and
// concurrent.
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

// Text that precedes a kernel's source: #version, extensions and the define
// block. Some defines enable extensions:
//   NATIVE_F16     float16_t arithmetic
//   BF16_EXT       GL_EXT_bfloat16
//   COOPMAT        GL_KHR_cooperative_matrix
//   FLOAT_CONTROLS NaN, Inf and signed zero are preserved in 32 bits
std::string prologue(std::string_view define_block);

// Compiles `prologue` + `text`; `file` names the text in messages. Includes are
// read by read_source(). Throws CompileError. The pragma of contraction.h in
// `text` forbids contraction by the driver.
std::vector<uint32_t> compile_glsl(
    const std::string& file,
    const std::string& variant,
    const std::string& prologue,
    const std::string& text);

// Does now what the first compilation of a process would do: glslang's tables
// of built-in functions, which take 0.1 to 0.3 s. Does not throw.
void prepare_compiler();

// Version of the compiler and of the post-processing of its output; part of
// every cache key.
const std::string& compiler_version();

} // namespace mlx::core::vulkan
