// Functions that a kernel does not call are left out before it is parsed.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "pipeline/compiler.h"
#include "pipeline/reachable.h"

using namespace mlx::core::vulkan;

namespace {

bool has(const std::string& text, const char* part) {
  return text.find(part) != text.npos;
}

} // namespace

TEST_CASE("reachable: functions of headers that nothing names are left out") {
  const std::string text =
      "#version 460\n"
      "spirv_execution_mode(extensions = [\"SPV {\"], 4461, 32);\n"
      "#line 1 \"kernel.comp\"\n"
      "#line 1 \"header.glsl\"\n"
      "const float two[2] = float[2](2.0, third());\n"
      "struct Pair {\n  float first;\n} pair;\n"
      "layout(buffer_reference) buffer Ptr {\n  float v[];\n};\n"
      "float third() {\n  return 3.0;\n}\n"
      "float deep(float x) {\n  if (x > 0.0) {\n    x = -x;\n  }\n"
      "  return x;\n}\n"
      "float twice(float x) {\n  return 2.0 * deep(x);\n}\n"
      "int twice(int x) { return 2 * x; }\n"
      "float[2] unused(float x) {\n  return float[2](x, twice(x));\n}\n"
      "void declared(float x);\n"
      "float also_unused(float twice_x) {\n  return unused(twice_x)[0];\n}\n"
      "#line 3 \"kernel.comp\"\n"
      "float own() {\n  return 1.0;\n}\n"
      "void main() {\n  twice(1.0);\n}\n";
  auto kept = reachable_only(text);
  for (auto* part :
       {"SPV {",
        "two[2]",
        "} pair;",
        "buffer Ptr",
        "float third()",
        "float deep(",
        "float twice(",
        "int twice(",
        "void declared(",
        "float own()",
        "void main()"}) {
    CHECK_MESSAGE(has(kept, part), part);
  }
  CHECK_FALSE(has(kept, "unused"));
  auto lines = [](auto& s) { return std::count(s.begin(), s.end(), '\n'); };
  CHECK(lines(kept) == lines(text));
  CHECK(reachable_only(kept) == kept);
  CHECK(reachable_only("").empty());
  CHECK(reachable_only("void f() {") == "void f() {");
}

TEST_CASE("reachable: a directive within a function keeps it") {
  const std::string text =
      "#line 1 \"header.glsl\"\nvoid f() {\n#line 7 \"other.glsl\"\n}\n"
      "void g() {}\nvoid main() {}\n";
  auto kept = reachable_only(text);
  CHECK(has(kept, "#line 7"));
  CHECK_FALSE(has(kept, "void g"));
}

TEST_CASE("reachable: messages name file and line as before") {
  auto head = prologue("");
  auto message = [&](const std::string& text) -> std::string {
    try {
      compile_glsl("kernel.comp", "kernel", head, text);
      return "";
    } catch (const CompileError& e) {
      return e.message;
    }
  };
  CHECK(message("void main() {}\n").empty());
  CHECK(has(
      message(
          "#include \"common/numeric.glsl\"\n\nvoid main() {\n  x = 1;\n}\n"),
      "kernel.comp:4: "));
  CHECK(
      has(message("void f() { y = 1; }\nvoid main() {}\n"), "kernel.comp:1: "));
  CHECK(has(message("void main() {}\n#error stop here\n"), "stop here"));
  CHECK(has(message("#include \"none.glsl\"\nvoid main() {}\n"), "none.glsl"));
}
