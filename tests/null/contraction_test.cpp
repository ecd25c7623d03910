// Which float operations of a kernel a driver may contract: none where fused
// and unfused graphs have to agree.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "jit/emit.h"
#include "pipeline/contraction.h"
#include "pipeline/sources.h"
#include "variants/compile.h"
#include "variants/variants.h"

using namespace mlx::core::vulkan;

namespace {

// Instructions whose result is a float and is rounded.
constexpr uint32_t float_arithmetic[] =
    {127, 129, 131, 133, 136, 140, 141, 142, 143, 144, 145, 146, 147, 148};

struct Count {
  int all = 0; // float operations
  int free = 0; // of these, without NoContraction
  int twice = 0; // ids with more than one
};

Count count(const std::vector<uint32_t>& spirv) {
  REQUIRE(is_spirv(spirv));
  std::map<uint32_t, int> decorated;
  Count c;
  for (size_t i = 5; i < spirv.size(); i += spirv[i] >> 16) {
    uint32_t op = spirv[i] & 0xffff;
    if (op == 71 && spirv[i + 2] == 42) { // OpDecorate ... NoContraction
      c.twice += ++decorated[spirv[i + 1]] > 1;
    }
    if (std::ranges::find(float_arithmetic, op) != std::end(float_arithmetic)) {
      ++c.all;
      c.free += !decorated.contains(spirv[i + 2]); // decorations come first
    }
  }
  return c;
}

std::vector<uint32_t> compile(const std::string& text) {
  return compile_source("contraction_test", text, {}).spirv;
}

const std::string body =
    "#include \"common/types.glsl\"\n"
    "struct Args { Ptr_f32 x; Ptr_f32 y; vec2 z; uint n; };\n#define ARGS_BLOCK Args\n"
    "#include \"common/args.glsl\"\n"
    "layout(local_size_x = 64) in;\n"
    "void main() {\n"
    "  float a = A.x.v[0];\n"
    "  precise float b = a * a + 1.0;\n"
    "  float c = fma(a, b, -a) * b - a / b;\n"
    "  c += dot(mat2(a, b, c, a) * (A.z * c), A.z) + mod(a, b);\n"
    "  A.y.v[0] = c + float(A.n * 3u + 1u);\n"
    "}\n";
const std::string pragma = "#pragma STDC FP_CONTRACT OFF\n";

} // namespace

TEST_CASE("contraction: the pragma counts where it is a line of its own") {
  CHECK(forbids_contraction(pragma));
  CHECK(forbids_contraction("// variants:\n" + pragma + "void main() {}\n"));
  CHECK(forbids_contraction("x\n#pragma STDC FP_CONTRACT OFF"));
  CHECK_FALSE(forbids_contraction(body));
  CHECK_FALSE(forbids_contraction("// " + pragma));
  CHECK_FALSE(forbids_contraction("#pragma STDC FP_CONTRACT OFFSET\n"));
  CHECK_FALSE(forbids_contraction("#pragma STDC FP_CONTRACT ON\n"));
  CHECK_FALSE(forbids_contraction(""));
}

TEST_CASE("contraction: each float operation is decorated once") {
  auto free = compile(body);
  auto before = count(free);
  CHECK(before.all > 8);
  CHECK(before.free > 0);
  CHECK(before.free < before.all); // `precise`

  auto bound = compile(pragma + body);
  auto after = count(bound);
  CHECK(after.all == before.all);
  CHECK(after.free == 0);
  CHECK(after.twice == 0);
  // Nothing else has changed: three words for each.
  CHECK(bound.size() == free.size() + 3 * before.free);
  CHECK(without_contraction(free) == bound);
  CHECK(without_contraction(bound) == bound);
  CHECK_THROWS_AS(without_contraction({1, 2, 3}), std::invalid_argument);
}

TEST_CASE("contraction: elementwise kernels forbid it, products allow it") {
  const std::set<std::string> elementwise = {
      "binary.comp", "ternary.comp", "unary.comp"};
  int operations = 0;
  int products = 0;
  for (auto& file : kernel_files()) {
    bool forbids = elementwise.contains(file);
    CHECK_MESSAGE(
        forbids_contraction(*read_source(file)) == forbids,
        file << (forbids ? " lacks" : " has") << " the pragma");
  }
  auto& variants = all_variants().all();
  for (size_t i = 0; i < variants.size(); ++i) {
    auto& v = variants[i];
    bool forbids = elementwise.contains(v.file + ".comp");
    bool product = v.file.starts_with("gemm/") ||
        v.file.starts_with("quant/") || v.file.starts_with("attention/");
    if (!forbids && !product) {
      continue;
    }
    auto& code = compiled_variants()[i].code;
    auto c = count(code.spirv);
    if (forbids) {
      CHECK_MESSAGE(
          c.free == 0, code.name << ": " << c.free << " of " << c.all);
      CHECK(c.twice == 0);
      operations += c.all;
    } else {
      products += c.free;
    }
  }
  CHECK(operations > 1000);
  CHECK(products > 1000);
}

TEST_CASE("contraction: fused graphs forbid it in every form") {
  FusedGraph g;
  g.inputs = {
      {Type::f32},
      {Type::f32, true, true, 0x3f000000},
      {Type::c64},
      {Type::i32, true, true, 3}};
  int next = static_cast<int>(g.inputs.size());
  auto add = [&](Type type, const char* function, std::vector<int> args) {
    g.ops.push_back({type, function, std::move(args)});
    return next++;
  };
  int product = add(Type::f32, "Multiply", {0, 1});
  int sum = add(Type::f32, "Add", {product, 0});
  for (auto* f : {"Erf", "Exp", "Log1p", "Sigmoid", "Sin", "Square", "Tanh"}) {
    sum = add(Type::f32, f, {sum});
  }
  int cast = add(Type::f32, "", {3});
  sum = add(Type::f32, "Power", {sum, 1});
  sum = add(Type::f32, "Divide", {sum, cast});
  int z = add(Type::c64, "Multiply", {2, 2});
  z = add(Type::c64, "Divide", {z, 2});
  g.outputs = {sum, z};
  auto text = emit_fused(g);
  for (int form : {0, 1, 2, 3, 4}) {
    std::vector<Define> defines{{"FORM", form}};
    auto c = count(compile_source("fused", text, defines).spirv);
    CHECK(c.all > 200);
    CHECK(c.free == 0);
    CHECK(c.twice == 0);
  }
}
