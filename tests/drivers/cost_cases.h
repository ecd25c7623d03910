// The kernels that plans choose for the layers of a model, with the work of
// each: what tools/cost/ needs beside the compiler's output.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "variants/variants.h"

namespace mlx::core::vulkan {

// How often an invocation goes through its kernel's main loop, and through the
// loop around that, if there is one.
struct Loops {
  double steps = 1, passes = 1;
};

struct CostCase {
  std::string model, part, name; // "8B", "prompt 512", "gate, up"
  AnyVariant variant;
  uint32_t times = 0; // dispatches in a step of the model
  uint64_t groups = 0; // workgroups
  double bytes = 0, flops = 0; // of operands, each once; without padding
  // By the subgroup size that the driver chose.
  std::function<Loops(uint32_t)> loops;
  double lane_macs = 0; // of an invocation and step; 0: there is no such loop
  double slices = 1; // passes of a loop between the main and the innermost one
  std::string why; // reason why no faster path is used
};

struct CostFormat {
  Type type = Type::bf16;
  int group = 64; // weights per scale, of 4 bits
};

// Qwen3's 0.6B, 8B and 30B-A3B: a decoded token and prompts.
std::vector<CostCase> cost_cases(const Caps& caps, const CostFormat& format);

// What tools/cost/validate.py times on a device.
std::vector<CostCase> validation_cases(
    const Caps& caps,
    const CostFormat& format);

} // namespace mlx::core::vulkan
