#include <doctest/doctest.h>

#include <random>

#include "pipeline/reflect.h"
#include "variants/compile.h"

using namespace mlx::core::vulkan;

namespace {

KernelCode compile(const std::string& args, bool in_memory = false) {
  std::string text = "#include \"common/types.glsl\"\nstruct Args {" + args +
      "};\n#define ARGS_BLOCK Args" +
      "\n#include \"common/args.glsl\"\n"
      "layout(local_size_x = 8, local_size_y = 4, local_size_z = 2) in;\n"
      "void main() {}\n";
  return compile_source("reflect_test", text, {}, in_memory);
}

uint32_t size(const std::string& args) {
  return compile(args).reflection.args_size;
}

} // namespace

TEST_CASE("reflect: sizes are those of the C struct") {
  CHECK(size("Ptr_f32 x;") == 8);
  CHECK(size("Ptr_f32 x; Ptr_bf16 y; uint n;") == 20);
  struct S {
    uint64_t x, y;
    uint32_t n;
    int64_t stride;
    int32_t shape[5];
    float eps;
  };
  CHECK(
      size("Ptr_f32 x; Ptr_f32 y; uint n; int64_t stride; int shape[5]; "
           "float eps;") == sizeof(S));
  CHECK(size("Ptr_u8 x; int64_t strides[10];") == 88);
  CHECK(size("vec2 a; uvec3 b; uint c;") == 24);
}

TEST_CASE("reflect: large blocks move to memory") {
  auto fits = compile("Ptr_f32 x; int64_t strides[15];");
  CHECK_FALSE(fits.args_in_memory);
  CHECK(fits.reflection.args_size == 128);
  auto large = compile("Ptr_f32 x; int64_t strides[15]; uint n;");
  CHECK(large.args_in_memory);
  CHECK(large.reflection.args_size == 132);
  CHECK(large.reflection.push_size == 8);
  auto forced = compile("Ptr_f32 x; uint n;", true);
  CHECK(forced.args_in_memory);
  CHECK(forced.reflection.args_size == 12);
}

TEST_CASE("reflect: local size, capabilities, shared memory") {
  auto r = compile("Ptr_f32 x;").reflection;
  CHECK(r.local_size[0] == 8);
  CHECK(r.local_size[1] == 4);
  CHECK(r.local_size[2] == 2);
  CHECK(has_capability(r, 1));
  CHECK(has_capability(r, 5347));
  CHECK_FALSE(has_capability(r, 9));
  auto shared = compile_source(
      "shared_test",
      "shared float a[100]; shared vec4 b; shared bool c; shared uint8_t d;\n"
      "void main() { a[0] = b.x; c = true; d = uint8_t(1); }\n",
      {});
  CHECK(shared.reflection.shared_size == 400 + 16 + 4 + 1);
}

TEST_CASE("reflect: anything else is refused, not crashed on") {
  auto good = compile("Ptr_f32 x; uint n; int shape[4];").spirv;
  CHECK(is_spirv(good));
  CHECK_FALSE(is_spirv({}));
  for (size_t n = 0; n < good.size(); ++n) {
    std::vector<uint32_t> cut(good.begin(), good.begin() + n);
    try {
      reflect(cut, false);
    } catch (const std::exception&) {
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    auto bad = good;
    for (int k = 0; k < 3; ++k) {
      bad[random() % bad.size()] = random() % 4 ? random() % 64 : random();
    }
    try {
      reflect(bad, i % 2);
    } catch (const std::exception&) {
    }
  }
}
