#include <doctest/doctest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "null/devices.h"
#include "ops/tuned/plan.h"
#include "variants/compile.h"

using namespace mlx::core::vulkan;

namespace {

constexpr Type types[] = {Type::bf16, Type::f16, Type::f32};
constexpr uint32_t rows[] = {1, 2, 5, 8, 9, 16, 33, 64, 100, 512, 4096};

QuantShape quantized(Type t, uint32_t m, uint32_t n, uint32_t k, int group) {
  auto format = quant_modes[0].format(4, group);
  return {.common = {{t, format, true}}, .m = m, .n = n, .k = k};
}

QuantShape experts(Type t, uint32_t batch) {
  QuantShape s = quantized(t, 1, 768, 2048, 64);
  s.common.BATCH = BATCH_GATHER;
  s.batch = batch;
  s.sorted = true;
  s.matrices = 128;
  return s;
}

GemmProblem dense(Type t, uint32_t m, uint32_t n, uint32_t k) {
  GemmProblem p;
  p.type = t;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = {k, 1};
  p.b = {1, k};
  p.c = {n, 1};
  p.a_aligned = p.b_aligned = true;
  return p;
}

AttentionProblem attention(Type t, uint32_t queries, uint32_t keys) {
  AttentionProblem p;
  p.type = t;
  p.heads = 32;
  p.kv_heads = 8;
  p.queries = queries;
  p.keys = keys;
  p.dim = p.value_dim = 128;
  p.alignment = 16;
  p.causal = queries > 1;
  return p;
}

std::vector<Planned> problems() {
  std::vector<Planned> found;
  for (Type t : types) {
    for (uint32_t n : {64, 128, 1024, 4096, 12288}) {
      found.push_back(NormProblem{t, n, false, true, false, true});
      found.push_back(NormProblem{t, n, true, true, true, n > 64});
    }
    for (uint32_t m : rows) {
      for (int group : {32, 64, 128}) {
        found.push_back(quantized(t, m, 4096, 4096, group));
        found.push_back(quantized(t, m, 1024, 3072, group));
      }
      QuantShape plain = quantized(t, m, 1024, 4096, 64);
      plain.transpose = false;
      found.push_back(plain);
      found.push_back(experts(t, 8 * m));
      found.push_back(dense(t, m, 4096, 4096));
      found.push_back(dense(t, m, 151936, 1024));
      found.push_back(attention(t, m, std::max(m, 512u)));
    }
    for (uint32_t keys : {16, 300, 4096, 100000}) {
      found.push_back(attention(t, 1, keys));
    }
  }
  return found;
}

std::vector<std::string> defines_of(const AnyPlan& plan) {
  std::vector<std::string> found;
  each_variant(
      plan, [&](auto& v) { found.push_back(log_name(v.file, v.defines())); });
  return found;
}

bool same(const AnyPlan& a, const AnyPlan& b) {
  return a.index() == b.index() && defines_of(a) == defines_of(b);
}

// As a table has it.
Choice choice_of(const Planned& p, const std::string& variant) {
  nlohmann::json one{{"problem", text_of(p)}, {"variant", variant}};
  auto found = choices_in(nlohmann::json{{"choices", {one}}}.dump());
  REQUIRE((found && found->size() == 1));
  return found->front();
}

uint32_t number(const std::string& kernel, std::string_view name) {
  auto at = kernel.find(" " + std::string(name) + "=");
  return at == kernel.npos ? 0
                           : std::stoul(kernel.substr(at + name.size() + 2));
}

} // namespace

TEST_CASE("tuned: the first candidate is the plan's choice") {
  for (auto& caps : device_table()) {
    CAPTURE(caps.name);
    Target gpu(caps);
    for (auto& p : problems()) {
      CAPTURE(text_of(p));
      auto found = candidates(gpu, p);
      REQUIRE_FALSE(found.empty());
      CHECK(found[0].name == "");
      std::set<std::string> kernels;
      for (auto& c : found) {
        CHECK(kernels.insert(c.kernel).second);
      }
    }
  }
}

TEST_CASE("tuned: a name gives the same kernel again") {
  for (const char* name : {"NVIDIA H200", "AMD Radeon RX 6800", "llvmpipe"}) {
    Target gpu(caps_of(name));
    for (auto& p : problems()) {
      CAPTURE(text_of(p));
      for (auto& c : candidates(gpu, p)) {
        CAPTURE(c.name);
        auto choice = choice_of(p, c.name);
        CHECK(choice.name().str() == c.name);
        CHECK(choice.problem == class_of(p));
        CHECK(choice.size_bit == size_bit(p));
        CHECK(same(named_plan(gpu, p, choice.name()), c.plan));
      }
      auto none = named_plan(gpu, p, {"no such plan"});
      CHECK(same(none, candidates(gpu, p)[0].plan));
    }
  }
}

TEST_CASE("tuned: parts of candidates cover k and keys") {
  for (auto& caps : device_table()) {
    CAPTURE(caps.name);
    for (auto& p : problems()) {
      CAPTURE(text_of(p));
      for (auto& c : candidates(caps, p)) {
        CAPTURE(c.kernel);
        auto covers = [](uint64_t parts, uint64_t part, uint64_t all) {
          CHECK(parts * part >= all);
          CHECK((parts == 1 || (parts - 1) * part < all));
        };
        if (auto* quant = std::get_if<std::optional<QuantPlan>>(&c.plan)) {
          if (*quant && (*quant)->splits > 1) {
            auto& s = std::get<QuantShape>(p);
            covers((*quant)->splits, (*quant)->k_split, s.k);
          }
        } else if (auto* gemm = std::get_if<GemmPlan>(&c.plan)) {
          covers(gemm->splits, gemm->k_split, gemm->problem.k);
        } else if (auto* decode = std::get_if<DecodePlan>(&c.plan)) {
          auto& a = std::get<AttentionProblem>(p);
          covers(decode->splits, decode->split_keys, a.keys);
        }
      }
    }
  }
}

TEST_CASE("tuned: candidates need nothing that the device lacks") {
  for (auto& caps : device_table()) {
    CAPTURE(caps.name);
    for (auto& p : problems()) {
      for (auto& c : candidates(caps, p)) {
        CAPTURE(c.kernel);
        CHECK(number(c.kernel, "WG") <= caps.max_workgroup_size);
        bool matrices = c.kernel.find("COOPMAT=1") != c.kernel.npos ||
            c.kernel.find("NATIVE_F16=1") != c.kernel.npos;
        CHECK_FALSE((matrices && !caps.cooperative_matrix));
      }
    }
  }
}

TEST_CASE("tuned: there is a choice where it matters") {
  for (const char* name :
       {"NVIDIA H200", "AMD Radeon Graphics (RADV STRIX_HALO"}) {
    CAPTURE(name);
    Target gpu(caps_of(name));
    for (uint32_t m : {1, 8, 64, 512}) {
      CAPTURE(m);
      CHECK(
          candidates(gpu, quantized(Type::f16, m, 4096, 4096, 64)).size() > 2);
      CHECK(candidates(gpu, dense(Type::f16, m, 1024, 4096)).size() > 1);
    }
    CHECK(candidates(gpu, attention(Type::f16, 1, 4096)).size() > 3);
    NormProblem norm{Type::f16, 1024, false, true, false, true};
    CHECK(candidates(gpu, norm).size() == 4);
    for (uint32_t n : {8, 128, 1024, 4096, 12288}) {
      norm.n = n;
      auto v = plan_norm(norm);
      CHECK(v.LANES == row_team(n).lanes);
      CHECK(v.CHUNKS == row_team(n).chunks);
    }
  }
}

TEST_CASE("tuned: candidates that no plan chooses compile and fit") {
  std::set<std::string> seen;
  for (auto& v : all_variants().all()) {
    seen.insert(log_name(v.file, v.defines));
  }
  std::vector<AnyVariant> variants;
  std::vector<const Caps*> devices; // of each
  for (auto& caps : device_table()) {
    for (auto& p : problems()) {
      for (auto& c : candidates(caps, p)) {
        each_variant(c.plan, [&](auto& v) {
          auto defines = v.defines();
          if (seen.insert(log_name(v.file, defines)).second) {
            variants.push_back(
                {std::string(v.file), {defines.begin(), defines.end()}, {}});
            devices.push_back(&caps);
          }
        });
      }
    }
  }
  CHECK(variants.size() > 600);
  auto compiled = compile_all(variants);
  for (size_t i = 0; i < variants.size(); ++i) {
    auto& [code, error] = compiled[i];
    CAPTURE(code.name);
    CHECK(error == "");
    CHECK(code.reflection.shared_size <= devices[i]->shared_memory);
    CHECK(code.reflection.local_size[0] <= devices[i]->max_workgroup_size);
  }
}

TEST_CASE("tuned: tests may give a device another class's policy") {
  auto& caps = caps_of("llvmpipe");
  Target own(caps);
  auto differ = [&](const char* as) {
    TestHooks test;
    test.plans = as;
    Target other(caps, planned_policy(caps, test));
    size_t count = 0;
    for (auto& p : problems()) {
      count += !same(candidates(other, p)[0].plan, candidates(own, p)[0].plan);
    }
    return count;
  };
  for (const char* as :
       {"nvidia",
        "amd",
        "intel",
        "apple",
        "adreno",
        "least",
        "quant.dot_row_k=1"}) {
    CAPTURE(as);
    CHECK(differ(as) > 0);
  }
  CHECK(differ("") == 0);
}

TEST_CASE("tuned: classes share nearby sizes and nothing else") {
  CHECK(bucket(1) == 1);
  CHECK(bucket(63) == 63);
  CHECK(bucket(90) == 64);
  CHECK(bucket(91) == 128);
  CHECK(bucket(512) == 512);
  CHECK(bucket(700) == 512);
  CHECK(bucket(725) == 1024);
  std::pair<uint64_t, uint64_t> lasts[] = {
      {1, 1}, {64, 64}, {65, 90}, {513, 724}, {724, 724}, {725, 1448}};
  for (auto [size, last] : lasts) {
    CHECK(last_of_bucket(size) == last);
  }
  Planned p = quantized(Type::bf16, 512, 4096, 4096, 64);
  CHECK(class_of(p) == class_of(quantized(Type::bf16, 600, 4096, 4096, 64)));
  CHECK(class_of(p) != class_of(quantized(Type::bf16, 60, 4096, 4096, 64)));
  CHECK(class_of(p) != class_of(quantized(Type::f16, 512, 4096, 4096, 64)));
  CHECK(class_of(p) != class_of(quantized(Type::bf16, 512, 4096, 4096, 32)));
  CHECK(class_of(p) != class_of(dense(Type::bf16, 512, 4096, 4096)));
  CHECK(text_of(p).starts_with("quantized m=512 batch=1 n=4096 k=4096 T=bf16"));
  CHECK(text_of(p) == text_of(quantized(Type::bf16, 600, 4096, 4096, 64)));
}

namespace {

// The inverse of text_of().
Planned problem_of(const std::string& text) {
  std::map<std::string, std::string> words;
  std::istringstream in(text);
  std::string kind;
  in >> kind;
  for (std::string word; in >> word;) {
    auto at = word.find('=');
    words[word.substr(0, at)] = word.substr(at + 1);
  }
  auto take = [&](auto& member, const char* name) {
    member = static_cast<std::remove_reference_t<decltype(member)>>(
        std::stoll(words.at(name)));
  };
  Type type = Type::f32;
  for (Type t : types) {
    type = words.at("T") == name_of(t) ? t : type;
  }
  uint32_t bits = 0;
  if (kind == "norm") {
    NormProblem p{.type = type};
    take(p.n, "n");
    take(bits, "options");
    p.layer = bits & 1;
    p.weight = bits & 2;
    p.bias = bits & 4;
    p.vec = bits & 8;
    return p;
  }
  if (kind == "attention") {
    AttentionProblem p{.type = type};
    take(p.batches, "batch");
    take(p.queries, "queries");
    take(p.keys, "keys");
    take(p.heads, "heads");
    take(p.kv_heads, "kv_heads");
    take(p.dim, "dim");
    take(p.value_dim, "value_dim");
    take(p.bits, "bits");
    take(p.group, "group");
    take(p.mask, "mask");
    take(p.alignment, "alignment");
    take(bits, "options");
    p.causal = bits & 1;
    p.sinks = bits & 2;
    p.lse = bits & 4;
    p.scaled = bits & 8;
    return p;
  }
  take(bits, "aligned");
  if (kind == "dense") {
    GemmProblem p{.type = type};
    take(p.m, "m");
    take(p.n, "n");
    take(p.k, "k");
    take(p.batches, "batch");
    take(p.a.row, "a_row");
    take(p.a.col, "a_col");
    take(p.b.row, "b_row");
    take(p.b.col, "b_col");
    take(p.batch, "stack");
    p.a_aligned = bits & 1;
    p.b_aligned = bits & 2;
    p.axpby = bits & 4;
    p.may_split = bits & 8;
    return p;
  }
  QuantShape s = quantized(type, 1, 1, 1, 64);
  take(s.m, "m");
  take(s.n, "n");
  take(s.k, "k");
  take(s.batch, "batch");
  take(s.common.BITS, "bits");
  take(s.common.GROUP, "group");
  take(s.common.CODE, "code");
  take(s.common.SCALE, "scale");
  take(s.common.SIDE, "side");
  take(s.common.BATCH, "stack");
  take(s.matrices, "matrices");
  take(s.transpose, "transpose");
  take(s.sorted, "sorted");
  s.aligned = bits & 1;
  s.x_aligned = bits & 2;
  s.sides_aligned = bits & 4;
  s.may_split = bits & 8;
  return s;
}

// Reasons why rows of a file would be ignored on the chip that it is named
// after, whose snapshot is in device_table().
std::vector<std::string> dead_rows(const EmbeddedSource& file) {
  auto device = std::find_if(
      device_table().begin(), device_table().end(), [&](auto& caps) {
        return !rows_of(caps, {&file, 1}).empty();
      });
  if (device == device_table().end()) {
    return {"tests/variants/devices.cpp has no device of this class and name"};
  }
  auto choices = choices_in(file.text);
  if (!choices) {
    return {"no table of choices"};
  }
  std::vector<std::string> dead;
  Target gpu(*device);
  auto rows = nlohmann::json::parse(file.text).at("choices");
  for (auto& row : rows) {
    auto text = row.at("problem").get<std::string>();
    auto p = problem_of(text);
    auto longer = p;
    if (auto* a = std::get_if<AttentionProblem>(&longer)) {
      ++a->keys; // the choice changes at a power of two, and may be this one
    }
    auto found = candidates(gpu, longer);
    bool named = std::any_of(found.begin(), found.end(), [&](auto& c) {
      return c.name == row.at("variant");
    });
    if (text_of(p) != text) {
      dead.push_back("another class of problems: " + text);
    } else if (!named) {
      dead.push_back("no candidate: " + text);
    }
  }
  return dead;
}

// What `tune --export` writes of second candidates.
nlohmann::json exported(const Caps& caps) {
  nlohmann::json table{{"choices", nlohmann::json::array()}};
  for (auto& p : problems()) {
    auto found = candidates(caps, p);
    if (found.size() > 1) {
      table["choices"].push_back(
          {{"problem", text_of(p)}, {"variant", found[1].name}});
    }
  }
  return table;
}

} // namespace

TEST_CASE("tuned: problems can be read from their texts") {
  for (auto& p : problems()) {
    CAPTURE(text_of(p));
    auto read = problem_of(text_of(p));
    CHECK(class_of(read) == class_of(p));
    CHECK(text_of(read) == text_of(p));
  }
}

TEST_CASE("tuned: every row of the source tree is a candidate of its chip") {
  for (size_t i = 0; i < embedded_row_count; ++i) {
    CAPTURE(std::string(embedded_rows[i].name));
    for (auto& why : dead_rows(embedded_rows[i])) {
      FAIL_CHECK(why);
    }
  }
}

TEST_CASE("tuned: rows are of a class and a chip, and dead ones are found") {
  auto& caps = caps_of("NVIDIA H200");
  auto table = exported(caps);
  REQUIRE(table["choices"].size() > 100);
  auto dead = [](const nlohmann::json& t, const char* name) {
    auto text = t.dump();
    return dead_rows({name, text.c_str()});
  };
  CHECK(dead(table, "NVIDIA/NVIDIA H200.json").empty());
  // Another chip or class; no table; another plan.
  CHECK(dead(table, "NVIDIA/NVIDIA H300.json").size() == 1);
  CHECK(dead(table, "AMD/NVIDIA H200.json").size() == 1);
  CHECK(dead(table, "AMD/RADV NAVI21.json").size() > 50);
  CHECK(dead({{"choices", 1}}, "NVIDIA/NVIDIA H200.json").size() == 1);
  auto other = table;
  other["choices"][3]["variant"] = "no such plan";
  CHECK(dead(other, "NVIDIA/NVIDIA H200.json").size() == 1);
  other = table;
  other["choices"][3]["problem"] = "quantized m=x";
  CHECK_FALSE(choices_in(other.dump()));
}

TEST_CASE("tuned: a choice that does not fit the device is not used") {
  size_t unfit = 0;
  for (auto& caps : device_table()) {
    Caps small = caps;
    small.shared_memory = 1024;
    small.max_workgroup_size = 64;
    for (auto& p : problems()) {
      auto own = candidates(small, p);
      for (auto& c : candidates(caps, p)) {
        bool named = std::any_of(own.begin(), own.end(), [&](auto& one) {
          return one.name == c.name;
        });
        auto plan = named_plan(small, p, choice_of(p, c.name).name());
        bool kept = named || same(plan, own[0].plan) ||
            std::any_of(own.begin(), own.end(), [&](auto& one) {
                      return same(one.plan, plan);
                    });
        CHECK(kept);
        unfit += !named;
      }
    }
  }
  CHECK(unfit > 100);
}
