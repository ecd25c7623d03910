// Choice of the attention kernel and its tiling: a pure function of a device
// snapshot and the shape. Free of MLX and Vulkan.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "kernels/attention/decode.h"
#include "kernels/attention/prefill.h"
#include "kernels/attention/vjp_fragments.h"
#include "kernels/attention/vjp_scores.h"
#include "ops/candidates.h"
#include "policy/policy.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

constexpr uint32_t max_head_dim = 512;
constexpr uint32_t max_decode_queries = 8;
// Items of k or v per lane and load, for a quantized cache.
constexpr uint32_t code_chunk = 16;

struct AttentionProblem {
  Type type = Type::f32;
  uint32_t batches = 1, heads = 1, kv_heads = 1;
  uint32_t queries = 1, keys = 1;
  uint32_t dim = 64, value_dim = 64;
  uint32_t alignment = 1; // of rows of q, k and v in bytes, at most 16
  uint32_t mask = 0; // 0 none, 1 bool, 2 additive
  bool causal = false, sinks = false, lse = false;
  // Quantized cache: bits per code, items per scale; 0: not quantized.
  uint32_t bits = 0, group = 0;
  bool scaled = false; // q is multiplied by a factor first

  // Whether rows are aligned to four items.
  bool vector4() const {
    return alignment >= 4 * size_of(type);
  }
};

struct DecodePlan {
  DecodeVariant kernel;
  uint32_t row_groups = 1;
  uint32_t splits = 1;
  uint32_t split_keys = 0;
  const char* why = ""; // reason why no faster path is used

  // Workgroups per split.
  uint32_t groups(const AttentionProblem& p) const {
    return row_groups * p.kv_heads * p.batches;
  }
};

struct PrefillPlan {
  std::variant<
      PrefillVariant,
      PrefillCoopmatVariant,
      PrefillNarrowVariant,
      PrefillFragmentsVariant>
      kernel;
  // Heads that are not exact on float16 matrices, in a dispatch of their own.
  std::optional<PrefillRestVariant> rest;
  uint32_t bq = 32; // queries per workgroup
  const char* why = ""; // reason why no faster path is used

  bool coopmat() const {
    return !std::holds_alternative<PrefillVariant>(kernel);
  }
};

// Backward pass with weights and score gradients in temporaries: as many heads
// at a time as fit, otherwise blocks of one head's queries (for dq) and of one
// KV head's keys (for dk and dv), which compute the scores twice.
struct VjpPlan {
  uint32_t batches = 1, kv_heads = 1; // heads per chunk
  bool blocked = false;
  uint32_t queries = 0, keys = 0; // block size
};

struct ScoresPlan {
  std::variant<ScoresVariant, ScoresCoopmatVariant> kernel;
  uint32_t bq = 0, bk = 64; // queries and keys per workgroup
};

// Backward pass without scores in memory: kernels for dk and dv, and for dq.
struct GradientsPlan {
  KeyGradientsVariant keys;
  QueryGradientsVariant queries;
};

bool uses_decode(const Target& gpu, const AttentionProblem& p);
// Whether keys are split where the device does not require it.
inline bool splits_keys() {
  return !config().disabled("splits");
}
// Whether decode attention over a quantized cache fits the device's registers;
// otherwise products and softmax run separately.
bool fits_registers(const Target& gpu, const DecodeVariant& v);

DecodePlan
plan_decode(const Target& gpu, const AttentionProblem& p, bool splits = true);
PrefillPlan plan_prefill(const Target& gpu, const AttentionProblem& p);
// Others that the device can run; `wanted`: only of this name.
std::vector<Named<DecodePlan>> decode_candidates(
    const Target& gpu,
    const AttentionProblem& p,
    bool splits = true,
    const PlanName* wanted = nullptr);
std::vector<Named<PrefillPlan>> prefill_candidates(
    const Target& gpu,
    const AttentionProblem& p,
    const PlanName* wanted = nullptr);

// Reason why the problem has no such plan, or "". The alignment must include
// rows of the cotangent.
const char* no_gradients(const Target& gpu, const AttentionProblem& p);
std::optional<GradientsPlan> plan_gradients(
    const Target& gpu,
    const AttentionProblem& p);

// Limits the scores held at once to `scores`, but keeps at least one row or
// column of a block.
VjpPlan plan_vjp(const AttentionProblem& p, uint64_t scores);

// Items of the largest block. An int suffices except for huge rows or columns.
uint64_t vjp_room(const AttentionProblem& p, const VjpPlan& plan);

// Plan for a block's weights and score gradients; the alignment must include
// rows of the cotangent.
ScoresPlan plan_scores(const Target& gpu, const AttentionProblem& p);

// Row pitch, in items, of a temporary of scores: a multiple of 16 bytes.
constexpr uint32_t vjp_pitch(uint32_t keys) {
  return round_up(keys, 8);
}

} // namespace mlx::core::vulkan
