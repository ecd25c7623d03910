#include "ops/tuned/plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "ops/tuned/visit.h"
#include "pipeline/hash.h"

namespace mlx::core::vulkan {

namespace {

// Classes of policies, and cores of a usual device of theirs, which tests take
// for this one.
struct Class {
  const char* name;
  uint32_t cores;
  bool tried = true; // tuning tries its plans on other devices
};
constexpr Class classes[] = {
    {"nvidia", 0},
    {"amd", 40}, // Strix Halo
    {"intel", 20}, // Arc B580
    {"least", 0},
    {"apple", 8, false}, // M1
    {"adreno", 6, false}}; // 740

struct Change {
  const char* name;
  void (*apply)(Policy&);
};
constexpr uint32_t always = never;
#define SET(member, value)                                   \
  {                                                          \
#member "=" #value, [](Policy & p) { p.member = value; } \
  }
#define SET2(member, a, b) SET(member, a), SET(member, b)
#define SET4(member, a, b, c, d) SET2(member, a, b), SET2(member, c, d)
constexpr Change changes[] = {
    {"cores/2", [](Policy& p) { p.cores = (p.cores + 1) / 2; }},
    {"cores*2", [](Policy& p) { p.cores *= 2; }},
    {"cores*8", [](Policy& p) { p.cores *= 8; }},
    {"no fragments", [](Policy& p) { p.fragments = false; }},
    {"no matrices", [](Policy& p) { p.matrices = false; }},
    SET2(forms.fragments_parts, 2, 4),
    SET(forms.fragments_parts, 8),
    SET2(forms.fragments_depth, 1, 2),
    SET2(forms.fragments_ahead, 1, 2),
    SET2(forms.tall_rows, 32, 64),
    SET(forms.tall_rows, 96),
    SET4(forms.norm_lanes, 32, 64, 128, 256),
    SET2(quant.few_rows, 2, always),
    SET2(quant.wide_outputs, 1, always),
    SET(quant.small_group_rows, 64),
    SET2(quant.fragments_k, 1, always),
    SET2(quant.fragments_rows, 64, 0),
    SET(quant.least_tall_rows, 65),
    SET(quant.most_tall_rows, 0),
    SET2(quant.most_tall_byte_rows, 0, always),
    SET2(quant.tall_weights, 1, always),
    SET2(quant.tall_groups, 1, 4),
    SET(quant.split_tall_k, 512),
    SET2(quant.dot_row_k, 1, always),
    SET(quant.most_dot_row_k, always),
    SET2(quant.matvec_groups, 1, 4),
    SET2(quant.busy_subgroups, 0, 64),
    SET2(quant.shared_k, 0, always),
    SET2(quant.vector_rows, 2, 32),
    SET2(quant.plain_vector_rows, 1, 16),
    SET2(quant.sorted_expert_rows, 1, 16),
    SET2(quant.few_expert_rows, 0, 64),
    SET2(quant.tall_expert_rows, 16, always),
    SET2(quant.flat_rows, 0, 128),
    SET2(quant.flat_expert_rows, 0, 64),
    SET2(quant.tall_rows, 0, always),
    SET2(quant.dequantize_rows, 16, always),
    SET2(quant.halves_dequantize_rows, 16, always),
    SET2(quant.codes_dequantize_rows, 16, always),
    SET2(quant.compiled_weights, 1, always),
    SET2(gemm.few_rows, 0, 128),
    SET(gemm.apart_vectors, 8),
    SET2(gemm.split_groups, 1, 4),
    SET(gemm.split_parts, 1),
    SET(gemm.split_dot_k, 512),
    SET(gemm.split_skinny_k, 256),
    SET(gemm.split_matrices_k, 128),
    SET2(gemm.split_large_k, 128, always),
    SET(gemm.wide_matrices_k, always),
    SET2(gemm.large_quarters, 1, 8),
    SET2(attention.short_keys, 0, 4096),
    SET2(attention.two_rows_keys, 0, always),
    SET2(attention.split_groups, 1, 4),
    SET2(attention.cheap_splits, 4, 64),
    SET(attention.most_splits, 8),
    SET2(attention.halves_queries, 0, always),
    SET2(attention.wide_head, 0, always)};
#undef SET4
#undef SET2
#undef SET

// Calls f(name, value, whether it is in buckets) for each member of a class.
template <typename F>
void each_member(const QuantShape& s, F f) {
  auto& v = s.common;
  f("m", s.m, true);
  f("batch", s.batch, true);
  f("n", s.n, false);
  f("k", s.k, false);
  f("T", int(v.T), false);
  f("bits", v.BITS, false);
  f("group", v.GROUP, false);
  f("code", v.CODE, false);
  f("scale", v.SCALE, false);
  f("side", v.SIDE, false);
  f("stack", v.BATCH, false);
  f("matrices", s.matrices, false);
  f("transpose", s.transpose, false);
  f("sorted", s.sorted, false);
  f("aligned",
    s.aligned + 2 * s.x_aligned + 4 * s.sides_aligned + 8 * s.may_split,
    false);
}
template <typename F>
void each_member(const GemmProblem& p, F f) {
  f("m", p.m, true);
  f("batch", p.batches, true);
  f("n", p.n, false);
  f("k", p.k, false);
  f("T", int(p.type), false);
  f("a_row", p.a.row, false);
  f("a_col", p.a.col, false);
  f("b_row", p.b.row, false);
  f("b_col", p.b.col, false);
  f("stack", p.batch, false);
  f("aligned",
    p.a_aligned + 2 * p.b_aligned + 4 * p.axpby + 8 * p.may_split,
    false);
}
template <typename F>
void each_member(const AttentionProblem& p, F f) {
  f("batch", p.batches, true);
  f("queries", p.queries, true);
  f("keys", p.keys, true);
  f("heads", p.heads, false);
  f("kv_heads", p.kv_heads, false);
  f("dim", p.dim, false);
  f("value_dim", p.value_dim, false);
  f("T", int(p.type), false);
  f("bits", p.bits, false);
  f("group", p.group, false);
  f("mask", p.mask, false);
  f("alignment", p.alignment, false);
  f("options", p.causal + 2 * p.sinks + 4 * p.lse + 8 * p.scaled, false);
}

template <typename F>
void each_member(const NormProblem& p, F f) {
  f("n", p.n, false);
  f("T", int(p.type), false);
  f("options", p.layer + 2 * p.weight + 4 * p.bias + 8 * p.vec, false);
}

// Whether the device can run it: plans look after most limits themselves.
template <typename V>
bool fits(const Caps& caps, const V& v) {
  bool room = true;
  if constexpr (requires { v.shared_memory(); }) {
    room = v.shared_memory() <= caps.shared_memory;
  } else if constexpr (requires {
                         v.units;
                         v.TRANSPOSE;
                       }) {
    // Tiles of 32 items of k, padded, and a fragment a subgroup.
    uint32_t tiles = (v.BM + v.BN) * 5 * 16;
    room = tiles + v.WM * v.WN * v.units.shape.m * v.units.shape.n * 4 <=
        caps.shared_memory;
  }
  uint32_t lanes = 0;
  if constexpr (requires {
                  v.WM;
                  v.SG;
                }) {
    lanes = v.WM * v.WN * v.SG;
  } else if constexpr (requires {
                         v.WM;
                         v.units;
                       }) {
    lanes = v.WM * v.WN * v.units.lanes;
  } else if constexpr (requires { v.WG; }) {
    lanes = v.WG;
  } else if constexpr (requires { v.LANES; }) {
    lanes = v.LANES;
  }
  return room && lanes <= caps.max_workgroup_size;
}

template <typename V>
Candidate describe(const Caps& caps, const V& v, const PlanParts& parts) {
  Candidate plan;
  plan.kernel = log_name(V::file, v.defines());
  if (parts.splits > 1) {
    plan.kernel += " in " + std::to_string(parts.splits) + " parts";
  }
  Hasher h;
  h.add(hash_of(V::file, v.defines(), false).a, parts.splits);
  h.add(parts.length, parts.other);
  plan.plan = h.a();
  plan.fits = parts.fits && fits(caps, v);
  return plan;
}

} // namespace

Views::Views(const Target& device, std::string_view as) {
  auto add = [&](std::string name, const Policy& policy) -> Policy& {
    views_.push_back({std::move(name), {device.caps, policy}});
    return views_.back().target.policy;
  };
  auto judged_as = [&](const char* name) {
    auto& c = config();
    return policy_of(device.caps, c.test, c.int8_activations, name);
  };
  Policy& own = add("", device.policy);
  for (auto& c : classes) {
    if (c.name == as) {
      own = judged_as(c.name);
      own.cores = c.cores ? c.cores : own.cores;
      own.fragments = false;
      own.matrices = as != "least";
    }
  }
  for (auto& change : changes) {
    if (change.name == as) {
      change.apply(own);
    }
  }
  add("device", device.policy);
  std::vector<std::string> bases{""};
  for (auto& c : classes) {
    if (c.tried) {
      add(c.name, judged_as(c.name));
    }
  }
  if (device.policy.name != std::string_view("NVIDIA") || !as.empty()) {
    bases.push_back(classes[0].name);
  }
  for (auto& base : bases) {
    Policy from = views_[find(base)].target.policy;
    for (auto& change : changes) {
      std::string prefix = base.empty() ? "" : base + " ";
      change.apply(add(prefix + change.name, from));
    }
  }
}

int Views::find(std::string_view name) const {
  auto found = std::find_if(
      views_.begin(), views_.end(), [&](auto& v) { return v.name == name; });
  return found == views_.end() ? -1 : int(found - views_.begin());
}

Candidate plan_of(const Views& views, uint32_t view, const Planned& p) {
  auto& target = views[view].target;
  Candidate plan{0, "dequantize, then a dense product", 1};
  auto take = [&](auto& v, auto& parts) {
    plan = describe(target.caps, v, parts);
  };
  std::visit([&](auto& problem) { visit_plan(target, problem, take); }, p);
  plan.view = view;
  return plan;
}

std::vector<Candidate> candidates(const Views& views, const Planned& p) {
  std::vector<Candidate> found;
  std::set<uint64_t> seen;
  for (uint32_t i = 0; i < views.size(); ++i) {
    auto plan = plan_of(views, i, p);
    if ((i == 0 || plan.fits) && seen.insert(plan.plan).second) {
      found.push_back(std::move(plan));
    }
  }
  return found;
}

constexpr double root_of_two = 1.4142135;

uint64_t bucket(uint64_t size) {
  uint64_t below = std::bit_floor(size);
  return size <= 64                         ? size
      : double(size) / below >= root_of_two ? 2 * below
                                            : below;
}

uint64_t last_of_bucket(uint64_t size) {
  return size <= 64 ? size
                    : uint64_t(std::ceil(bucket(size) * root_of_two)) - 1;
}

uint64_t class_of(const Planned& p) {
  Hasher h;
  h.add(p.index());
  auto add = [&](const char*, auto value, bool bucketed) {
    h.add(bucketed ? bucket(value) : static_cast<uint64_t>(value));
  };
  std::visit([&](auto& problem) { each_member(problem, add); }, p);
  return h.a();
}

std::vector<std::pair<std::string_view, int64_t>> members_of(const Planned& p) {
  std::vector<std::pair<std::string_view, int64_t>> found;
  auto add = [&](const char* name, auto value, bool) {
    found.emplace_back(name, static_cast<int64_t>(value));
  };
  std::visit([&](auto& problem) { each_member(problem, add); }, p);
  return found;
}

std::string text_of(const Planned& p) {
  constexpr const char* kinds[] = {"quantized", "dense", "attention", "norm"};
  std::string text = kinds[p.index()];
  for (auto& [name, value] : members_of(p)) {
    text += " " + std::string(name) + "=";
    text += name == "T" ? std::string(name_of(static_cast<Type>(value)))
                        : std::to_string(value);
  }
  return text;
}

Planned with_sizes(Planned p, const Sizes& sizes) {
  auto put = [](auto& member, uint64_t value) {
    member = static_cast<std::remove_reference_t<decltype(member)>>(value);
  };
  if (auto* s = std::get_if<QuantShape>(&p)) {
    put(s->m, sizes[0]);
    put(s->batch, sizes[1]);
  } else if (auto* g = std::get_if<GemmProblem>(&p)) {
    put(g->m, sizes[0]);
    put(g->batches, sizes[1]);
  } else if (auto* a = std::get_if<AttentionProblem>(&p)) {
    put(a->batches, sizes[0]);
    put(a->queries, sizes[1]);
    put(a->keys, sizes[2]);
  }
  return p;
}

std::optional<std::vector<Choice>> choices_in(const std::string& text) {
  std::vector<Choice> found;
  try {
    auto table = nlohmann::json::parse(text.empty() ? "{}" : text);
    if (table.value("plans", 0u) != plans_version) {
      return {};
    }
    auto hash = [](const nlohmann::json& j) {
      return std::stoull(j.get<std::string>(), nullptr, 16);
    };
    for (auto& j : table.at("choices")) {
      found.push_back(
          {hash(j.at("class")),
           j.at("view").get<std::string>(),
           hash(j.at("plan")),
           j.at("sizes").get<Sizes>()});
    }
  } catch (const std::exception&) {
    return {};
  }
  return found;
}

bool holds(const Views& views, uint32_t view, const Choice& c, Planned p) {
  auto plan = plan_of(views, view, with_sizes(std::move(p), c.sizes));
  return plan.plan == c.plan && plan.fits;
}

std::vector<std::string> rows_of(
    const Caps& device,
    std::span<const EmbeddedSource> rows) {
  std::string_view own = policy_of(device).name;
  std::vector<std::string> found;
  for (std::string_view name; auto& file : rows) {
    name = file.name;
    auto slash = name.find('/');
    auto chip = name.substr(slash + 1, name.rfind(".json") - slash - 1);
    if (name.substr(0, slash) == own &&
        device.name.find(chip) != device.name.npos) {
      found.push_back(file.text);
    }
  }
  return found;
}

} // namespace mlx::core::vulkan
