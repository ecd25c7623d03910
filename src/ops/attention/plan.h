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
  bool few_registers = false; // 128 for an invocation
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

// Weights and score gradients of the backward pass, in temporaries: as many
// heads at a time as fit, else blocks of one head's queries (for dq) and of
// one KV head's keys (for dk and dv), which work the scores out twice.
struct VjpPlan {
  uint32_t batches = 1, kv_heads = 1; // a chunk
  bool blocked = false;
  uint32_t queries = 0, keys = 0; // a block
};

bool uses_decode(const AttentionDevice& device, const AttentionProblem& p);
DecodePlan plan_decode(
    const AttentionDevice& device,
    const AttentionProblem& p);
PrefillPlan plan_prefill(
    const AttentionDevice& device,
    const AttentionProblem& p);

// At most `scores` of them at once, but always one row or column of a block.
VjpPlan plan_vjp(const AttentionProblem& p, uint64_t scores);

// Items of the largest block; fits an int unless one row or column does not.
uint64_t vjp_room(const AttentionProblem& p, const VjpPlan& plan);

// Items a row of a temporary that holds this many scores: 16-byte pieces.
constexpr uint32_t vjp_pitch(uint32_t keys) {
  return (keys + 7) / 8 * 8;
}

} // namespace mlx::core::vulkan
