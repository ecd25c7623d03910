// What has no kernel yet: eval_cpu on the GPU stream's behalf, counted and
// named. fallback.cpp holds the weak definitions; a strong definition of the
// same symbol in another file of the library wins, so a native primitive
// touches no list. Threads: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mlx/array.h"
#include "mlx/primitives.h"

namespace mlx::core::vulkan {

// Runs primitive.eval_cpu and waits for it: submits and awaits the thread's
// GPU work, evaluates in host memory on the stream's own scheduler thread.
// Throws std::runtime_error, naming the signature, under MLX_VK_FALLBACK=deny,
// and whatever eval_cpu throws.
void run_on_cpu(
    Primitive& primitive,
    const std::vector<array>& inputs,
    std::vector<array> outputs);

// Counts an operation that was decomposed into others although MLX's Metal
// backend runs it as one kernel. Same policy as run_on_cpu.
void count_decomposition(const std::string& name);

// Throws std::runtime_error: no kernel, and the CPU cannot stand in.
[[noreturn]] void throw_no_kernel(
    Primitive& primitive,
    const std::vector<array>& inputs);

enum class FallbackKind : uint8_t { Cpu, Decomposition };

// One line of the report: an operation with its shapes and dtypes.
struct FallbackCount {
  FallbackKind kind;
  std::string signature;
  uint64_t calls;
};

// Totals since the process started or reset_fallbacks(), most calls first.
std::vector<FallbackCount> fallback_counts();
uint64_t fallback_total(FallbackKind kind);
void reset_fallbacks();

} // namespace mlx::core::vulkan
