#include "ops/attention/plan.h"

#include <algorithm>
#include <bit>

#include "ops/matrix_tiles.h"

namespace mlx::core::vulkan {

namespace {

// Reason why kernels with cooperative matrices cannot be used; "" if they can.
const char* no_matrices(const MatrixUnits& units, const AttentionProblem& p) {
  uint32_t lanes = units.lanes;
  // The registers of 8 lanes would hold half a head.
  return lanes != 16 && lanes != 32
      ? "no cooperative matrices for this type in subgroups of 16 or 32"
      : p.dim % 16 || p.value_dim % 16 || std::max(p.dim, p.value_dim) > 128
      ? "head dimensions must be multiples of 16 up to 128"
      : p.alignment < 16
      ? "rows of q, k and v must start at multiples of 16 bytes"
      : "";
}
const char* no_matrices(const Target& gpu, const AttentionProblem& p) {
  return no_matrices(gpu.matrices(p.type), p);
}

// Matrices of q, k and v. Without bf16 matrices, those of f16 if queries are
// many enough to repay finding the ranges.
MatrixUnits units_of(const Target& gpu, const AttentionProblem& p) {
  auto units = gpu.matrices(p.type);
  bool ranges = gpu.policy.packs_halves &&
      p.queries >= gpu.policy.attention.halves_queries;
  return units.lanes || !ranges ? units : gpu.half_matrices(p.type);
}

// 32-bit values that a lane of decode.comp holds in its loop over keys: slices
// of sums and of raw q, k and v, products, addresses, mask values, others.
uint32_t held_values(const Target& gpu, const DecodeVariant& v) {
  if (v.BITS) {
    // Codes and two numbers per group; sums of values and two more; two sums of
    // q's items; scores; four codes of each key as floats.
    uint32_t lanes = v.TPK * v.CHUNK;
    uint32_t k = ceil_div(v.D, lanes), value = ceil_div(v.DV, lanes);
    uint32_t keys = v.KU * (k + value) * (v.CHUNK * v.BITS / 32 + 2);
    uint32_t rows = value * (v.CHUNK + 2) + 2 * k + 2 * v.KU;
    // With few registers, all compilers but RADV's load q's items early.
    rows += gpu.policy.mask_values ? v.CHUNK : 0;
    uint32_t masks = v.MASK ? v.ROWS * v.KU * gpu.policy.mask_values : 0;
    return v.ROWS * rows + keys + masks + 5 * v.KU + 30;
  }
  uint32_t bytes = v.VEC ? 16 : size_of(v.T);
  uint32_t items = bytes / size_of(v.T);
  auto chunks = [&](uint32_t n) { return ceil_div(n, v.TPK * items); };
  uint32_t raw = ceil_div(bytes, 4);
  uint32_t masks = v.MASK ? v.ROWS * v.KU * gpu.policy.mask_values : 0;
  uint32_t queries = v.SHARED_Q ? 0 : v.ROWS * chunks(v.D);
  uint32_t keys = v.PIECES ? 1 : v.KU * (chunks(v.D) + chunks(v.DV));
  uint32_t held = raw * (queries + keys);
  uint32_t addresses = (v.VEC ? 0 : held) + 3 * v.KU / 2;
  return v.ROWS * (chunks(v.DV) * items + v.KU) + held + masks + addresses + 26;
}

// Subgroups with sums in shared memory at once: as many as fit, a power of two.
uint32_t slots(const Target& gpu, const DecodeVariant& v) {
  uint32_t smallest = std::max(gpu.caps.least_subgroup(), v.TPK);
  uint32_t room = std::min(gpu.caps.shared_memory, 48u << 10) / 2;
  uint32_t one = v.ROWS * v.DV * 4 / 8 * 9; // with PADDED()'s gaps
  uint32_t n = std::max(v.WG / smallest, 1u);
  while (n > 1 && n * one > room) {
    n /= 2;
  }
  return n;
}

uint32_t power_of_two(uint32_t least) {
  return std::bit_ceil(std::max(least, 1u));
}

DecodeVariant decode_kernel(
    const Target& gpu,
    const AttentionProblem& p,
    uint32_t most_rows,
    uint32_t workgroup) {
  DecodeVariant v{
      .T = p.type,
      .D = p.dim,
      .DV = p.value_dim,
      .VEC = p.alignment == 16 && !p.bits,
      .MASK = p.mask,
      .CAUSAL = p.causal && p.queries > 1,
      .SINKS = p.sinks,
      .LSE = p.lse,
      .BITS = p.bits,
      .GROUP = p.group,
      .CHUNK = p.bits ? code_chunk : 0,
      .SCALED = p.scaled,
      .HEADS_FIRST = p.bits != 0};
  uint32_t widest = std::max(p.dim, p.value_dim);
  uint32_t items = p.bits ? v.CHUNK : v.VEC ? 16 / size_of(p.type) : 1;
  // A lane has one chunk of a row if subgroups are wide enough.
  uint32_t most_lanes =
      std::min(gpu.caps.least_subgroup(), gpu.policy.decode_lanes);
  v.TPK = std::clamp(power_of_two(ceil_div(widest, items)), 4u, most_lanes);
  uint32_t rows = p.heads / p.kv_heads * p.queries;
  v.ROWS = std::min({power_of_two(rows), most_rows, v.TPK});
  if (gpu.policy.decode_by_width) {
    v.WG = 64;
    v.ROWS = std::min(v.ROWS, widest <= 128 ? 4u : 2u);
    v.SLOTS = slots(gpu, v);
    if (p.bits) {
      return v;
    }
    v.SHARED_Q = widest > 128;
    v.PIECES = widest > 256;
    v.ROWS = v.PIECES ? 1 : v.ROWS;
    v.SLOTS = slots(gpu, v);
    return v;
  }
  v.WG = workgroup;
  // More keys in flight hide the latency of loads, more rows save loads; both
  // cost registers.
  v.KU = 4;
  while (held_values(gpu, v) > gpu.policy.held_values && !v.PIECES) {
    if (v.KU > 2 || (v.KU > 1 && v.ROWS <= 2)) {
      v.KU /= 2;
    } else if (v.ROWS > 1) {
      v.ROWS /= 2;
      v.KU = 4;
    } else if (p.bits) {
      break; // the minimum
    } else if (!v.SHARED_Q) {
      v.SHARED_Q = true;
    } else {
      v.PIECES = true; // loads are then not in flight together
    }
  }
  v.SLOTS = slots(gpu, v);
  return v;
}

// Most rows and the invocations of a workgroup of decode.comp, and workgroups
// per core that splits of keys aim at; 0: keys are not split.
struct DecodeForm {
  uint32_t rows, workgroup, per_core;
};

// Measured on an H200 (docs/lab/2026-11-23-decode-attention.md): the longest
// chain of instructions counts, until there are so many keys that rereading
// them for other rows costs more.
DecodeForm decode_form(const Target& gpu, const AttentionProblem& p) {
  auto& t = gpu.policy.attention;
  uint64_t heads = uint64_t(p.batches) * p.kv_heads;
  uint32_t rows = p.heads / p.kv_heads * p.queries;
  uint32_t per_core = p.keys > t.short_keys ? t.split_groups : 0;
  if (gpu.policy.decode_by_width) {
    return {4, 64, per_core};
  }
  if (p.keys <= t.short_keys && heads * rows <= 2 * gpu.cores()) {
    return {1, 256, 0};
  }
  if (heads >= gpu.cores()) {
    return {4, 128, per_core};
  }
  if (p.bits) {
    return {4, 256, per_core}; // converts codes once for 4 rows
  }
  bool two =
      p.keys <= t.two_rows_keys && heads * ceil_div(rows, 2) < gpu.cores();
  return {two ? 2u : 4u, 256, per_core};
}

// Workgroups that share a KV head's keys: enough to fill the cores, or one a
// core with `one`, if registers have room for one only (a quantized cache on
// NVIDIA). Many need several `unit`s of keys each, as all parts are joined.
uint32_t wanted_splits(
    const Target& gpu,
    uint32_t per_core,
    bool one,
    uint64_t groups,
    uint32_t keys,
    uint32_t unit) {
  auto& t = gpu.policy.attention;
  uint64_t fill = one ? std::max<uint64_t>(gpu.cores() / groups, 1)
                      : ceil_div(per_core * gpu.cores(), groups);
  uint32_t worth = std::max(t.cheap_splits, keys / (4 * unit));
  return std::min<uint64_t>({fill, ceil_div(keys, unit), worth, t.most_splits});
}

DecodePlan decode_plan(
    const Target& gpu,
    const AttentionProblem& p,
    bool splits,
    const DecodeForm& form) {
  DecodePlan plan;
  DecodeVariant& k = plan.kernel =
      decode_kernel(gpu, p, form.rows, form.workgroup);
  plan.row_groups = ceil_div(p.heads / p.kv_heads * p.queries, k.ROWS);

  uint32_t clusters = k.WG / k.TPK;
  uint64_t groups =
      uint64_t(plan.row_groups) * p.kv_heads * std::max(p.batches, 1u);
  plan.split_keys = std::max(p.keys, 1u);
  uint32_t unit = clusters * k.KU; // keys that a workgroup has in flight
  if (uint32_t iterations = gpu.policy.most_iterations; iterations != ~0u) {
    // Iterations of decode.comp for a key of a cluster, not unrolled.
    uint32_t slice = ceil_div(p.dim + p.value_dim, k.TPK);
    uint32_t a_key = 3 * slice + k.ROWS * (2 * slice + 4);
    uint32_t most = iterations / a_key * clusters;
    plan.splits = std::max(1u, ceil_div(p.keys, most));
    plan.split_keys = std::min(plan.split_keys, most);
  } else if (!splits) {
    plan.why = "splits are switched off";
  } else if (groups < gpu.cores() && form.per_core) {
    bool one = p.bits && !gpu.policy.few_registers();
    uint32_t wanted =
        wanted_splits(gpu, form.per_core, one, groups, p.keys, unit);
    plan.split_keys = ceil_div(ceil_div(p.keys, wanted), unit) * unit;
    plan.splits = ceil_div(p.keys, plan.split_keys);
  }
  k.PARTS = plan.splits > 1;
  return plan;
}

} // namespace

bool uses_decode(const Target& gpu, const AttentionProblem& p) {
  if (p.queries <= max_decode_queries) {
    return true;
  }
  // Iterations of prefill.comp for 64 keys, each loop's last test included:
  // slices of 32 columns of q and k, then 8 groups of rows of v; a few more of
  // either with QUADS.
  uint32_t a_slice = p.vector4() ? 18 : 32;
  uint32_t v_row = ceil_div(p.value_dim, p.vector4() ? 64 : 16);
  uint32_t a_tile = 3 + ceil_div(p.dim, 32) * a_slice + 8 * (4 + v_row);
  return p.keys / 64 > gpu.policy.most_iterations / a_tile;
}

bool fits_registers(const Target& gpu, const DecodeVariant& v) {
  return held_values(gpu, v) <= gpu.policy.held_values;
}

DecodePlan
plan_decode(const Target& gpu, const AttentionProblem& p, bool splits) {
  return decode_plan(gpu, p, splits, decode_form(gpu, p));
}

std::vector<Named<DecodePlan>> decode_candidates(
    const Target& gpu,
    const AttentionProblem& p,
    bool splits,
    const PlanName* wanted) {
  Candidates<DecodePlan> c(wanted);
  auto add = [&](const DecodeForm& f) {
    c.add(
        {"{} rows of {}, {} per core", {f.rows, f.workgroup, f.per_core}},
        [&] { return decode_plan(gpu, p, splits, f); });
  };
  for (uint32_t per_core : {0, 1, 2, 4}) {
    if (gpu.policy.decode_by_width) {
      add({4, 64, per_core});
      continue;
    }
    for (uint32_t rows : {1, 2, 4}) {
      add({rows, 128, per_core});
      add({rows, 256, per_core});
    }
  }
  std::erase_if(c.found, [&](auto& one) {
    return p.bits && !fits_registers(gpu, one.plan.kernel);
  });
  return std::move(c.found);
}

// Whether the softmax can run on matrices in registers.
bool takes_fragments(const Target& gpu, const AttentionProblem& p) {
  return gpu.fragments(p.type) && p.dim % 16 == 0 && p.value_dim % 16 == 0 &&
      std::max(p.dim, p.value_dim) <= 128 && p.alignment >= 16;
}

// Sets the members that all prefill variants take from the problem.
template <typename Variant>
Variant variant_of(const AttentionProblem& p) {
  Variant v;
  v.T = p.type;
  v.D = p.dim;
  v.DV = p.value_dim;
  v.MASK = p.mask;
  v.CAUSAL = p.causal;
  v.SINKS = p.sinks;
  v.LSE = p.lse;
  return v;
}

PrefillFragmentsVariant
fragments_kernel(const Target& gpu, const AttentionProblem& p, bool wide) {
  auto v = variant_of<PrefillFragmentsVariant>(p);
  v.use_matrices(false);
  v.SG = gpu.caps.matrix_subgroup();
  v.SUBGROUPS = wide ? 8 : 4;
  v.BK = wide ? 64 : 32;
  return v;
}

// Whether matrices of floats take the problem, as tests request.
bool emulates(const Target& gpu, const AttentionProblem& p) {
  return gpu.policy.emulates_attention && p.type != Type::f32 &&
      p.dim % 16 == 0 && p.value_dim % 16 == 0 &&
      std::max(p.dim, p.value_dim) <= 64 && p.alignment == 16;
}

PrefillVariant scalar_kernel(const Target& gpu, const AttentionProblem& p) {
  auto v = variant_of<PrefillVariant>(p);
  v.VEC = p.vector4();
  bool fours = p.value_dim % gpu.policy.quads_items == 0;
  bool narrow = gpu.caps.least_subgroup() < 32;
  v.QUADS = v.VEC && fours && narrow && p.value_dim <= 256;
  v.BQ = 16;
  uint32_t held = v.QUADS ? 128 : 256; // columns; ANV spills with more
  if (p.value_dim <= held || v.lanes() > gpu.caps.least_subgroup()) {
    v.BQ = 32;
  }
  if (v.shared_memory() > gpu.caps.shared_memory) {
    v.BK = 32;
  }
  v.QUADS = v.QUADS && v.shared_memory() <= gpu.caps.shared_memory;
  return v;
}

// Takes the tiles of matrix units; if they cannot, sets why.
bool plan_matrices(
    const Target& gpu,
    const AttentionProblem& p,
    PrefillPlan& plan) {
  auto units = units_of(gpu, p);
  plan.why = no_matrices(units, p);
  if (!*plan.why) {
    // Subgroups of 16 hold y of such rows and little more (ANV's compiler).
    bool narrow = units.lanes < 32;
    bool shares = narrow && p.dim % 32 == 0 && p.value_dim % 32 == 0;
    bool wide = std::max(p.dim, p.value_dim) > 64;
    auto take = [&](auto v) {
      v.units = units;
      // RADV spills with 64 keys of wide heads, and hides less latency.
      v.BK = shares || (wide && !gpu.policy.timed_tiles) ? 32 : 64;
      if (v.shared_memory() > gpu.caps.shared_memory) {
        return false;
      }
      plan.bq = v.BQ;
      plan.kernel = v;
      if (units.halves) {
        plan.rest = PrefillRestVariant{scalar_kernel(gpu, p)};
      }
      return true;
    };
    bool held = !narrow || shares || !wide;
    if (held &&
        (shares ? take(variant_of<PrefillNarrowVariant>(p))
                : take(variant_of<PrefillCoopmatVariant>(p)))) {
      return true;
    }
    plan.why = held
        ? "tiles do not fit in shared memory"
        : "rows of more than 64 items that are no multiple of 32 do not fit in "
          "the registers of subgroups of 16";
  }
  return false;
}

PrefillPlan plan_prefill(const Target& gpu, const AttentionProblem& p) {
  PrefillPlan plan;
  if (emulates(gpu, p)) {
    auto v = variant_of<PrefillFragmentsVariant>(p);
    v.use_matrices(true);
    v.BK = 32;
    plan.bq = v.queries();
    plan.kernel = v;
    return plan;
  }
  if (takes_fragments(gpu, p)) {
    auto& t = gpu.policy.attention;
    bool wide = std::max(p.dim, p.value_dim) > t.wide_head &&
        p.queries >= t.wide_queries;
    auto v = fragments_kernel(gpu, p, wide);
    plan.bq = v.queries();
    plan.kernel = v;
    return plan;
  }
  if (!plan_matrices(gpu, p, plan)) {
    auto v = scalar_kernel(gpu, p);
    plan.bq = v.BQ;
    plan.kernel = v;
  }
  return plan;
}

std::vector<Named<PrefillPlan>> prefill_candidates(
    const Target& gpu,
    const AttentionProblem& p,
    const PlanName* wanted) {
  Candidates<PrefillPlan> c(wanted);
  auto plan_of = [](const auto& v, uint32_t bq) {
    return PrefillPlan{.kernel = v, .bq = bq};
  };
  for (bool wide : {false, true}) {
    if (takes_fragments(gpu, p)) {
      auto v = fragments_kernel(gpu, p, wide);
      c.add({"fragments {} x {}", {v.queries(), v.BK}}, [&] {
        return plan_of(v, v.queries());
      });
    }
  }
  if (PrefillPlan plan; plan_matrices(gpu, p, plan)) {
    c.add({"matrices"}, [&] { return plan; });
  }
  auto v = scalar_kernel(gpu, p);
  c.add({"scalar"}, [&] { return plan_of(v, v.BQ); });
  return std::move(c.found);
}

const char* no_gradients(const Target& gpu, const AttentionProblem& p) {
  const char* why = no_matrices(gpu, p);
  return *why                    ? why
      : p.dim != p.value_dim     ? "head dimensions of k and v differ"
      : !takes_fragments(gpu, p) ? "the layout of matrices is not known"
                                 : "";
}

std::optional<GradientsPlan> plan_gradients(
    const Target& gpu,
    const AttentionProblem& p) {
  bool emulate = emulates(gpu, p) && p.dim == p.value_dim;
  if (!emulate && *no_gradients(gpu, p)) {
    return {};
  }
  KeyGradientsVariant k{
      .T = p.type, .D = p.dim, .MASK = p.mask, .CAUSAL = p.causal};
  QueryGradientsVariant q{
      .T = p.type, .D = p.dim, .MASK = p.mask, .CAUSAL = p.causal};
  k.use_matrices(emulate);
  q.use_matrices(emulate);
  if (emulate) { // compiles quickly
    k.SUBGROUPS = q.SUBGROUPS = 4;
    k.BQ = 16;
    return GradientsPlan{k, q};
  }
  k.SG = q.SG = gpu.caps.matrix_subgroup();
  while (k.shared_memory() > gpu.caps.shared_memory) {
    (k.SUBGROUPS > 4 ? k.SUBGROUPS : k.BQ) /= 2;
  }
  while (q.shared_memory() > gpu.caps.shared_memory) {
    q.SUBGROUPS /= 2;
  }
  return GradientsPlan{k, q};
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
  // Keys in whole tiles, so that rows start at multiples of 16 bytes.
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

ScoresPlan plan_scores(const Target& gpu, const AttentionProblem& p) {
  if (*no_matrices(gpu, p) ||
      ScoresCoopmatVariant::shared_memory() > gpu.caps.shared_memory) {
    return {
        ScoresVariant{p.type, p.vector4(), p.mask, p.causal},
        ScoresVariant::BQ};
  }
  return {
      ScoresCoopmatVariant{
          p.type, gpu.matrices(p.type), p.dim, p.value_dim, p.mask, p.causal},
      ScoresCoopmatVariant::BQ};
}

} // namespace mlx::core::vulkan
