// Which attention kernel runs, and how it is cut: a pure function of a device
// snapshot and the shape. Free of MLX and Vulkan.
#pragma once

#include <cstdint>

namespace mlx::core::vulkan {

constexpr uint32_t max_head_dim = 512;
constexpr uint32_t max_decode_queries = 8;

struct AttentionDevice {
  uint32_t cores = 0; // compute units; 0: unknown
  uint32_t min_subgroup = 4;
  bool software = false;
  bool coopmat = false; // 16x16x16 for the inputs' type, in subgroups of 32
  bool splits = true; // over the keys, for speed
};

struct AttentionProblem {
  uint32_t batches = 1, heads = 1, kv_heads = 1;
  uint32_t queries = 1, keys = 1;
  uint32_t dim = 64, value_dim = 64;
  uint32_t item = 2; // bytes
  bool aligned = false; // rows of q, k and v are pieces of 16 bytes
};

struct DecodePlan {
  uint32_t rows = 1; // query rows a workgroup
  uint32_t row_groups = 1;
  uint32_t cluster = 8; // invocations a key
  uint32_t workgroup = 128;
  uint32_t unroll = 1; // keys in flight
  uint32_t splits = 1;
  uint32_t split_keys = 0;
  const char* why = ""; // not a faster path
};

struct PrefillPlan {
  bool coopmat = false;
  uint32_t bq = 32, bk = 64;
  const char* why = ""; // not a faster path
};

bool uses_decode(const AttentionDevice& device, const AttentionProblem& p);
DecodePlan plan_decode(
    const AttentionDevice& device,
    const AttentionProblem& p);
PrefillPlan plan_prefill(
    const AttentionDevice& device,
    const AttentionProblem& p);

} // namespace mlx::core::vulkan
