#include <doctest/doctest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "null/devices.h"
#include "ops/tuned/visit.h"
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

std::string kernel_of(const Caps& caps, const Planned& p) {
  auto name = [](const auto& v) { return log_name(v.file, v.defines()); };
  if (auto* s = std::get_if<QuantShape>(&p)) {
    return dequantizes_first(caps, *s)
        ? "dequantize, then a dense product"
        : std::visit(name, plan_quant(caps, *s).kernel);
  }
  if (auto* g = std::get_if<GemmProblem>(&p)) {
    return std::visit(name, plan_gemm(caps, *g).variant);
  }
  if (auto* n = std::get_if<NormProblem>(&p)) {
    return name(plan_norm(caps, *n));
  }
  auto& a = std::get<AttentionProblem>(p);
  return uses_decode(caps, a) ? name(plan_decode(caps, a).kernel)
                              : std::visit(name, plan_prefill(caps, a).kernel);
}

uint32_t number(const std::string& kernel, std::string_view name) {
  auto at = kernel.find(" " + std::string(name) + "=");
  return at == kernel.npos ? 0
                           : std::stoul(kernel.substr(at + name.size() + 2));
}

} // namespace

TEST_CASE("tuned: the first candidate is the device's own plan") {
  for (auto& caps : device_table()) {
    CAPTURE(caps.name);
    Views views(caps);
    CHECK(views.size() > 60);
    CHECK(views.find("") == 0);
    for (auto& p : problems()) {
      CAPTURE(text_of(p));
      auto found = candidates(views, p);
      REQUIRE_FALSE(found.empty());
      CHECK(found[0].view == 0);
      CHECK(found[0].kernel.starts_with(kernel_of(caps, p)));
      std::set<uint64_t> plans;
      for (auto& c : found) {
        CHECK(plans.insert(c.plan).second);
        CHECK(plan_of(views, c.view, p).plan == c.plan);
      }
    }
  }
}

TEST_CASE("tuned: candidates need nothing that the device lacks") {
  for (auto& caps : device_table()) {
    CAPTURE(caps.name);
    Views views(caps);
    for (auto& p : problems()) {
      for (auto& c : candidates(views, p)) {
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
    Views views(caps_of(name));
    for (uint32_t m : {1, 8, 64, 512}) {
      CAPTURE(m);
      CHECK(
          candidates(views, quantized(Type::f16, m, 4096, 4096, 64)).size() >
          2);
      CHECK(candidates(views, dense(Type::f16, m, 1024, 4096)).size() > 1);
    }
    CHECK(candidates(views, attention(Type::f16, 1, 4096)).size() > 3);
    NormProblem norm{Type::f16, 1024, false, true, false, true};
    CHECK(candidates(views, norm).size() == 4);
    for (uint32_t n : {8, 128, 1024, 4096, 12288}) {
      norm.n = n;
      auto v = plan_norm(views[0].target, norm);
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
    CAPTURE(caps.name);
    Views views(caps);
    for (auto& p : problems()) {
      for (auto& c : candidates(views, p)) {
        auto compile = [&](auto& v, auto&) {
          auto defines = v.defines();
          if (seen.insert(log_name(v.file, defines)).second) {
            variants.push_back(
                {std::string(v.file), {defines.begin(), defines.end()}, {}});
            devices.push_back(&caps);
          }
        };
        auto& seen_as = views[c.view].target;
        std::visit(
            [&](auto& problem) { visit_plan(seen_as, problem, compile); }, p);
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

TEST_CASE("tuned: from another class the device's own plans are candidates") {
  auto& caps = caps_of("NVIDIA H200");
  Views own(caps);
  for (const char* as : {"amd", "intel", "apple", "adreno", "least"}) {
    CAPTURE(as);
    Views views(caps, as);
    size_t differ = 0;
    for (auto& p : problems()) {
      CAPTURE(text_of(p));
      auto found = candidates(views, p);
      auto wanted = plan_of(own, 0, p);
      differ += found[0].plan != wanted.plan;
      CHECK(std::any_of(found.begin(), found.end(), [&](auto& c) {
        return c.plan == wanted.plan;
      }));
    }
    CHECK(differ > 20);
  }
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
  for (auto& one : problems()) {
    CHECK(class_of(with_sizes(one, sizes_of(one))) == class_of(one));
  }
  auto sizes = sizes_of(p);
  sizes[0] = 700;
  CHECK(std::get<QuantShape>(with_sizes(p, sizes)).m == 700);
  CHECK(text_of(p).starts_with("quantized m=512 batch=1 n=4096 k=4096 T=bf16"));
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
    return {"no table of this plans_version"};
  }
  std::vector<std::string> dead;
  Views views(*device);
  auto rows = nlohmann::json::parse(file.text).at("choices");
  for (size_t i = 0; i < rows.size(); ++i) {
    auto& c = (*choices)[i];
    auto text = rows[i].at("text").get<std::string>();
    auto p = problem_of(text);
    int view = views.find(c.view);
    if (class_of(p) != c.problem || sizes_of(p) != c.sizes) {
      dead.push_back("another class of problems: " + text);
    } else if (view < 0 || !holds(views, view, c, p)) {
      dead.push_back("no candidate: " + text);
    }
  }
  return dead;
}

std::string hexadecimal(uint64_t x) {
  std::ostringstream out;
  out << std::hex << x;
  return out.str();
}

// What `tune --export` writes of second candidates.
nlohmann::json exported(const Caps& caps) {
  Views views(caps);
  nlohmann::json table{{"plans", plans_version}, {"choices", {}}};
  for (auto& p : problems()) {
    auto found = candidates(views, p);
    if (found.size() > 1) {
      table["choices"].push_back(
          {{"class", hexadecimal(class_of(p))},
           {"view", views[found[1].view].name},
           {"plan", hexadecimal(found[1].plan)},
           {"sizes", sizes_of(p)},
           {"text", text_of(p)}});
    }
  }
  return table;
}

} // namespace

TEST_CASE("tuned: problems can be read from their texts") {
  for (const char* name : {"NVIDIA H200", "AMD Radeon RX 6800", "llvmpipe"}) {
    Views views(caps_of(name));
    for (auto& p : problems()) {
      CAPTURE(text_of(p));
      auto read = problem_of(text_of(p));
      CHECK(class_of(read) == class_of(p));
      CHECK(text_of(read) == text_of(p));
      CHECK(plan_of(views, 0, read).plan == plan_of(views, 0, p).plan);
    }
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
  // Another chip, class or version of plans.
  CHECK(dead(table, "NVIDIA/NVIDIA H300.json").size() == 1);
  CHECK(dead(table, "AMD/NVIDIA H200.json").size() == 1);
  CHECK(dead(table, "AMD/RADV NAVI21.json").size() > 50);
  auto other = table;
  other["plans"] = plans_version + 1;
  CHECK(dead(other, "NVIDIA/NVIDIA H200.json").size() == 1);
  for (auto [name, value] :
       {std::pair{"view", "no such view"}, {"plan", "1"}, {"class", "1"}}) {
    CAPTURE(name);
    other = table;
    other["choices"][3][name] = value;
    CHECK(dead(other, "NVIDIA/NVIDIA H200.json").size() == 1);
  }
}

TEST_CASE("tuned: a choice that does not fit the device does not hold") {
  size_t unfit = 0;
  for (auto& caps : device_table()) {
    Caps small = caps;
    small.shared_memory = 1024;
    Views views(small);
    for (auto& p : problems()) {
      for (uint32_t view = 1; view < views.size(); ++view) {
        auto plan = plan_of(views, view, p);
        Choice c{class_of(p), views[view].name, plan.plan, sizes_of(p)};
        CHECK(holds(views, view, c, p) == plan.fits);
        unfit += !plan.fits;
      }
    }
  }
  CHECK(unfit > 100);
}
