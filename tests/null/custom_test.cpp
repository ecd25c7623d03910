#include <doctest/doctest.h>

#include <set>
#include <string>

#include "null/text.h"
#include "ops/custom/plan.h"
#include "variants/compile.h"

using namespace mlx::core::vulkan;

namespace {

// As MLX 0.32.4 writes them.
const std::string text =
    "// a header\n"
    "template <typename T> T twice(T x) { return x + x; }\n"
    "template <typename T, int N, bool B>\n"
    "[[kernel]] void custom_kernel_f__bfloat16_t_-3_1_floatc_float16_ts_int32_t(\n"
    "  const constant float* x [[buffer(0)]],\n"
    "  const constant int* x_shape [[buffer(1)]],\n"
    "  const constant int& x_ndim [[buffer(2)]],\n"
    "  const constant float16_t& s [[buffer(3)]],\n"
    "  device atomic<int32_t>* y [[buffer(4)]],\n"
    "  uint3 thread_position_in_grid [[thread_position_in_grid]]) {\n"
    "\n"
    "  y[0] = x[0];\n"
    "\n}\n"
    "\ntemplate [[host_name(\"f\")]] [[kernel]] decltype("
    "custom_kernel_f__bfloat16_t_-3_1_floatc_float16_ts_int32_t<bfloat16_t, -3, "
    "1>) custom_kernel_f<bfloat16_t, -3, 1>;\n";
const std::string name =
    "custom_kernel_f__bfloat16_t_-3_1_floatc_float16_ts_int32_t";

const std::string text_with_loop = [] {
  auto all = text;
  std::string line = "  y[0] = x[0];\n";
  return all.replace(
      all.find(line),
      line.size(),
      "  for (int i = 0; i < x_ndim; ++i) {\n    atomic_fetch_add_explicit("
      "&y[0], 1, memory_order_relaxed);\n  }\n");
}();

CustomSource glsl(const std::string& body, const std::string& header = "") {
  CustomSource k;
  k.glsl = true;
  k.source.name = "k";
  k.source.header = header;
  k.source.body = body;
  k.source.arguments = {{"x", "float16_t"}, {"y", "float", true}};
  return k;
}

} // namespace

TEST_CASE("custom: MLX's text is taken apart") {
  auto k = parse_custom_source(name, text, 5);
  auto& s = k.source;
  CHECK(!k.glsl);
  CHECK(s.header.ends_with("return x + x; }\n"));
  CHECK(s.body == "\n  y[0] = x[0];\n");
  REQUIRE(s.arguments.size() == 5);
  CHECK(s.arguments[0].type == "float");
  CHECK(s.arguments[0].constant);
  CHECK(!s.arguments[0].reference);
  CHECK(s.arguments[2].name == "x_ndim");
  CHECK(s.arguments[2].reference);
  CHECK(s.arguments[3].type == "float16_t");
  CHECK(s.arguments[4].atomic);
  CHECK(s.arguments[4].output);
  CHECK(s.arguments[4].type == "int32_t");
  REQUIRE(s.templates.size() == 3);
  CHECK(std::get<std::string>(s.templates[0].value) == "bfloat16_t");
  CHECK(std::get<int64_t>(s.templates[1].value) == -3);
  CHECK(std::get<bool>(s.templates[2].value));
}

TEST_CASE("custom: any cut of MLX's text is read or refused") {
  for (size_t n = 0; n < text.size(); ++n) {
    for (size_t arguments : {0, 4, 5, 9}) {
      try {
        parse_custom_source(name, text.substr(0, n), arguments);
      } catch (const std::invalid_argument& e) {
        CHECK(has(e.what(), "[metal_kernel] " + name));
      }
    }
  }
}

TEST_CASE("custom: a kernel's name is the user's again") {
  std::string f = "custom_kernel_scale_float_floats_float";
  auto k = parse_custom_source(
      f,
      "// mlx_vulkan.fast.vulkan_kernel subgroup_size=32\nint z;\n"
      "[[kernel]] void " +
          f +
          "(\n  const device float* a [[buffer(0)]],\n"
          "  const constant float& b [[buffer(1)]],\n"
          "  device float* c [[buffer(2)]]) {\nbody\n}\n",
      3);
  CHECK(k.title() == "[vulkan_kernel] scale");
  CHECK(k.glsl);
  CHECK(k.subgroup_size == 32);
  CHECK(k.source.header == "int z;\n");
  CHECK(k.source.body == "body");
}

TEST_CASE("custom: GLSL with every line where the user wrote it") {
  auto shader = [](const CustomSource& kernel) {
    return msl::with_threads(glsl_of(kernel, false).glsl, {8, 2, 1});
  };
  auto text = shader(glsl("\nbad line;", "int one;\nint two;"));
  CHECK(has(text, "local_size_x = 8, local_size_y = 2"));
  CHECK(has(text, "#line 1 \"source of k\"\n\nbad line;\n"));
  try {
    compile_source("k", text, {});
    CHECK(false);
  } catch (const std::exception& e) {
    CHECK(has(e.what(), "source of k:2:"));
  }
  compile_source("k", shader(glsl("store(y, 0, load(x, 0));")), {});
  CHECK_THROWS_AS(
      shader(glsl("uint n = gl_NumWorkGroups.x;")), std::invalid_argument);
  // Comments may say what they like.
  shader(glsl("// gl_NumWorkGroups\n/* gl_WorkGroupID */"));
  auto other = glsl("");
  other.source.arguments[1].type = "double";
  CHECK_THROWS_AS(shader(other), std::invalid_argument);
}

TEST_CASE("custom: threads that have nothing to do with each other") {
  auto independent = [](const std::string& body,
                        const std::string& header = "") {
    return glsl_of(glsl(body, header), false).independent;
  };
  CHECK(independent("store(y, thread_position_in_grid.x, 1.0); // barrier()"));
  CHECK(!independent("barrier();"));
  CHECK(!independent("store(y, 0, subgroupAdd(1.0));"));
  CHECK(!independent("store(y, thread_index_in_threadgroup, 1.0);"));
  CHECK(!independent("store(y, gl_LocalInvocationIndex, 1.0);"));
  CHECK(!independent("", "shared float s[2];"));
  CHECK(!independent("", "#include \"common/lanes.glsl\""));

  auto translated = [](const std::string& body) {
    msl::Source s;
    s.body = body;
    s.arguments = {{"y", "float", true}};
    return msl::translate(s, {});
  };
  auto apart = [&](const std::string& body) {
    return translated(body).independent;
  };
  CHECK(apart("uint shared_x = thread_position_in_grid.x;"));
  CHECK(apart("y[0] = exp(float(threads_per_simdgroup));"));
  CHECK(apart("atomic_thread_fence(mem_flags::mem_device);"));
  CHECK(!apart("uint i = thread_position_in_threadgroup.x;"));
  CHECK(!apart("uint i = threadgroup_position_in_grid.x;"));
  CHECK(!apart("uint i = dispatch_threads_per_simdgroup;"));
  CHECK(!apart("y[0] = simd_sum(y[1]);"));
  CHECK(!apart("simdgroup_barrier(mem_flags::mem_none);"));
  CHECK(!apart("threadgroup float s[2];"));
  const std::string guarded = "void main() {\n  if (any(greaterThanEqual(";
  CHECK(has(translated("y[0] = 1;").glsl, guarded));
  CHECK(!has(translated("threadgroup float s[2];").glsl, guarded));

  auto k = glsl("uint i = thread_position_in_grid.x;\nbad line;", "int a;");
  auto text = glsl_of(k, false).glsl;
  CHECK(has(text, "void main() {\nif (any(greaterThanEqual("));
  CHECK(has(text, "return;\nPtr_f16 x = "));
}

TEST_CASE("custom: kernels with loops end by showing whether they were whole") {
  CHECK(
      loops_of(glsl("y[0] = x[0]; // for nothing", "int form, doing;")) == "");
  auto k = glsl(
      "float s = 0;\nfor (int i = 0; i < 9; ++i) s += load(x, i);\n"
      "store(y, 0, s);",
      "\nvoid f() { while (false) {} }");
  CHECK(loops_of(k) == "line 2 of the source, line 2 of the header");
  auto text = msl::with_threads(glsl_of(k, true).glsl, {1, 1, 1});
  CAPTURE(text);
  auto code = compile_source("k", text, {});
  // Two addresses, three extents, the kernel's number and the report's address.
  CHECK(code.reflection.args_size == 16 + 36 + 4 + 8);

  CustomSource metal = parse_custom_source(name, text_with_loop, 5);
  CHECK(loops_of(metal) == "line 2 of the body");
  text = msl::translate(metal.source, {.whole_loops = true}).glsl;
  code = compile_source("k", msl::with_threads(text, {1, 1, 1}), {});
  CHECK(code.reflection.args_size == (5 * 8) + 36 + 4 + 8);
}

TEST_CASE("custom: dispatches cover a grid exactly") {
  using Extent = std::array<uint32_t, 3>;
  for (auto [grid, group] :
       {std::pair<Extent, Extent>{{10, 7, 3}, {4, 3, 2}},
        {{8, 1, 1}, {8, 1, 1}},
        {{1, 5, 1}, {1, 2, 1}},
        {{23, 1, 2}, {2, 1, 1}}}) {
    constexpr uint32_t most = 3;
    std::multiset<Extent> seen;
    for (auto& d : exact_dispatches(grid, group, most)) {
      Extent n;
      for (int i = 0; i < 3; ++i) {
        CHECK(d.count[i] <= most);
        n[i] = d.count[i] * d.threads[i];
      }
      for (uint32_t z = 0; z < n[2]; ++z) {
        for (uint32_t y = 0; y < n[1]; ++y) {
          for (uint32_t x = 0; x < n[0]; ++x) {
            // As kernels compute it: groups of the usual size before this one.
            Extent at{x, y, z}, p;
            for (int i = 0; i < 3; ++i) {
              p[i] = (d.base[i] + at[i] / d.threads[i]) * group[i] +
                  at[i] % d.threads[i];
            }
            seen.insert(p);
          }
        }
      }
    }
    CHECK(seen.size() == size_t(grid[0]) * grid[1] * grid[2]);
    CHECK(std::set(seen.begin(), seen.end()).size() == seen.size());
    CHECK(*seen.rbegin() == Extent{grid[0] - 1, grid[1] - 1, grid[2] - 1});
  }
  CHECK(exact_dispatches({0, 4, 1}, {1, 1, 1}).empty());
  CHECK(exact_dispatches({100, 1, 1}, {32, 1, 1}).size() == 2);
  CHECK(exact_dispatches({7, 7, 7}, {2, 2, 2}).size() == 8);
}

TEST_CASE("custom: the subgroup size that a pipeline is sure to have") {
  Caps caps;
  caps.subgroup_size = caps.min_subgroup_size = caps.max_subgroup_size = 8;
  CHECK(sure_subgroup(caps, 32) == 8);
  caps.max_subgroup_size = 32;
  CHECK(sure_subgroup(caps, 32) == 8);
  caps.required_subgroup_size = true;
  CHECK(sure_subgroup(caps, 32) == 32);
  CHECK(sure_subgroup(caps, 0) == 8);
  caps.min_subgroup_size = 64;
  caps.max_subgroup_size = 128;
  CHECK(sure_subgroup(caps, 32) == 64);
  caps.min_subgroup_size = caps.max_subgroup_size = 32;
  caps.required_subgroup_size = false;
  CHECK(sure_subgroup(caps, 32) == 32);
}
