#include "policy/policy.h"

#include <algorithm>

namespace mlx::core::vulkan {

// A class is a file of this folder, and here a name and a row.
Policy nvidia_policy(const Caps&), amd_policy(const Caps&),
    intel_policy(const Caps&), apple_policy(const Caps&),
    adreno_policy(const Caps&), software_policy(const Caps&),
    least_policy(const Caps&);

namespace {

struct Class {
  std::string_view name;
  uint32_t vendor; // as the driver reports it; 0: any
  std::string_view device; // part of its name
  Policy (*make)(const Caps&);
  uint32_t cores = 0; // of a usual device, which tests take for this one
};
// The first matching row is used. Mesa's drivers for Apple's GPUs have Mesa's
// vendor ID.
constexpr Class classes[] = {
    {"nvidia", 0x10de, "", nvidia_policy},
    {"amd", 0x1002, "", amd_policy, 40},
    {"intel", 0x8086, "", intel_policy, 20},
    {"apple", 0, "Apple", apple_policy, 8},
    {"adreno", 0x5143, "", adreno_policy, 6},
    {"least", 0, "", least_policy}};

// Thresholds of tests, and matrices that software devices emulate for them.
void ask(Policy& p, const TestHooks& test) {
  if (test.dequantize_rows >= 0) {
    p.dequantize_rows = test.dequantize_rows ? test.dequantize_rows : never;
  }
  if (test.radix_items >= 0) {
    p.radix_items = p.radix_words = test.radix_items;
  }
  p.emulates_attention = p.serial && test.emulate;
  if (test.skinny_rows < 0) {
    return;
  }
  p.fragment_codes = test.skinny_rows > 0;
  uint32_t rows = test.skinny_rows ? test.skinny_rows : never;
  p.quant.few_rows = p.quant.wide_rows = p.gemm.least_few_rows = rows;
  if (p.fragment_codes) {
    p.quant.matvec_rows = std::min(p.quant.matvec_rows, rows - 1);
    p.quant.fragments_rows = never;
    p.quant.fragments_k = 0;
  }
  if (p.fragment_codes && p.serial) {
    p.emulates_products = p.gpu_tiles = true;
    p.tile_groups = 0;
  }
}

const Class& class_of(const Caps& caps) {
  static constexpr Class software{"software", 0, "", software_policy};
  auto is = [&](const Class& c) {
    return (!c.vendor || c.vendor == caps.vendor_id) &&
        caps.name.find(c.device) != caps.name.npos;
  };
  return caps.software()
      ? software
      : *std::find_if(std::begin(classes), std::end(classes) - 1, is);
}

// A device's policy as one of this class, but for its lanes.
Policy class_policy(
    const Class& c,
    const Caps& caps,
    const TestHooks& test,
    int int8) {
  Policy p = c.make(caps);
  if (!caps.discrete()) {
    share_memory(p);
  }
  if (caps.software()) {
    // llvmpipe silently ends an invocation's loops after 65,535 iterations in
    // all (LP_MAX_TGSI_LOOP_ITERATIONS). Its tile takes 65 for 16 items of k.
    p.most_iterations = 60000;
    p.most_tile_k = 8192;
  }
  p.cores = caps.core_count ? caps.core_count : p.cores;
  ask(p, test);
  p.int8 = int8;
  return p;
}

} // namespace

void share_memory(Policy& p) {
  p.quant.dot_row_k = ~0u;
  p.quant.dequantize_rows = 768;
  p.quant.halves_dequantize_rows = 192;
}

Policy policy_of(const Caps& caps, const TestHooks& test, int int8) {
  Policy p = class_policy(class_of(caps), caps, test, int8);
  bool varies = caps.min_subgroup_size < caps.max_subgroup_size;
  p.lanes = p.lanes && varies
      ? std::clamp(p.lanes, caps.min_subgroup_size, caps.max_subgroup_size)
      : caps.subgroup_size;
  return p;
}

Policy planned_policy(const Caps& caps, const TestHooks& test, int int8) {
  Policy p = policy_of(caps, test, int8);
  auto& as = test.plans;
  auto named = [&](const Class& c) { return c.name == as; };
  auto found = std::find_if(std::begin(classes), std::end(classes), named);
  if (found != std::end(classes)) {
    uint32_t lanes = p.lanes; // the driver's
    p = class_policy(*found, caps, test, int8);
    p.lanes = lanes;
    p.cores = found->cores ? found->cores : p.cores;
    p.fragments = false;
    p.matrices = as != "least";
  } else if (as == "quant.dot_row_k=1") {
    p.quant.dot_row_k = 1;
  } else if (as == "quant.compiled_weights=1") {
    p.quant.compiled_weights = 1;
  }
  return p;
}

} // namespace mlx::core::vulkan
