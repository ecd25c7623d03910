#include <doctest/doctest.h>

#include <set>
#include <string>

#include "kernels/attention/decode.h"
#include "kernels/gather_scatter.h"
#include "kernels/gemm/gemm.h"
#include "kernels/rows.h"
#include "variants/compile.h"

using namespace mlx::core::vulkan;

namespace {

bool contains(const std::string& text, const char* line) {
  return ("\n" + text).find("\n" + std::string(line) + "\n") !=
      std::string::npos;
}

} // namespace

// StreamEncoder::dispatch() takes no block of another kernel, even of the same
// size.
static_assert(sizeof(SoftmaxArgs) == sizeof(CrossEntropyArgs));
static_assert(Takes<SoftmaxVariant, SoftmaxArgs>);
static_assert(!Takes<SoftmaxVariant, CrossEntropyArgs>);
static_assert(!Takes<SoftmaxVariant, RowArgs>);
static_assert(Takes<GatherVariant, TupleArgs<2, 1, 1, 0>>);
static_assert(Takes<TileVariant, GemmArgs<int32_t, BatchEven>>);
static_assert(!Takes<TileVariant, TupleArgs<2, 1, 1, 0>>);
static_assert(Takes<DecodeVariant, MaskedDecodeArgs>);
static_assert(Takes<DecodeVariant, QuantizedDecodeArgs>);
static_assert(!Takes<DecodeVariant, MaskStrides>);

TEST_CASE("key: equal variants hash equal, by content") {
  std::string file = "softmax", name = "OP", text = "Exp";
  auto a = hash_of("softmax", {{"T", Type::bf16}, {"OP", "Exp"}}, false);
  auto b = hash_of(file, {{"T", Type::bf16}, {name, text}}, false);
  CHECK(a == b);
}

TEST_CASE("key: every part counts") {
  std::set<std::pair<uint64_t, uint64_t>> seen;
  auto add = [&](KernelHash h) { CHECK(seen.insert({h.a, h.b}).second); };
  add(hash_of("softmax", {}, false));
  add(hash_of("softmax", {}, true));
  add(hash_of("softmax2", {}, false));
  add(hash_of("softmax", {{"T", Type::f32}}, false));
  add(hash_of("softmax", {{"T", Type::f32}}, true));
  add(hash_of("softmax", {{"T", Type::f16}}, false));
  add(hash_of("softmax", {{"U", Type::f32}}, false));
  // The integer with the enumerator's value, and its text.
  add(hash_of("softmax", {{"T", static_cast<int>(Type::f32)}}, false));
  add(hash_of("softmax", {{"T", "f32"}}, false));
  add(hash_of("softmax", {{"T", "11"}}, false));
  add(hash_of("softmax", {{"A", 1}, {"B", 2}}, false));
  add(hash_of("softmax", {{"B", 2}, {"A", 1}}, false));
  add(hash_of("softmax", {{"A", 2}, {"B", 1}}, false));
  add(hash_of("softmax", {{"AB", 2}}, false));
  add(hash_of("softmax", {{"A", "Bx"}}, false));
  add(hash_of("softmax", {{"AB", "x"}}, false));
  add(hash_of("softmax", {{"A", std::string_view("x\0", 2)}}, false));
}

TEST_CASE("key: no collisions over many variants") {
  std::set<uint64_t> a, b;
  int n = 0;
  for (int m = 0; m < 100; ++m) {
    for (int k = 0; k < 100; ++k) {
      for (auto t : {Type::f16, Type::f32}) {
        auto h = hash_of("gemm", {{"T", t}, {"BM", m}, {"BN", k}}, false);
        a.insert(h.a);
        b.insert(h.b);
        ++n;
      }
    }
  }
  CHECK(a.size() == n);
  CHECK(b.size() == n);
}

TEST_CASE("key: log name") {
  CHECK(log_name("softmax", {}) == "softmax");
  CHECK(
      log_name("softmax", {{"T", Type::bf16}, {"ROWS", 4}, {"OP", "Max"}}) ==
      "softmax{T=bf16 ROWS=4 OP=Max}");
  CHECK(log_name("x", {{"N", -3}}) == "x{N=-3}");
}

TEST_CASE("key: define block") {
  auto s = define_block(
      {{"T", Type::bf16},
       {"B", Type::bool_},
       {"ROWS", 4},
       {"NEG", -1},
       {"BIG", int64_t(1) << 40},
       {"OP", "Exp"}},
      false);
  CHECK(contains(s, "#define T float"));
  CHECK(contains(s, "#define T_PTR Ptr_bf16"));
  CHECK(contains(s, "#define T_CAST to_bf16"));
  CHECK(contains(s, "#define T_SIZE 2"));
  CHECK(contains(s, "#define T_KIND KIND_FLOAT"));
  CHECK(contains(s, "#define T_IS_bf16 1"));
  CHECK(contains(s, "#define B bool"));
  CHECK(contains(s, "#define B_PTR Ptr_bool"));
  CHECK(contains(s, "#define ROWS 4"));
  CHECK(contains(s, "#define NEG (-1)"));
  CHECK(contains(s, "#define BIG 1099511627776l"));
  CHECK(contains(s, "#define OP Exp"));
  CHECK_FALSE(contains(s, "#define ARGS_IN_MEMORY 1"));
  CHECK(contains(define_block({}, true), "#define ARGS_IN_MEMORY 1"));
}

TEST_CASE("key: types have names and sizes") {
  for (int i = 0; i <= static_cast<int>(Type::c64); ++i) {
    auto t = static_cast<Type>(i);
    CHECK(type_named(name_of(t)) == t);
    CHECK(size_of(t) >= 1);
  }
  CHECK(name_of(Type::c64) == "c64");
  CHECK(size_of(Type::c64) == 8);
  CHECK(size_of(Type::bool_) == 1);
  CHECK_FALSE(type_named("f8"));
}

TEST_CASE("key: named values as defines") {
  NamedValues v{{"T", "u8"}, {"OP", "Max"}};
  auto d = to_defines(v);
  CHECK(d[0].kind == Define::Kind::Type);
  CHECK(d[1].kind == Define::Kind::Text);
  NamedValues n{{"N", "-4"}, {"E", ""}, {"F", "1.5"}};
  auto e = to_defines(n);
  CHECK(e[0].kind == Define::Kind::Integer);
  CHECK(e[0].value == -4);
  CHECK(e[1].kind == Define::Kind::Text);
  CHECK(e[2].kind == Define::Kind::Text);
}
