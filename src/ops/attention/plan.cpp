#include "ops/attention/plan.h"

#include <algorithm>

namespace mlx::core::vulkan {

namespace {

uint32_t ceil_div(uint32_t a, uint32_t b) {
  return (a + b - 1) / b;
}

// llvmpipe ends an invocation's loops, all taken together, after 65,535
// iterations, without a word (LP_MAX_TGSI_LOOP_ITERATIONS).
constexpr uint32_t software_iterations = 60000;

// Why the kernels with cooperative matrices do not take a problem; "": they do.
const char* no_matrices(const Caps& caps, const AttentionProblem& p) {
  return !caps.coopmat(p.type) || caps.matrix_subgroup() != 32
      ? "no cooperative matrices for this type in subgroups of 32"
      : p.dim % 16 || p.value_dim % 16 || std::max(p.dim, p.value_dim) > 128
      ? "head dimensions must be multiples of 16 up to 128"
      : p.alignment < 16
      ? "rows of q, k and v must start at multiples of 16 bytes"
      : "";
}

// 32-bit values that a lane of decode.comp holds while it walks the keys: its
// slices of the accumulators, of k and of v in pieces of 8 items, and what each
// row and each mask has.
uint32_t held_values(const Caps& caps, const DecodeVariant& v) {
  auto slice = [&](uint32_t n) { return ceil_div(n, v.TPK * 8) * 8; };
  uint32_t masks = v.MASK ? v.ROWS * v.KU * caps.mask_values : 0;
  uint32_t keys = v.PIECES ? 8 : slice(v.D) + slice(v.DV);
  return v.ROWS * (slice(v.DV) + 4) + v.KU * keys + masks;
}

DecodeVariant decode_kernel(const Caps& caps, const AttentionProblem& p) {
  DecodeVariant v{
      .T = p.type,
      .D = p.dim,
      .DV = p.value_dim,
      .VEC = p.alignment == 16,
      .MASK = p.mask,
      .CAUSAL = p.causal && p.queries > 1};
  uint32_t widest = std::max(p.dim, p.value_dim);
  uint32_t most_rows = widest <= 64 ? 8
      : widest <= 128               ? 4
      : widest <= 256               ? 2
                                    : 1;
  uint32_t rows = p.heads / p.kv_heads * p.queries;
  while (v.ROWS < most_rows && v.ROWS < rows) {
    v.ROWS *= 2;
  }
  uint32_t subgroup =
      caps.min_subgroup_size ? caps.min_subgroup_size : caps.subgroup_size;
  v.TPK = std::clamp(subgroup, 4u, 8u);
  if (caps.software()) {
    v.WG = 64;
    v.PIECES = widest > 256; // tested there for devices with few registers
    return v;
  }
  // Two keys in flight hide the latency of loads, more rows save loads; both
  // cost registers.
  uint32_t most_keys = widest <= 128 ? 2 : 1;
  v.KU = most_keys;
  while (held_values(caps, v) > caps.held_values) {
    if (v.KU > 1) {
      v.KU = 1;
    } else if (v.ROWS > 1) {
      v.ROWS /= 2;
      v.KU = most_keys;
    } else if (v.TPK < 16 && subgroup >= 16) {
      v.TPK = 16;
    } else {
      v.PIECES = true; // loads wait for one another
      break;
    }
  }
  return v;
}

} // namespace

bool uses_decode(const Caps& caps, const AttentionProblem& p) {
  if (p.queries <= max_decode_queries) {
    return true;
  }
  // Iterations of prefill.comp for 64 keys, each loop's last test included:
  // slices of 32 columns of q and k, then 8 groups of rows of v.
  uint32_t a_slice = p.vector4() ? 14 : 32;
  uint32_t v_row = ceil_div(p.value_dim, p.vector4() ? 64 : 16);
  uint32_t a_tile = 3 + ceil_div(p.dim, 32) * a_slice + 8 * (2 + v_row);
  return caps.software() && p.keys / 64 > software_iterations / a_tile;
}

DecodePlan
plan_decode(const Caps& caps, const AttentionProblem& p, bool splits) {
  DecodePlan plan;
  DecodeVariant& k = plan.kernel = decode_kernel(caps, p);
  plan.row_groups = ceil_div(p.heads / p.kv_heads * p.queries, k.ROWS);

  uint32_t clusters = k.WG / k.TPK;
  uint64_t groups =
      uint64_t(plan.row_groups) * p.kv_heads * std::max(p.batches, 1u);
  plan.split_keys = std::max(p.keys, 1u);
  // Each split should give every cluster a few keys to work on.
  uint32_t least = clusters * k.KU * 2;
  if (caps.software()) {
    // Iterations of decode.comp a key and cluster, none of them unrolled.
    uint32_t slice = ceil_div(p.dim + p.value_dim, k.TPK);
    uint32_t a_key = 3 * slice + k.ROWS * (2 * slice + 4);
    uint32_t most = software_iterations / a_key * clusters;
    plan.splits = std::max(1u, ceil_div(p.keys, most));
    plan.split_keys = std::min(plan.split_keys, most);
  } else if (!splits) {
    plan.why = "splits are switched off";
  } else if (groups < caps.cores() && p.keys > 4 * least) {
    uint64_t wanted = std::min<uint64_t>(
        {(2 * caps.cores() + groups - 1) / groups,
         ceil_div(p.keys, least),
         128});
    if (wanted > 1) {
      uint32_t unit = clusters * k.KU;
      plan.split_keys =
          ceil_div(ceil_div(p.keys, static_cast<uint32_t>(wanted)), unit) *
          unit;
      plan.splits = ceil_div(p.keys, plan.split_keys);
    }
  }
  // The merge adds sinks and has the whole sum.
  k.SPLIT = plan.splits > 1;
  k.SINKS = p.sinks && !k.SPLIT;
  k.LSE = p.lse && !k.SPLIT;
  plan.merge = {p.type, p.value_dim, p.sinks, p.lse};
  return plan;
}

// Whether the softmax can be made on matrices in registers.
bool takes_fragments(const Caps& caps, const AttentionProblem& p) {
  return caps.known_fragments && caps.coopmat(p.type) && p.dim % 16 == 0 &&
      p.value_dim % 16 == 0 && std::max(p.dim, p.value_dim) <= 128 &&
      p.alignment >= 16;
}

PrefillFragmentsVariant fragments_kernel(
    const Caps& caps,
    const AttentionProblem& p) {
  PrefillFragmentsVariant v{
      .T = p.type,
      .SG = caps.matrix_subgroup(),
      .D = p.dim,
      .DV = p.value_dim,
      .MASK = p.mask,
      .CAUSAL = p.causal,
      .SINKS = p.sinks,
      .LSE = p.lse};
  // Measured (docs/benchmarks.md, "Attention of prompts").
  bool wide = std::max(p.dim, p.value_dim) > 96;
  v.SUBGROUPS = wide ? 8 : 4;
  v.BK = wide ? 64 : 32;
  return v;
}

PrefillPlan plan_prefill(const Caps& caps, const AttentionProblem& p) {
  PrefillPlan plan;
  if (takes_fragments(caps, p)) {
    auto v = fragments_kernel(caps, p);
    plan.bq = v.queries();
    plan.kernel = v;
    return plan;
  }
  plan.why = no_matrices(caps, p);
  if (!*plan.why) {
    plan.bq = PrefillCoopmatVariant::BQ;
    plan.kernel = PrefillCoopmatVariant{
        .T = p.type,
        .SG = caps.matrix_subgroup(),
        .D = p.dim,
        .DV = p.value_dim,
        .MASK = p.mask,
        .CAUSAL = p.causal,
        .SINKS = p.sinks,
        .LSE = p.lse};
    return plan;
  }
  plan.bq = p.value_dim > 256 ? 16 : 32;
  plan.kernel = PrefillVariant{
      .T = p.type,
      .D = p.dim,
      .DV = p.value_dim,
      .BQ = plan.bq,
      .VEC = p.vector4(),
      .MASK = p.mask,
      .CAUSAL = p.causal,
      .SINKS = p.sinks,
      .LSE = p.lse};
  return plan;
}

VjpPlan plan_vjp(const AttentionProblem& p, uint64_t scores) {
  auto within = [](uint64_t count, uint64_t most) {
    return static_cast<uint32_t>(std::clamp<uint64_t>(most, 1, count));
  };
  VjpPlan plan;
  uint64_t rows = uint64_t(p.heads / p.kv_heads) * p.queries;
  uint64_t one = rows * vjp_pitch(p.keys);
  plan.queries = p.queries;
  plan.keys = p.keys;
  if (one <= scores) {
    plan.kv_heads = within(p.kv_heads, scores / one);
    if (plan.kv_heads == p.kv_heads) {
      plan.batches = within(p.batches, scores / (one * p.kv_heads));
    }
    return plan;
  }
  plan.blocked = true;
  plan.queries = within(p.queries, scores / vjp_pitch(p.keys));
  // Whole tiles, and rows that start at 16 bytes.
  uint64_t keys = scores / rows;
  plan.keys = within(p.keys, keys < 64 ? keys / 8 * 8 : keys / 64 * 64);
  return plan;
}

uint64_t vjp_room(const AttentionProblem& p, const VjpPlan& plan) {
  uint64_t gqa = p.heads / p.kv_heads;
  if (!plan.blocked) {
    return uint64_t(plan.batches) * plan.kv_heads * gqa * p.queries *
        vjp_pitch(p.keys);
  }
  return std::max(
      uint64_t(plan.queries) * vjp_pitch(p.keys),
      gqa * p.queries * vjp_pitch(plan.keys));
}

ScoresPlan plan_scores(const Caps& caps, const AttentionProblem& p) {
  if (*no_matrices(caps, p)) {
    return {
        ScoresVariant{p.type, p.vector4(), p.mask, p.causal},
        ScoresVariant::BQ};
  }
  return {
      ScoresCoopmatVariant{
          p.type, caps.matrix_subgroup(), p.dim, p.value_dim, p.mask, p.causal},
      ScoresCoopmatVariant::BQ};
}

} // namespace mlx::core::vulkan
