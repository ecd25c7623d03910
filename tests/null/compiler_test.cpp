#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/capabilities.h"
#include "pipeline/compiler.h"
#include "pipeline/sources.h"
#include "variants/compile.h"
#include "variants/variants.h"

using namespace mlx::core::vulkan;
namespace fs = std::filesystem;

namespace {

// Capabilities that a variant may use because it says so.
bool asked_for(uint32_t capability, const AnyVariant& v) {
  switch (capability) {
    case 9: // Float16
      return v.has("NATIVE_F16") || v.has("COOPMAT");
    case 10: // Float64
      return v.names(Type::f64);
    case 5116:
    case 5118:
      return v.has("BF16_EXT");
    case 5345: // VulkanMemoryModel
    case 6022: // CooperativeMatrixKHR
      return v.has("COOPMAT");
    case 6018: // DotProductInput4x8BitPackedKHR
    case 6019: // DotProductKHR
      return v.has("INT_DOT");
    default:
      return false;
  }
}

// A folder of kernels for one test.
class KernelFolder {
 public:
  KernelFolder() {
    root_ = fs::temp_directory_path() /
        ("mlxvk-kernels-" + std::to_string(std::random_device{}()));
    fs::create_directories(root_);
    set_kernel_path(root_.string());
  }
  ~KernelFolder() {
    set_kernel_path("");
    fs::remove_all(root_);
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }

 private:
  fs::path root_;
};

// Whether a module calls a driver's function of an angle
// (docs/dev/driver-bugs.md): Sin, Cos or Tan of GLSL.std.450, the only set of
// instructions in use.
bool calls_trigonometry(std::span<const uint32_t> spirv) {
  constexpr uint32_t op_ext_inst = 12, sin = 13, tan = 15;
  for (size_t i = 5; i < spirv.size(); i += spirv[i] >> 16) {
    if ((spirv[i] & 0xffff) == op_ext_inst && spirv[i + 4] >= sin &&
        spirv[i + 4] <= tan) {
      return true;
    }
  }
  return false;
}

constexpr const char* small_kernel =
    "#include \"common/types.glsl\"\n"
    "struct Args { T_PTR x; T_PTR y; uint n; };\n#define ARGS_BLOCK Args\n"
    "#include \"common/args.glsl\"\n"
    "layout(local_size_x = 64) in;\n"
    "void main() {\n"
    "  uint i = thread_index();\n"
    "  if (i < A.n) {\n"
    "    store(A.y, i, load(A.x, i));\n"
    "  }\n"
    "}\n";

} // namespace

TEST_CASE("kernels: every variant that plans choose compiles for any device") {
  std::set<std::string> without;
  for (auto& file : kernel_files()) {
    without.insert(file.substr(0, file.size() - 5));
  }
  const Caps least = least_device();
  REQUIRE(missing_features(least).empty());
  std::set<std::string> of_least;
  auto least_variants = variants_of(least);
  for (auto& v : least_variants.all()) {
    of_least.insert(log_name(v.file, v.defines));
  }
  auto& variants = all_variants().all();
  for (size_t i = 0; i < variants.size(); ++i) {
    auto& v = variants[i];
    without.erase(v.file);
    auto& [code, error] = compiled_variants()[i];
    if (!error.empty()) {
      FAIL_CHECK(error);
      continue;
    }
    CAPTURE(code.name);
    auto& r = code.reflection;
    for (uint32_t c : r.capabilities) {
      CHECK_MESSAGE(
          (offers(least, c) || asked_for(c, v)),
          code.name << " uses the capability " << capability_name(c));
    }
    CHECK_FALSE(calls_trigonometry(code.spirv));
    CHECK(r.push_size <= 128);
    if (code.args_in_memory) {
      CHECK(r.push_size == 8);
    }
    bool small = of_least.contains(code.name);
    CHECK(r.local_size[1] * r.local_size[2] == 1); // docs/dev/driver-bugs.md
    CHECK(r.local_size[0] <= (small ? least.max_workgroup_size : 1024));
    CHECK(r.shared_size <= (small ? least.shared_memory : 48 * 1024));
    if (v.shared_memory) {
      CHECK(r.shared_size == *v.shared_memory);
    }
  }
  for (auto& file : without) {
    FAIL_CHECK(file << " has no variant in tests/variants");
  }
  MESSAGE(variants.size() << " variants");
}

TEST_CASE("kernels: a driver's sine would be noticed") {
  CHECK(calls_trigonometry(
      compile_source(
          "sine",
          "layout(local_size_x = 1) in; shared float x; void main() { x = cos(x); }",
          {})
          .spirv));
}

TEST_CASE("kernels: tiles that their arrays cannot hold do not compile") {
  auto compiles = [](int room, int loads) {
    std::string text =
        "layout(local_size_x = 64) in;\n#define WG 64\n"
        "#include \"attention/staging.glsl\"\n"
        "uvec4 fetch(uint, uint, uint row, uint, uint) { return uvec4(row); }\n";
    text += "shared uvec4 staged[" + std::to_string(room) + "];\n";
    text += "void main() { uvec4 next[" + std::to_string(loads) + "];\n";
    text +=
        "FETCH_ROWS(next, 16, 80, 0, 0, 0, 16) STAGE_ROWS(next, 16, 80, 0) }";
    try {
      compile_source("tile", text, {});
      return true;
    } catch (const CompileError&) {
      return false;
    }
  };
  // 16 rows of 10 pieces and 1 of padding; 64 invocations load 2.5 pieces each.
  CHECK(compiles(176, 3));
  CHECK_FALSE(compiles(175, 3));
  CHECK_FALSE(compiles(176, 2));
}

TEST_CASE("kernels: the dialect compiles for every pair of types") {
  KernelFolder folder;
  folder.write(
      "cast.comp",
      "#include \"common/types.glsl\"\n"
      "struct Args { T_PTR x; U_PTR y; uint n; };\n#define ARGS_BLOCK Args\n"
      "#include \"common/args.glsl\"\n"
      "layout(local_size_x = 64) in;\n"
      "void main() {\n"
      "  uint64_t i = thread_index64();\n"
      "  if (i < A.n) {\n"
      "    store(A.y, i, U_CAST(load(A.x, i)));\n"
      "    store(A.y, int(i), U_CAST(load(A.x, int(i))));\n"
      "  }\n"
      "}\n");
  for (int t = 0; t <= static_cast<int>(Type::c64); ++t) {
    for (int u = 0; u <= static_cast<int>(Type::c64); ++u) {
      std::vector<Define> d = {
          {"T", static_cast<Type>(t)}, {"U", static_cast<Type>(u)}};
      for (bool native : {false, true}) {
        NamedValues global;
        if (native) {
          global = {{"NATIVE_F16", "1"}};
        }
        CHECK_NOTHROW(compile_kernel("cast", d, false, global));
      }
    }
  }
}

TEST_CASE("compiler: errors name the file, the line and the variant") {
  KernelFolder folder;
  folder.write("bad.comp", "#include \"common/types.glsl\"\n\nint x = y;\n");
  std::vector<Define> d = {{"T", Type::f32}};
  try {
    compile_kernel("bad", d);
    FAIL("compiled");
  } catch (const CompileError& e) {
    std::string message = e.what();
    CHECK(e.file == "bad.comp");
    CHECK(e.variant == "bad{T=f32}");
    CHECK(message.find("bad{T=f32}") != std::string::npos);
    CHECK(message.find("bad.comp:3:") != std::string::npos);
  }
  folder.write("inc.comp", "#include \"part.glsl\"\nvoid main() {}\n");
  folder.write("part.glsl", "\n\n\nint a = b;\n");
  try {
    compile_kernel("inc", {});
    FAIL("compiled");
  } catch (const CompileError& e) {
    CHECK(e.message.find("part.glsl:4:") != std::string::npos);
  }
  folder.write("lost.comp", "#include \"nowhere.glsl\"\nvoid main() {}\n");
  try {
    compile_kernel("lost", {});
    FAIL("compiled");
  } catch (const CompileError& e) {
    CHECK(e.message.find("nowhere.glsl") != std::string::npos);
  }
  CHECK_THROWS_AS(compile_kernel("no_such_kernel", {}), std::invalid_argument);
}

TEST_CASE("compiler: deterministic, and the same from many threads") {
  KernelFolder folder;
  folder.write("small.comp", small_kernel);
  std::vector<Define> d = {{"T", Type::bf16}};
  auto expected = compile_kernel("small", d).spirv;
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        good += compile_kernel("small", d).spirv == expected;
      }
    });
  }
  for (auto& t : threads) {
    t.join();
  }
  CHECK(good == 40);
}

TEST_CASE("compiler: optional extensions only where asked for") {
  KernelFolder folder;
  folder.write("half.comp", "void main() { float16_t x = float16_t(1); }\n");
  CHECK_THROWS_AS(compile_kernel("half", {}), CompileError);
  std::vector<Define> native = {{"NATIVE_F16", 1}};
  CHECK_NOTHROW(compile_kernel("half", native));
  folder.write(
      "coop.comp",
      "layout(local_size_x = 32) in;\n"
      "shared float16_t m[256];\n"
      "void main() {\n"
      "  coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a;\n"
      "  coopMatLoad(a, m, 0, 16, gl_CooperativeMatrixLayoutRowMajor);\n"
      "  coopMatStore(a, m, 0, 16, gl_CooperativeMatrixLayoutRowMajor);\n"
      "}\n");
  CHECK_THROWS_AS(compile_kernel("coop", native), CompileError);
  std::vector<Define> both = {{"NATIVE_F16", 1}, {"COOPMAT", 1}};
  auto code = compile_kernel("coop", both);
  CHECK(has_capability(code.reflection, 6022));
  CHECK(code.reflection.shared_size == 512);
  folder.write("plain.comp", "void main() {}\n");
  CHECK_NOTHROW(compile_kernel("plain", both));
  std::vector<Define> controls = {{"FLOAT_CONTROLS", 1}};
  CHECK(has_capability(compile_kernel("plain", controls).reflection, 4466));
}

TEST_CASE("sources: includes are followed once, in depth") {
  KernelFolder folder;
  folder.write("a.glsl", "#include \"b.glsl\"\nA\n");
  folder.write("b.glsl", "  #  include \"a.glsl\"\nB\n");
  auto text = with_includes("#include \"a.glsl\"\n#include \"b.glsl\"\nX");
  auto count = [&](const char* word) {
    size_t n = 0;
    for (auto at = text.find(word); at != text.npos;
         at = text.find(word, at + 1)) {
      ++n;
    }
    return n;
  };
  CHECK(count("\nA\n") == 1);
  CHECK(count("\nB\n") == 1);
}
