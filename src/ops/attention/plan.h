// Which attention kernel runs, and how it is cut: a pure function of a device
// snapshot and the shape. Free of MLX and Vulkan.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "kernels/attention/decode.h"
#include "kernels/attention/merge.h"
#include "kernels/attention/prefill.h"
#include "kernels/attention/vjp_fragments.h"
#include "kernels/attention/vjp_scores.h"
#include "vk/caps.h"

namespace mlx::core::vulkan {

constexpr uint32_t max_head_dim = 512;
constexpr uint32_t max_decode_queries = 8;
// Items of k or v that a lane takes at a time of a quantized cache.
constexpr uint32_t code_chunk = 16;
// Groups of workgroups that may join their parts themselves: the counters of
// StreamEncoder::counters().
constexpr uint32_t max_joined_groups = 64;

struct AttentionProblem {
  Type type = Type::f32;
  uint32_t batches = 1, heads = 1, kv_heads = 1;
  uint32_t queries = 1, keys = 1;
  uint32_t dim = 64, value_dim = 64;
  uint32_t alignment = 1; // of all rows of q, k and v, in bytes: up to 16
  uint32_t mask = 0; // 0 none, 1 bool, 2 additive
  bool causal = false, sinks = false, lse = false;
  // Of a quantized cache: codes of so many bits, items that share a scale.
  uint32_t bits = 0, group = 0;
  bool scaled = false; // whose q is multiplied first

  // Rows come in aligned fours.
  bool vector4() const {
    return alignment >= 4 * size_of(type);
  }
};

struct DecodePlan {
  DecodeVariant kernel;
  MergeVariant merge; // where PARTS are merged
  uint32_t row_groups = 1;
  uint32_t splits = 1;
  uint32_t split_keys = 0;
  const char* why = ""; // not a faster path

  // Of workgroups that share a KV head's keys.
  uint32_t groups(const AttentionProblem& p) const {
    return row_groups * p.kv_heads * p.batches;
  }
};

struct PrefillPlan {
  std::variant<
      PrefillVariant,
      PrefillCoopmatVariant,
      PrefillFragmentsVariant,
      EmulatedPrefillFragmentsVariant>
      kernel;
  uint32_t bq = 32; // queries a workgroup
  const char* why = ""; // not a faster path

  bool coopmat() const {
    return !std::holds_alternative<PrefillVariant>(kernel);
  }
};

// Weights and score gradients of the backward pass, in temporaries: as many
// heads at a time as fit, else blocks of one head's queries (for dq) and of
// one KV head's keys (for dk and dv), which work the scores out twice.
struct VjpPlan {
  uint32_t batches = 1, kv_heads = 1; // a chunk
  bool blocked = false;
  uint32_t queries = 0, keys = 0; // a block
};

struct ScoresPlan {
  std::variant<ScoresVariant, ScoresCoopmatVariant> kernel;
  uint32_t bq = 0, bk = 64; // queries and keys a workgroup
};

// The backward pass without scores in memory: dk and dv, and dq.
struct GradientsPlan {
  std::variant<KeyGradientsVariant, EmulatedKeyGradientsVariant> keys;
  std::variant<QueryGradientsVariant, EmulatedQueryGradientsVariant> queries;
};

bool uses_decode(const Caps& caps, const AttentionProblem& p);
// What a user may switch off.
struct DecodeOptions {
  bool splits = true; // over the keys, beyond those that the device needs
  bool joins = true; // of their parts by the last workgroup
};
// Whether decode attention over a quantized cache keeps what it holds in the
// device's registers; else products and softmax stay by themselves.
bool fits_registers(const Caps& caps, const DecodeVariant& v);

DecodePlan plan_decode(
    const Caps& caps,
    const AttentionProblem& p,
    const DecodeOptions& options = {});
// Software devices emulate matrices if asked to.
PrefillPlan
plan_prefill(const Caps& caps, const AttentionProblem& p, bool emulate = false);

// Why there is none such; "": there is. Rows of the cotangent count too.
const char* no_gradients(const Caps& caps, const AttentionProblem& p);
std::optional<GradientsPlan> plan_gradients(
    const Caps& caps,
    const AttentionProblem& p,
    bool emulate = false);

// At most `scores` of them at once, but always one row or column of a block.
VjpPlan plan_vjp(const AttentionProblem& p, uint64_t scores);

// Items of the largest block; fits an int unless one row or column does not.
uint64_t vjp_room(const AttentionProblem& p, const VjpPlan& plan);

// Of a block's weights and score gradients; the cotangent's rows count too.
ScoresPlan plan_scores(const Caps& caps, const AttentionProblem& p);

// Items a row of a temporary that holds this many scores: 16-byte pieces.
constexpr uint32_t vjp_pitch(uint32_t keys) {
  return (keys + 7) / 8 * 8;
}

} // namespace mlx::core::vulkan
