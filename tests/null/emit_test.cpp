#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "jit/emit.h"
#include "null/text.h"
#include "variants/compile.h"

using namespace mlx::core::vulkan;

namespace {

KernelCode compile(const FusedGraph& g, int form, bool large = false) {
  const Define defines[] = {{"FORM", form}, {"LARGE", large}};
  return compile_source("fused", emit_fused(g), defines);
}

// (x * 2 + y), sigmoid of it, both in bfloat16; y without dimensions.
FusedGraph sample() {
  FusedGraph g;
  g.inputs = {
      {Type::bf16, false, false, 0},
      {Type::bf16, true, true, 0x4000},
      {Type::bf16, false, true, 0}};
  g.ops = {
      {Type::bf16, "Multiply", {0, 1}},
      {Type::bf16, "Add", {3, 2}},
      {Type::bf16, "Sigmoid", {4}},
      {Type::f32, "", {5}}};
  g.outputs = {4, 6};
  return g;
}

} // namespace

TEST_CASE("emit: a fused graph rounds between its operations") {
  std::string text = emit_fused(sample());
  CHECK(has(text, " F(0, float, Ptr_bf16, v0)"));
  CHECK(has(text, "float v1 = run_time(uintBitsToFloat(0x40000000u));"));
  CHECK(has(text, " S(0, float, Ptr_bf16, v2)"));
  CHECK(has(text, "float v3 = round_bf16(to_bf16(Multiply(v0, v1)));"));
  CHECK(has(text, "float v6 = to_f32(v5);"));
  CHECK(has(text, "y0 = v4;"));
  CHECK(has(text, "y1 = v6;"));
  CHECK_FALSE(has(text, "Ptr_bf16, v1)")); // constants have no address
}

TEST_CASE("emit: what is only an output is rounded by its store") {
  FusedGraph g;
  g.inputs = {{Type::f16}, {Type::f16}};
  g.ops = {{Type::f16, "Add", {0, 1}}};
  g.outputs = {2};
  CHECK_FALSE(has(emit_fused(g), "= round_f16("));
}

TEST_CASE(
    "emit: every form of a fused graph compiles, with the right arguments") {
  auto g = sample();
  // x0, x2, y0, y1 and the count.
  CHECK(compile(g, 0).reflection.args_size == 4 * 8 + 8);
  CHECK(compile(g, 3).reflection.args_size == 4 * 8 + 8);
  CHECK(compile(g, 4).reflection.args_size == 4 * 8 + 8);
  // rows, last, ndim, shape[4], one strided input.
  CHECK(compile(g, 1).reflection.args_size == 32 + 16 + 16 + 32);
  auto wide = compile(g, 2, true);
  CHECK(wide.reflection.args_size == 32 + 16 + 64 + 128);
  CHECK(wide.args_in_memory);
}

TEST_CASE("emit: 24 inputs and several outputs fit") {
  FusedGraph g;
  for (int i = 0; i < 24; ++i) {
    g.inputs.push_back({Type::f32});
  }
  int last = 0;
  for (int i = 1; i < 24; ++i) {
    g.ops.push_back({Type::f32, i % 2 ? "Add" : "Maximum", {last, i}});
    last = 23 + i;
  }
  g.outputs = {30, 35, last};
  for (int form : {0, 1, 2, 3}) {
    CHECK(compile(g, form).args_in_memory);
  }
}

TEST_CASE("emit: constants keep their bits") {
  CHECK(glsl_constant(Type::f32, 0x7fc00000) == "uintBitsToFloat(0x7fc00000u)");
  CHECK(glsl_constant(Type::bf16, 0xff80) == "uintBitsToFloat(0xff800000u)");
  CHECK(glsl_constant(Type::f16, 0x7c00) == "f16_to_f32(uint16_t(0x7c00u))");
  CHECK(glsl_constant(Type::bool_, 1) == "true");
  CHECK(glsl_constant(Type::i8, 0xff) == "int8_t(0xffu)");
  CHECK(
      glsl_constant(Type::i64, 0x8000000000000001ull) ==
      "int64_t((uint64_t(0x80000000u) << 32) | uint64_t(0x1u))");
  FusedGraph g;
  for (int t = 0; t <= static_cast<int>(Type::c64); ++t) {
    g.inputs.push_back(
        {static_cast<Type>(t), true, true, 0x8182838485868788ull});
    g.ops.push_back({static_cast<Type>(t), "", {t}});
  }
  for (int t = 0; t <= static_cast<int>(Type::c64); ++t) {
    g.outputs.push_back(static_cast<int>(g.inputs.size()) + t);
  }
  CHECK(compile(g, 0).spirv.size() > 0);
  CHECK(compile(g, 3).spirv.size() > 0);
}

TEST_CASE("emit: drivers do not compute with float constants, but exponents") {
  FusedGraph g;
  g.inputs = {
      {Type::f32},
      {Type::f32, true, true, 0x40400000},
      {Type::i32, true, true, 3},
      {Type::c64, true, true, 0x3f800000}};
  g.ops = {
      {Type::f32, "Power", {0, 1}},
      {Type::f32, "Power", {1, 0}},
      {Type::f32, "", {2}},
      {Type::c64, "Multiply", {3, 3}}};
  g.outputs = {4, 5, 6, 7};
  std::string text = emit_fused(g);
  CHECK(has(text, "float v1 = run_time(uintBitsToFloat(0x40400000u));"));
  CHECK(has(text, "Power(v0, uintBitsToFloat(0x40400000u))"));
  CHECK(has(text, "Power(v1, v0)"));
  CHECK(has(text, "int32_t v2 = int32_t(0x3u);"));
  CHECK(has(text, "float v6 = run_time(to_f32(v2));"));
  CHECK(has(text, "vec2 v3 = run_time(vec2("));
  for (int form : {0, 1, 2, 3}) {
    CHECK(compile(g, form).spirv.size() > 0);
  }
}

TEST_CASE("emit: every function that MLX may fuse exists") {
  auto graph = [](const char* function, Type in, Type out, int arity) {
    FusedGraph g;
    FusedOp op{out, function, {}};
    for (int i = 0; i < arity; ++i) {
      g.inputs.push_back({in});
      op.args.push_back(i);
    }
    g.ops.push_back(op);
    g.outputs = {arity};
    return g;
  };
  for (auto* f :
       {"Abs",     "ArcCos",   "ArcCosh", "ArcSin", "ArcSinh", "ArcTan",
        "ArcTanh", "Ceil",     "Cos",     "Cosh",   "Erf",     "ErfInv",
        "Exp",     "Expm1",    "Floor",   "Log",    "Log2",    "Log10",
        "Log1p",   "Negative", "Round",   "Rsqrt",  "Sigmoid", "Sign",
        "Sin",     "Sinh",     "Sqrt",    "Square", "Tan",     "Tanh"}) {
    CHECK_NOTHROW(compile(graph(f, Type::f16, Type::f16, 1), 0));
  }
  for (auto* f : {"Abs", "BitwiseInvert", "LogicalNot", "Sign", "Square"}) {
    CHECK_NOTHROW(compile(graph(f, Type::i8, Type::i8, 1), 0));
    CHECK_NOTHROW(compile(graph(f, Type::bool_, Type::bool_, 1), 0));
  }
  for (auto* f : {"Conjugate", "Real", "Imag"}) {
    Type out = f[0] == 'C' ? Type::c64 : Type::f32;
    CHECK_NOTHROW(compile(graph(f, Type::c64, out, 1), 0));
  }
  for (auto* f :
       {"Add",
        "ArcTan2",
        "Divide",
        "FloorDivide",
        "LogAddExp",
        "Maximum",
        "Minimum",
        "Multiply",
        "Power",
        "Remainder",
        "Subtract"}) {
    CHECK_NOTHROW(compile(graph(f, Type::f32, Type::f32, 2), 0));
  }
  for (auto* f :
       {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"}) {
    CHECK_NOTHROW(compile(graph(f, Type::u64, Type::u64, 2), 0));
  }
  for (auto* f :
       {"Equal",
        "NaNEqual",
        "NotEqual",
        "Greater",
        "GreaterEqual",
        "Less",
        "LessEqual",
        "LogicalAnd",
        "LogicalOr"}) {
    CHECK_NOTHROW(compile(graph(f, Type::c64, Type::bool_, 2), 0));
  }
}

TEST_CASE("emit: a graph out of order is refused") {
  FusedGraph g;
  g.inputs = {{Type::f32}};
  g.ops = {{Type::f32, "Exp", {1}}};
  g.outputs = {1};
  CHECK_THROWS_AS(emit_fused(g), std::invalid_argument);
  g.ops = {{Type::f32, "Exp", {0}}};
  g.outputs = {2};
  CHECK_THROWS_AS(emit_fused(g), std::invalid_argument);
}

TEST_CASE("emit: the gate of two products is known as such") {
  for (int gate : {0, 1}) {
    for (bool casts : {false, true}) {
      CAPTURE(gate);
      CAPTURE(casts);
      FusedGraph g;
      g.inputs = {{Type::bf16}, {Type::bf16}};
      g.ops = {
          {Type::bf16, "Sigmoid", {gate}}, {Type::bf16, "Multiply", {gate, 2}}};
      if (casts) {
        g.ops.push_back({Type::bf16, "", {3}});
        g.ops.push_back({Type::bf16, "", {1 - gate}});
        g.ops.push_back({Type::bf16, "Multiply", {4, 5}});
        g.outputs = {6};
      } else {
        g.ops.push_back({Type::bf16, "Multiply", {1 - gate, 3}});
        g.outputs = {4};
      }
      auto found = gate_of(g);
      REQUIRE(found);
      CHECK(found->type == Type::bf16);
      CHECK(found->operand == uint32_t(gate));

      auto refused = [&](auto change) {
        FusedGraph other = g;
        change(other);
        return !gate_of(other);
      };
      CHECK(refused([](auto& o) { o.ops[0].function = "Tanh"; }));
      CHECK(refused([](auto& o) { o.ops[1].args = {2, 2}; }));
      CHECK(refused([](auto& o) { o.ops[1].type = Type::f32; }));
      CHECK(refused([](auto& o) { o.inputs[1].scalar = true; }));
      CHECK(refused([](auto& o) { o.inputs[0].constant = true; }));
      CHECK(refused([](auto& o) { o.outputs = {3}; }));
      CHECK(refused([](auto& o) { o.outputs.push_back(2); }));
      CHECK(refused([&](auto& o) { o.ops.back().args = {gate, 3}; }));
    }
  }
}
