#include "ops/tuned/plan.h"
#include "ops/matrix_tiles.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "pipeline/hash.h"

namespace mlx::core::vulkan {

namespace {

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

// The kernel of a plan and its parts, in words.
std::string kernel_of(const AnyPlan& plan) {
  std::string text = "dequantize, then a dense product";
  each_variant(plan, [&](auto& v) { text = log_name(v.file, v.defines()); });
  auto* quant = std::get_if<std::optional<QuantPlan>>(&plan);
  auto* gemm = std::get_if<GemmPlan>(&plan);
  auto* decode = std::get_if<DecodePlan>(&plan);
  uint32_t parts = quant && *quant ? (*quant)->splits
      : gemm                       ? gemm->splits
      : decode                     ? decode->splits
                                   : 1;
  return parts > 1 ? text + " in " + std::to_string(parts) + " parts" : text;
}

bool runs(const Caps& caps, const AnyPlan& plan) {
  bool all = true;
  each_variant(plan, [&](auto& v) { all = fits(caps, v); });
  return all;
}

// Calls f(function that gives the plan's choice, the others or only the one of
// this name).
template <typename F>
void plans_of(const Target& gpu, const Planned& p, const PlanName* name, F f) {
  if (auto* quant = std::get_if<QuantShape>(&p)) {
    f([&] { return plan_or_dequantize(gpu, *quant); },
      quant_candidates(gpu, *quant, name));
  } else if (auto* gemm = std::get_if<GemmProblem>(&p)) {
    f([&] { return plan_gemm(gpu, *gemm); }, gemm_candidates(gpu, *gemm, name));
  } else if (auto* norm = std::get_if<NormProblem>(&p)) {
    f([&] { return plan_norm(*norm); }, norm_candidates(*norm, name));
  } else if (auto& a = std::get<AttentionProblem>(p); uses_decode(gpu, a)) {
    f([&] { return plan_decode(gpu, a, splits_keys()); },
      decode_candidates(gpu, a, splits_keys(), name));
  } else {
    f([&] { return plan_prefill(gpu, a); }, prefill_candidates(gpu, a, name));
  }
}

constexpr const char* kinds[] = {"quantized", "dense", "attention", "norm"};

} // namespace

std::vector<Candidate> candidates(const Target& gpu, const Planned& p) {
  std::vector<Candidate> found;
  std::set<std::string> kernels;
  auto add = [&](std::string name, const AnyPlan& plan) {
    auto kernel = kernel_of(plan);
    bool can = found.empty() || runs(gpu.caps, plan);
    if (can && kernels.insert(kernel).second) {
      found.push_back({std::move(name), std::move(kernel), plan});
    }
  };
  plans_of(gpu, p, nullptr, [&](const auto& choice, const auto& others) {
    add("", choice());
    for (auto& one : others) {
      add(one.name.str(), one.plan);
    }
  });
  return found;
}

AnyPlan named_plan(const Target& gpu, const Planned& p, const PlanName& name) {
  AnyPlan found;
  plans_of(gpu, p, &name, [&](const auto& choice, const auto& others) {
    AnyPlan plan = others.empty() ? AnyPlan(choice()) : others.front().plan;
    found = runs(gpu.caps, plan) ? plan : choice();
  });
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
  std::string text = kinds[p.index()];
  auto add = [&](const char* name, auto value, bool bucketed) {
    auto number = bucketed ? bucket(value) : static_cast<int64_t>(value);
    text += " " + std::string(name) + "=";
    text += name == std::string_view("T")
        ? std::string(name_of(static_cast<Type>(number)))
        : std::to_string(number);
  };
  std::visit([&](auto& problem) { each_member(problem, add); }, p);
  return text;
}

namespace {

// `first`: the first of the sizes of a problem of this kind, 0 without any.
uint64_t size_bit(size_t kind, uint64_t first) {
  bool attention = kind == 2;
  return 1ull << (std::bit_width(bucket(first)) % 32 + (attention ? 32 : 0));
}

} // namespace

uint64_t size_bit(const Planned& p) {
  auto* quant = std::get_if<QuantShape>(&p);
  auto* gemm = std::get_if<GemmProblem>(&p);
  auto* attention = std::get_if<AttentionProblem>(&p);
  uint64_t first = quant ? quant->m
      : gemm             ? gemm->m
      : attention        ? attention->batches
                         : 0;
  return size_bit(p.index(), first);
}

namespace {

// The class of the problem's text, and the plan's name of its words, in which
// numbers stand for pairs of braces. Throws.
Choice choice_of(const std::string& problem, const std::string& variant) {
  Choice c;
  std::istringstream in(problem);
  std::string word;
  in >> word;
  auto kind = std::find(std::begin(kinds), std::end(kinds), word);
  Hasher h;
  h.add(kind - kinds);
  uint64_t first = 0;
  for (bool sizes = true; in >> word;) {
    auto at = word.find('=');
    auto name = word.substr(0, at), value = word.substr(at + 1);
    auto number = name == "T" ? static_cast<uint64_t>(type_named(value).value())
                              : static_cast<uint64_t>(std::stoll(value));
    first = sizes && (name == "m" || name == "batch") ? number : first;
    sizes = false;
    h.add(number);
  }
  c.problem = h.a();
  c.size_bit = size_bit(kind - kinds, first);
  size_t count = 0;
  for (size_t i = 0, end = 0; i < variant.size(); i = end) {
    end = i + 1;
    if (!std::isdigit(static_cast<unsigned char>(variant[i]))) {
      c.words += variant[i];
      continue;
    }
    c.numbers.at(count++) = std::stoul(variant.substr(i), &end);
    end += i;
    c.words += "{}";
  }
  return c;
}

} // namespace

std::optional<std::vector<Choice>> choices_in(const std::string& text) {
  std::vector<Choice> found;
  try {
    auto table = nlohmann::json::parse(text);
    for (auto& j : table.at("choices")) {
      found.push_back(
          choice_of(j.at("problem"), j.at("variant").get<std::string>()));
    }
  } catch (const std::exception&) {
    return {};
  }
  return found;
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
