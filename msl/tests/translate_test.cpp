// Metal kernels to GLSL, and what glslang says of it. What the results are is
// compared on a device (tests/kernels, tests/backend).
#include <doctest/doctest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "msl/translate.h"
#include "null/text.h"
#include "pipeline/sources.h"
#include "variants/compile.h"

using namespace mlx::core::vulkan;
using namespace msl;

namespace {

Source kernel(const std::string& body, const std::string& header = "") {
  Source s;
  s.name = "k";
  s.header = header;
  s.body = body;
  s.arguments = {
      {.name = "x", .type = "float"},
      {.name = "h", .type = "half"},
      {.name = "b", .type = "bfloat16_t"},
      {.name = "q", .type = "uint8_t"},
      {.name = "x_shape", .type = "int", .constant = true},
      {.name = "x_strides", .type = "int64_t", .constant = true},
      {.name = "n", .type = "int", .constant = true, .reference = true},
      {.name = "y", .type = "float", .output = true},
      {.name = "yh", .type = "half", .output = true},
      {.name = "yi", .type = "int", .output = true},
      {.name = "counts", .type = "uint", .output = true, .atomic = true},
      {.name = "sums", .type = "float", .output = true, .atomic = true},
  };
  s.templates = {
      {"T", std::string("bfloat16_t")}, {"N", int64_t(4)}, {"flag", true}};
  return s;
}

// As GLSL that compiles, for SIMD-groups that are subgroups, parts of them, and
// emulated. Names are the user's again, without the u_ that keeps them apart.
std::string glsl(
    const std::string& body,
    const std::string& header = "",
    uint32_t shown = 32) {
  std::string text;
  for (uint32_t subgroup : {8u, 16u, 32u, 64u}) {
    msl::Target t;
    t.subgroup = subgroup;
    t.aligned = subgroup == 64;
    auto made = translate(kernel(body, header), t);
    CAPTURE(made.glsl);
    CHECK_NOTHROW(compile_source("k", with_threads(made.glsl, {64, 2, 1}), {}));
    text = subgroup == shown ? made.glsl : text;
  }
  return std::regex_replace(text, std::regex("\\bu_"), "");
}

std::string refusal(const std::string& body, const std::string& header = "") {
  try {
    translate(kernel(body, header), {});
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("msl: conversions and promotions are C++14's") {
  auto t = glsl(R"(
    uint i = thread_position_in_grid.x;
    uchar a = q[i];
    char c = char(a);
    auto sum = a + c;          // int
    short s = sum * 2;
    auto wide = i + 1l;        // long
    auto mixed = h[i] * x[i];  // float
    auto low = h[i] + h[i + 1];// half
    auto both = h[i] + b[i];   // float
    auto scaled = h[i] * 2;    // half
    yi[i] = sum % 3 + (s >> 1) + int(wide);
    y[i] = mixed + both;
    yh[i] = low * scaled;
    y[i] += h[i];
    yi[i] = -q[i];
    bool p = x[i];
    y[i] = p ? 1 : 0.5f;
  )");
  CHECK(has(t, "int sum = int(a) + int(c);"));
  CHECK(has(t, "int16_t s = int16_t(bitfieldExtract(sum * 2, 0, 16));"));
  CHECK(has(t, "int64_t wide = int64_t(i) + 1l;"));
  CHECK(has(t, "float mixed = load(Ptr_f16(h), i) * load(Ptr_f32(x), i);"));
  CHECK(has(t, "float low = msl_round_f16("));
  CHECK(has(t, "float both = load(Ptr_f16(h), i) + load(Ptr_bf16(b), i);"));
  CHECK(has(t, "float scaled = msl_round_f16(load(Ptr_f16(h), i) * 2.0);"));
  CHECK(has(t, "msl_rem(sum, 3)")); // towards zero, unlike GLSL's
  CHECK(has(t, "store(Ptr_f16(yh), i, low * scaled);")); // store() rounds
  CHECK(has(t, "-int(load(Ptr_u8(q), i))"));
  CHECK(has(t, "bool p = load(Ptr_f32(x), i) != 0.0;"));
}

TEST_CASE("msl: constants are folded, dead branches need no meaning") {
  auto t = glsl(R"(
    constexpr int M = N * 2 + (flag ? 1 : 0);
    constexpr float eps = 3 * 1e-3;
    float a[M] = {1, 2};
    if (N == 3) { y[0] = undeclared(x); } else { y[0] = eps; }
    if constexpr (sizeof(T) == 2) { y[1] = a[0]; }
    y[2] = N > 8 ? missing : a[M - 1];
    y[3] = metal::numeric_limits<uint>::max() + INFINITY + Limits<half>::min;
    yi[0] = 0x7fffffff + 0b11 + 017 - 'a' + INT_MIN + (1 << 4 | 3);
  )");
  CHECK(has(t, "const int M = 9;"));
  CHECK(has(t, "float a[9]"));
  CHECK(has(t, "const float eps = 0.003;"));
  CHECK(!has(t, "undeclared"));
}

TEST_CASE("msl: vectors") {
  auto t = glsl(R"(
    using T4 = vec<T, 4>;
    uint i = thread_position_in_grid.x;
    const device float4* v = (const device float4*)(x + 4 * i);
    float4 a = v[0], c = v[i];
    a.xy = c.zw;
    a[i & 3] += 2;
    c *= 0.5f;
    T4 w = T4(a);
    ((device half4*)yh)[i] = half4(a + c);
    *(device float2*)(y + 2) = a.xy;
    y[0] = dot(a, c) + length(a.xyz) + float(w.x) + any(a < c) + v[1].y;
    packed_float3 p = packed_float3(1, 2, 3);
    uchar4 bytes = as_type<uchar4>(as_type<uint>(x[0]));
    ushort2 pair = as_type<ushort2>(half2(1.5h, 2));
    yi[0] = bytes.w + pair.x + as_type<int>(1.0f) + int(p.z);
    yh[3] = as_type<half>(ushort(0x3c00));
    float4 s = select(a, c, a > c);
    y[1] = metal::clamp(s, 0, 1).x + fma(a, c, s).y + exp(s).z;
  )");
  CHECK(has(t, "vec4 a = load_f32x4("));
  CHECK(has(t, "a.xy = c.zw;"));
  CHECK(has(t, "store_f16x4("));
  CHECK(has(t, "mix(a, c, greaterThan(a, c))"));
}

TEST_CASE("msl: pointers and references") {
  auto t = glsl(
      R"(
    uint i = thread_position_in_grid.x;
    threadgroup float tile[8][4];
    threadgroup half small[16];
    const device float* p = x + i * 4;
    const device float* two[2] = {p, x};
    p += N;
    float v[N][2];
    for (int k = 0; k < N; ++k) { fill(v[k], p[k]); }
    tile[i & 7][1] = total(v[1]);
    small[i & 15] = tile[0][2];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup float* row = tile[3];
    threadgroup float& cell = row[i & 3];
    cell += 1;
    float4 whole = *(threadgroup float4*)(row);
    device float& out = y[i];
    out = *p++ + two[1][0] + whole.x + small[2];
    float one = 1;
    twice(one);
    twice(y[i + 1]);
    twice(tile[1][1]);
    thread float* at = &one;
    *at = 3;
    store(tile[2], y + 2);
    yi[i] = int(p - x) + (p == x) + (p < two[0]);
    yi[i + 1] = ((const device uint16_t*)q)[i];
  )",
      R"(
    inline void fill(thread float* to, float v) { to[0] = v; to[1] = v + 1; }
    template <typename P> float total(P p) { return p[0] + p[1]; }
    template <typename T> void twice(thread T& v) { v *= 2; }
    void twice(device float& v) { v *= 2; }
    void twice(threadgroup float& v) { v *= 2; }
    void store(const threadgroup float* from, device float* to) {
      for (int i = 0; i < 4; i++) to[i] = from[i];
    }
  )");
  CHECK(has(t, "shared float tile[32];"));
  CHECK(has(t, "shared uint16_t small[16];"));
  CHECK(has(t, "uint64_t two[2] = uint64_t[2](p, x);"));
  CHECK(has(t, "inout float v"));
  CHECK(has(t, "msl_quotient(int64_t(p - x), 4l)"));
}

TEST_CASE("msl: quotients of floats are correctly rounded") {
  auto t = glsl("y[0] = x[0] / 3; y[1] /= x[1]; yi[0] = yi[1] / 3;");
  CHECK(has(t, "msl_divide(load(Ptr_f32(x), 0), 3.0)"));
  CHECK(has(t, "store(Ptr_f32(y), 1, msl_divide("));
  CHECK_FALSE(has(t, " / 3.0"));
}

TEST_CASE("msl: templates, structs, overloads, lambdas") {
  auto t = glsl(
      R"(
    uint i = thread_position_in_grid.x;
    Acc<float, 3> a;
    a.add(x[i], 1);
    Acc<float, 3> c(2.0f);
    Acc<float, 3> sum = a + c;
    y[i] = sum[1] + Acc<float, 3>::n + kind(1) + kind(1.0f) + kind(q[i]);
    y[i + 1] = power<3>(x[i]) + scale<half>(x[i]) + which<bfloat16_t>();
    int calls = 0;
    auto next = [&](int by) { calls += by; return calls * 2; };
    yi[i] = next(3) + next(4);
    Pair pair = {1, {2, 3}};
    pair.v[0] += pair.a;
    Pair copy = pair;
    Traits<half>::wide w = 2;
    yi[i + 1] = copy.v[0] + int(Mode::Max) + Third + int(w) + sum_of(table, 3);
  )",
      R"(
    template <typename T, int N = 2>
    struct Acc {
      T v[N];
      static constexpr constant int n = N;
      Acc() { for (int i = 0; i < N; ++i) v[i] = 0; }
      Acc(T x) : v{x} {}
      void add(T x, int i) thread { v[i] += x; }
      Acc operator+(Acc other) const {
        Acc r;
        for (int i = 0; i < N; ++i) { r.v[i] = v[i] + other.v[i]; }
        return r;
      }
      T operator[](int i) const { return v[i]; }
    };
    struct Pair { int a; int v[2]; };
    template <typename T> struct Traits { using wide = float; };
    constant constexpr int table[3] = {4, 5, 6};
    int sum_of(constant const int* p, int n) {
      int s = 0;
      for (int i = 0; i < n; ++i) { s += p[i]; }
      return s;
    }
    enum class Mode : int { Sum, Max = 3 };
    enum { First = 1, Second, Third };
    int kind(int) { return 1; }
    int kind(float) { return 2; }
    template <int P> float power(float x) {
      if constexpr (P == 0) { return 1; } else { return x * power<P - 1>(x); }
    }
    template <typename T> float scale(T x) { return x * T(2); }
    template <typename T> int which() { return 0; }
    template <> int which<bfloat16_t>() { return 7; }
  )");
  CHECK(has(t, "struct Acc {"));
  CHECK(has(t, "float power_3(float x)"));
  CHECK(has(t, "return 7;"));
}

TEST_CASE("msl: statements keep their order and effects") {
  auto t = glsl(R"(
    int i = 0, j = 0;
    while (i++ < 3) { if (i == 2) continue; yi[i] = j++; }
    do { j -= 2; } while (--i > 0 && j > -5);
    for (int a = 0, c = 9; a < c; a++, c -= 2) { yi[a] = c; }
    for (;;) { if (j++ > 3) break; }
    switch (j & 3) {
      case 0: yi[0] = 1; break;
      case 1:
      case 2: { yi[1] = 2; }
      default: yi[2] = 3;
    }
    int k;
    i = 4, k = i + 1;
    bool either = i > 2 || (j = 7) > 2;
    int m = either ? j++ : --k;
    int chain = i = j = k;
    yi[chain + m] ^= k << 2;
    ushort u = 65535;
    u++;
    yi[5] = u;
    half hh = 1;
    hh += 0.001f;
    yh[0] = hh;
  )");
  CHECK(has(t, "int old = i;"));
  CHECK(has(t, "for (; a < c; ++a, c -= 2) {"));
  CHECK(has(t, "switch (j & 3) {"));
  CHECK(has(t, "u = uint16_t(int(u) + 1);"));
  CHECK(has(t, "if (!both) {"));
}

TEST_CASE("msl: functions of MSL, atomics, MLX's own") {
  auto t = glsl(R"(
    uint i = thread_position_in_grid.x;
    float v = x[i];
    y[0] = metal::exp(v) + fast::exp(v) + precise::rsqrt(v) + pow(v, 2) +
        fmax(v, 0.0f) + min3(v, 1.0f, 2.0f) + sign(v) + rint(v) + log1p(v);
    float c;
    y[1] = sincos(v, c) + c + ldexp(v, 3) + isnan(v);
    yi[0] = clz(i) + popcount(q[i]) + mulhi(i, 7u) + abs(-3) + max(3, yi[1]) +
        extract_bits(i, 2, 3) + addsat(q[i], q[i + 1]) + int(absdiff(3l, 5l));
    atomic_fetch_add_explicit(&counts[i], 1u, memory_order_relaxed);
    atomic_fetch_add_explicit(&sums[0], v, memory_order_relaxed);
    threadgroup atomic_int best;
    atomic_store_explicit(&best, 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    atomic_fetch_max_explicit(&best, int(i), memory_order_relaxed);
    int expected = 3;
    if (atomic_compare_exchange_weak_explicit(&best, &expected, 5,
            memory_order_relaxed, memory_order_relaxed)) {
      yi[1] = atomic_load_explicit(&best, memory_order_relaxed);
    }
    y[2] = x[elem_to_loc(i, x_shape, x_strides, 2)] + ceildiv(n, 4);
    yh[0] = metal::max(h[0], h[1]) + exp(h[2]);
  )");
  CHECK(has(t, "atomicAdd(Ptr_u32("));
  CHECK(has(t, "atomicCompSwap(Ptr_u32("));
  CHECK(has(t, "shared int best;"));
  CHECK(has(t, "memoryBarrierBuffer();"));
  CHECK(has(t, "exp(v)"));
  CHECK(has(t, "msl_round_f16(msl_exp("));
}

namespace {

const std::string block_sum = R"(
  template <int G>
  float block_sum(float v, threadgroup float* buf, uint lane, uint sg) {
    v = simd_sum(v);
    if (lane == 0) { buf[sg] = v; }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (G == 1) return v;
    return simd_sum(lane < G ? buf[lane] : 0.0f);
  })";

} // namespace

TEST_CASE("msl: collectives in control flow become masks when emulated") {
  std::string body = R"(
    uint i = thread_position_in_grid.x;
    uint lane = thread_index_in_simdgroup, sg = simdgroup_index_in_threadgroup;
    threadgroup float buf[4];
    if (i >= 100) { return; }
    float v = x[i];
    if (lane < 16) {
      v = simd_sum(v);
      if (v < 0) { y[i] = 0; return; }
    } else {
      v += simd_shuffle_xor(v, 1) * 2;
    }
    for (uint k = lane; k < uint(n); k += 32) {
      if (x[k] < 0) continue;
      if (x[k] > 9) break;
      v += block_sum<4>(x[k], buf, lane, sg);
    }
    while (v > 1 && simd_any(v > 2)) { v *= 0.5f; }
    do { v -= 1; simdgroup_barrier(mem_flags::mem_none); } while (v > 3);
    float w = lane == 0 ? simd_max(v) : v;
    switch (n) {
      case 1: w = simd_min(w); break;
      default: w += 1;
    }
    y[i] = w;
  )";
  auto narrow = glsl(body, block_sum, 8), wide = glsl(body, block_sum, 32);
  CHECK(!has(wide, "lanes"));
  CHECK(!has(wide, "msl_any_in_threadgroup"));
  CHECK(has(wide, "msl_simd_sum(v)"));
  CHECK(has(narrow, "msl_any_in_threadgroup("));
  CHECK(has(narrow, "float block_sum(bool lanes"));
  // Nothing leaves main(), or a loop but when all do.
  std::string text = narrow.substr(narrow.find("void main()"));
  CHECK(!has(text, "return"));
  CHECK(!has(text, "continue"));
  // All come to each barrier: none stands in an `if`.
  int depth = 0;
  bool loops_only = true;
  std::vector<bool> conditional;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (has(line, "msl_simd") || has(line, "barrier()") ||
        has(line, "block_sum(")) {
      for (bool c : conditional) {
        loops_only = loops_only && !c;
      }
    }
    if (line.ends_with("{")) {
      conditional.push_back(has(line, "if ("));
      ++depth;
    } else if (has(line, "}") && !conditional.empty()) {
      conditional.pop_back();
    }
  }
  CHECK(loops_only);
  CHECK(depth > 4);
}

TEST_CASE("msl: loops that all turn alike stay loops when emulated") {
  auto t = glsl(
      "float s[4] = {0};\n"
      "for (int k = 0; k < N; ++k) { s[k] = simd_sum(s[k]); }\n"
      "for (int k = 0; k < n; k++) { s[0] += simd_sum(x[k]); }\n"
      "y[0] = s[0];",
      "",
      8);
  CHECK(has(t, "for (int k = 0; k < N; ++k) {"));
  CHECK(!has(t, "while (true)"));
}

TEST_CASE("msl: simdgroup matrices, and places that methods return") {
  auto t = glsl(
      "simdgroup_matrix<float, 8, 8> a[2], c(2.0f);\n"
      "simdgroup_half8x8 w = make_filled_simdgroup_matrix<half, 8, 8>(half(1));"
      "simdgroup_load(a[0], x, n);\n"
      "a[1].thread_elements()[1] += a[0].thread_elements()[0];\n"
      "reinterpret_cast<thread float2&>(a[1].thread_elements()) *= 2.0f;\n"
      "simdgroup_multiply_accumulate(c, a[0], w, c);\n"
      "metal::simdgroup_multiply(a[0], a[1], c);\n"
      "simdgroup_store(a[0], y, n, ulong2(8, 0), true);");
  CHECK(has(t, "a[1].pair_.y"));
  // Lines of an error are the user's, not those of what stands before.
  std::string wrong = refusal(
      "y[0] = f(1);",
      "float f(simdgroup_float8x8 m) {"
      "\n  return m.row;\n}");
  CHECK(has(wrong, "there is no function `f(int)`"));
  CHECK(has(
      refusal("simdgroup_half8x8 m;\ny[0] = m.row;"), "line 2 of the body"));
  CHECK(
      has(refusal("simdgroup_matrix<float, 4, 8> m;"),
          "matrices have 8 x 8 items"));
}

TEST_CASE("msl: errors name the line and what to do") {
  auto says = [](const std::string& body, const std::string& expected) {
    std::string message = refusal(body);
    CAPTURE(message);
    CHECK(message.starts_with("[metal_kernel] k: line "));
    CHECK(has(message, expected));
  };
  says(
      "int a = 1;\ny[0] = nothing + a;",
      "line 2 of the body, column 8: `y[0] = nothing");
  says("y[0] = frobnicate(x[0]);", "there is no function `frobnicate(float)`");
  says("simdgroup_async_copy(1);", "there is no function `simdgroup_async");
  says("half3x3 m;", "`half3x3`");
  says("float4 v = x[0]; y[0] = v.q;", "`float4` has no");
  says("y[0] = x[0] % 2;", "fmod()");
  says("int a[n];", "must be an integer constant");
  says("threadgroup float t[100000];", "bytes that this device offers");
  says(
      "threadgroup float a[2]; threadgroup float2 c[2]; threadgroup float* p = "
      "a; p = (threadgroup float*)c;",
      "would point into `a` as well as into `c`");
  says("float v = x; y[0] = v;", "does not convert");
  says("static_assert(N == 5, \"five\"); y[0] = 1;", "five");
  std::string recursive =
      refusal("y[0] = f(3);", "float f(int n) {\n  return n ? f(n - 1) : 0; }");
  CHECK(has(recursive, "line 2 of the header"));
  CHECK(has(recursive, "calls itself"));
  CHECK(
      has(refusal(
              "y[0] = g<0>(1);",
              "template <int N> int g(int x) {"
              " return g<N + 1>(x); }"),
          "do not come to an end"));
}

TEST_CASE("msl: pointers that move make their arrays parts of one") {
  auto t = glsl(
      "threadgroup float2 a[24], c[8]; threadgroup float other[8];\n"
      "threadgroup float2* p = a; threadgroup float2* q = c;\n"
      "threadgroup float2* kept = p; p = q; q = kept;\n"
      "other[0] = 1; p[0] = other[0]; y[0] = q[3].x;");
  CHECK(has(t, "shared vec2 arrays[32];"));
  CHECK(has(t, "shared float other[8];"));
  CHECK(has(t, "int q = 24;"));
  // Those that stay keep their code.
  t = glsl(
      "threadgroup float2 a[24]; threadgroup float2* p = a; p += 3;\n"
      "p[0] = x[0]; y[0] = a[3].x;");
  CHECK(has(t, "shared vec2 a[24];"));
}

namespace {

// Of the kernel's own adds and multiplies, with what it calls: how many may be
// contracted, and how many not.
struct Contraction {
  int may = 0, must_not = 0;
  bool operator==(const Contraction&) const = default;
};

Contraction contraction(
    const std::string& body,
    const std::string& header = "") {
  auto text = with_threads(translate(kernel(body, header), {}).glsl, {1, 1, 1});
  auto spirv = compile_source("k", text, {}).spirv;
  std::set<uint32_t> exact;
  Contraction c;
  for (size_t i = 5; i < spirv.size(); i += spirv[i] >> 16) {
    uint32_t op = spirv[i] & 0xffff;
    if (op == 71 && spirv[i + 2] == 42) { // OpDecorate ... NoContraction
      exact.insert(spirv[i + 1]);
    } else if (op == 129 || op == 131 || op == 133) { // FAdd, FSub, FMul
      ++(exact.contains(spirv[i + 2]) ? c.must_not : c.may);
    }
  }
  return c;
}

} // namespace

TEST_CASE("msl: rules of float operations hold to the end of their scope") {
  const std::string fma = "y[0] = x[0] * x[1] + x[2];\n";
  const Contraction may{2, 0}, must_not{0, 2}, each{2, 2};
  CHECK(contraction(fma) == may);
  for (std::string off :
       {"clang fp contract(off)",
        "METAL fp contract(off)",
        "STDC FP_CONTRACT OFF",
        "clang fp reassociate(off)",
        "clang fp contract(fast) reassociate(off)",
        "METAL fp math_mode(safe)"}) {
    CAPTURE(off);
    std::string pragma = "#pragma " + off + "\n";
    CHECK(contraction(pragma + fma) == must_not);
    CHECK(contraction("_Pragma(\"" + off + "\") " + fma) == must_not);
    CHECK(contraction("{\n" + pragma + fma + "}\n" + fma) == each);
    CHECK(contraction(fma + "{\n" + pragma + fma + "}\n") == each);
    // The header's file scope goes on in the body.
    CHECK(contraction(fma, pragma) == must_not);
    CHECK(
        contraction(fma, "float f(float a) {\n" + pragma + "return a;\n}") ==
        may);
    CHECK(
        contraction(
            "y[0] = f(x[0]);",
            pragma +
                "float f(float a) { return a * "
                "a + 1; }") == must_not);
  }
  for (std::string on :
       {"clang fp contract(on)",
        "clang fp contract(fast)",
        "STDC FP_CONTRACT ON",
        "STDC FP_CONTRACT DEFAULT",
        "METAL fp contract(fast)",
        "METAL fp math_mode(fast)"}) {
    CAPTURE(on);
    CHECK(
        contraction(
            "#pragma clang fp contract(off)\n" + fma + "{\n#pragma " + on +
            "\n" + fma + "}\n") == each);
    CHECK(contraction("#pragma " + on + "\n" + fma) == may);
  }
  CHECK(
      contraction("#pragma clang fp contract(off)\nfloat2 a = float2(x[0]);\n"
                  "a *= float2(2, 3); a += 1.0f; y[0] = a.x - a.y;") ==
      Contraction{0, 3});
  CHECK(
      contraction(
          "#define OFF _Pragma(\"clang fp contract(off)\")\n"
          "{ OFF " +
          fma + "}") == must_not);
}

TEST_CASE("msl: pragmas and attributes that may change results are refused") {
  for (std::string word :
       {"pack(push, 1)",
        "clang attribute push(x)",
        "float_control(precise, on)",
        "STDC FENV_ACCESS ON",
        "METAL fp unheard(off)",
        "clang fp contract(sometimes)",
        "clang fp exceptions(strict)",
        "clang fp contract",
        "clang fp",
        "clang unheard",
        "unheard of"}) {
    std::string message = refusal("float a = 1;\n#pragma " + word + "\n");
    CAPTURE(message);
    CHECK(message.starts_with("[metal_kernel] k: line 2 of the body, column "));
    CHECK(has(message, "#pragma " + word));
  }
  for (std::string word :
       {"[[clang::unheard]] float a = 1;",
        "struct __attribute__((packed)) S { char c; float f; };",
        "struct alignas(32) S { float f; };"}) {
    std::string message = refusal("int b = 1;\n" + word);
    CAPTURE(message);
    CHECK(message.starts_with("[metal_kernel] k: line 2 of the body, column "));
  }
  glsl(
      R"(
    #pragma mark here
    #pragma clang diagnostic push
    #pragma clang diagnostic ignored "-Wunused"
    #pragma GCC diagnostic pop
    #pragma clang loop vectorize(enable) interleave(enable)
    #pragma nounroll
    for (int i = 0; i < n; ++i) [[likely]] {
      if (i > 2) [[unlikely]] { y[i] = 1; }
    }
    #pragma STDC FENV_ACCESS OFF
    #pragma METAL internals : enable
    [[maybe_unused]] int a = 0;
    alignas(16) float c[4] = {0, 0, 0, 0};
    y[0] = c[0];)",
      "__attribute__((always_inline)) float f(float a) { return a; }\n"
      "[[nodiscard]] inline float g(float a) { return a; }\n");
}

TEST_CASE("msl: names that GLSL has for itself") {
  glsl(R"(
    float out = 1, input = 2, buffer = 3, sample = 4, gl_x = 5, my__name = 6;
    float vec4 = 7, texture = 8, A = 9, load = 10, layout = 11, active = 12;
    int main = 0, msl_simd_sum = 1, floor = 2, int64 = 3, shared = 4;
    y[0] = out + input + buffer + sample + gl_x + my__name + vec4 + texture +
        A + load + layout + active + main + msl_simd_sum + floor + int64 +
        shared;
    for (int i = 0; i < 2; ++i) { float out = i; y[i] = out; }
  )");
}

TEST_CASE("msl: no name of what shaders include begins as the user's do") {
  std::string body = "y[0] = simd_sum(x[0]) + exp(x[1]) + float(h[0]) + b[0];";
  auto files = included_sources(translate(kernel(body), {}).glsl);
  CHECK(files.size() > 5);
  for (auto& file : files) {
    CAPTURE(file.name);
    CHECK(!std::regex_search(file.text, std::regex("\\bu_")));
  }
}
