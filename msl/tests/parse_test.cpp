#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "msl/parse.h"
#include "msl/tests/print.h"
#include "null/text.h"

using namespace msl;

namespace {

const std::vector<std::string> kTypes{"T", "U"};

// Of a body, without the braces around it.
std::string body(std::string_view text, std::string_view header = "") {
  std::string out = print(*parse(header, text, kTypes).body);
  return out.substr(2, out.size() - 4);
}

std::string header(std::string_view text) {
  std::string out = print(parse(text, "", kTypes));
  return out.substr(0, out.rfind('\n', out.size() - 4));
}

// What is said of a text, as the user reads it.
std::string refusal(std::string_view text, std::string_view header = "") {
  try {
    parse(header, text, kTypes);
  } catch (const Error& error) {
    return error.message("k", header, text);
  }
  return "";
}

} // namespace

TEST_CASE("msl: what could be a declaration, a cast or an operation") {
  CHECK(body("T * b;") == "let T* b;");
  CHECK(body("a * b;") == "(* a b);");
  CHECK(body("a & b;") == "(& a b);");
  CHECK(body("x = (T)-y;") == "(= x (cast <T> (- y)));");
  CHECK(body("x = (w)-y;") == "(= x (- w y));");
  CHECK(body("x = ((w)) & y;") == "(= x (& w y));");
  CHECK(body("x = (w[2]) * y;") == "(= x (* (at w 2) y));");
  CHECK(body("x = (f(w)) + y;") == "(= x (+ (call f w) y));");
  CHECK(body("x = (T)(y) * z;") == "(= x (* (cast <T> y) z));");
  CHECK(body("x = (Foo)y;") == "(= x (cast <Foo> y));");
  CHECK(body("x = (float)*p;") == "(= x (cast <float> (* p)));");
  CHECK(body("x = (float)*p * *q;") == "(= x (* (cast <float> (* p)) (* q)));");
  CHECK(body("if (a) *p = 1;") == "if a (= (* p) 1);");
  CHECK(body("f(x)(y);") == "(call (call f x) y);");
  CHECK(body("T(x);") == "(make <T> x);");
  CHECK(body("S(x);") == "(call S x);");
  CHECK(
      body("if (a < b && c > (d)) x = y;") ==
      "if (&& (< a b) (> c d)) (= x y);");
  CHECK(body("f(a < b, c > (d));") == "(call f (< a b) (> c d));");
  CHECK(body("a = b < c > d;") == "(= a (> (< b c) d));");
  CHECK(body("x = y++ * z;") == "(= x (* (y ++) z));");
  CHECK(body("x = sizeof(T) * 2;") == "(= x (* (sizeof <T>) 2));");
  CHECK(body("x = sizeof(y) * 2;") == "(= x (* (sizeof y) 2));");
}

TEST_CASE("msl: declarations of variables") {
  CHECK(
      body("float v(1), w(x, y), z{3}, k;") ==
      "let float v (=) { 1 }; float w (=) { x y }; float z = { 3 }; float "
      "k;");
  CHECK(
      body("int v(~f(x, 1) + 1);") ==
      "let int v (=) { (+ (~ (call f x 1)) 1) };");
  CHECK(body("x = f(1), g(2);") == "(, (= x (call f 1)) (call g 2));");
  CHECK(
      body("threadgroup float buf[32][N + 1], *q;") ==
      "let threadgroup float buf[32][(+ N 1)]; threadgroup float* q;");
  CHECK(
      body("const device T* p = a + 1; device const T* q = p;") ==
      "let device const T* p = (+ a 1); let device const T* q = p;");
  CHECK(body("thread auto& r = x[1];") == "let thread auto& r = (at x 1);");
  CHECK(
      body("int a[2][2] = {{1, 2}, {3, 4}};") ==
      "let int a[2][2] = { { 1 2 } { 3 4 } };");
  CHECK(body("float a[N] = {};") == "let float a[N] = { };");
  CHECK(
      body(
          "unsigned int a; unsigned long long b = 1; signed char c; long d;") ==
      "let uint a; let ulong b = 1; let char c; let long d;");
  CHECK(
      body("static constexpr constant int n = 3;") ==
      "let static constexpr constant const int n = 3;");
  CHECK(body("volatile float a;") == "let volatile float a;");
  CHECK(body("decltype(x) a = x;") == "let decltype(x) a = x;");
  CHECK(
      body("metal::vec<T, 4> a; array<float, N * 2> b; Foo<N> c(1);") ==
      "let vec<T, 4> a; let array<float, (* N 2)> b; let Foo<N|N> c (=) { 1 "
      "};");
  CHECK(
      body("array<vec<T, 2>, 4> a; vec<vec<T, 2>, 4> b; array<S, 1> c;") ==
      "let array<vec<T, 2>, 4> a; let vec<vec<T, 2>, 4> b; let array<S|S, 1> "
      "c;");
  CHECK(
      body("Foo x = y; const Bar z = x;") ==
      "let Foo x = y; let const Bar z = x;");
  CHECK(
      body("typename Foo<T>::type x; Foo<T>::type y;") ==
      "let Foo<T>::type x; let Foo<T>::type y;");
  CHECK(
      body("using V = vec<T, 4>; typedef float F, *P; F f = F(2);") ==
      "using V = vec<T, 4>; using F = float; using P = float*; let F f = "
      "(make <F> 2);");
  CHECK(
      body("struct A { float x, y; int n = 3; } a = {1, 2}; A b;") ==
      "struct A { float x; float y; int n = 3; } let A a = { 1 2 }; let A b;");
  CHECK(
      body("enum { P, Q = 4, R }; x = R;") ==
      "let constexpr const int P = 0; let constexpr const int Q = 4; let "
      "constexpr const int R = (+ Q 1); (= x R);");
  CHECK(
      body("static_assert(N == 4, \"four\");") == "assert (== N 4) \"four\";");
}

TEST_CASE("msl: pointers, casts and constructions") {
  CHECK(
      body(
          "auto p = (device uint*)x; (*p)++; ++*p; *(threadgroup T4*)(b) = c;",
          "using T4 = vec<float, 4>;") ==
      "let auto p = (cast <device uint*> x); ((* p) ++); (++ (* p)); (= (* "
      "(cast <threadgroup T4*> b)) c);");
  CHECK(
      body("x = *reinterpret_cast<const device packed_float4*>(p + 1);") ==
      "(= x (* (cast:reinterpret_cast <device const packed_float4*> (+ p "
      "1))));");
  CHECK(
      body("reinterpret_cast<thread float2&>(a) = b;") ==
      "(= (cast:reinterpret_cast <thread float2&> a) b);");
  CHECK(
      body("x = as_type<half>(ushort(y)) + float4(1).xy.x;") ==
      "(= x (+ (call as_type<half> (make <ushort> y)) (.x (.xy (make <float4> "
      "1)))));");
  CHECK(
      body("x = vec<T, 2>(a, b) * T{3} - (float2){1, 2};") ==
      "(= x (- (* (make <vec<T, 2>> a b) (make <T> 3)) (make <float2> 1 2)));");
  CHECK(
      body("x = metal::fast::exp(std::max(a, b)) + Limits<T>::max + "
           "mem_flags::mem_none;") ==
      "(= x (+ (+ (call fast::exp (call max a b)) Limits<T>::max) "
      "mem_flags::mem_none));");
  CHECK(
      body("f<3>(1); g<T, N>(2); a.h<2>(3); a.template k<T>(4);") ==
      "(call f<3> 1); (call g<T, N|N> 2); (call (.h<2> a) 3); (call (.k<T> a) "
      "4);");
  CHECK(
      body("x = 0x1Fu + 1'000 + 1.5h + .5f + 1e-3f + 0x1p-3f + true + 'a';") ==
      "(= x (+ (+ (+ (+ (+ (+ (+ 0x1Fu 1'000) 1.5h) .5f) 1e-3f) 0x1p-3f) true) "
      "(cast <char> 97)));");
}

TEST_CASE("msl: a name means what its scope says") {
  // T is a type in the function and a number in the body.
  std::string_view h = "template <typename D> D f(D x) { return (D)-x; }";
  CHECK(body("x = (D)-x;", h) == "(= x (- D x));");
  CHECK(
      header(h) ==
      "template < type D; > fn D f(D x) { return (cast <D> (- x)); }");
  CHECK(
      body("{ typedef float F; x = (F)-x; } x = (F)-x;") ==
      "{ using F = float; (= x (cast <F> (- x))); } (= x (- F x));");
  CHECK(body("int T = 3; x = (T)-y;") == "let int T = 3; (= x (- T y));");
  CHECK(
      body("auto vec = x; y = vec < 3 > (2);") ==
      "let auto vec = x; (= y (> (< vec 3) 2));");
  CHECK(
      body("x = (q::A)(3);", "namespace q { struct A { int a; }; }") ==
      "(= x (cast <A> 3));");
  CHECK(
      header("using V = int2; int f(int V) { return (V)-1; } V g(V x);") ==
      "using V = int2;\nfn int f(int V) { return (- V 1); }\nfn V g(V x) _");
}

TEST_CASE("msl: statements") {
  CHECK(
      body("for (uint i = 0, j = 4; i < j; ++i, j--) { continue; }") ==
      "for (let uint i = 0; uint j = 4;; (< i j); (, (++ i) (j --))) { "
      "continue; }");
  CHECK(body("for (;;) break;") == "for (_; _; _) break;");
  CHECK(
      body("do { x += 1; } while (x < 3); while (x) ;") ==
      "do { (+= x 1); } while (< x 3) while x ;");
  CHECK(
      body(
          "switch (x) { case 1: case 2: y = 1; break; default: { y = 2; } }") ==
      "switch x { case 1: case 2: (= y 1); break; default: { (= y 2); } }");
  CHECK(
      body("if constexpr (N > 2 && is_same_v<T, float>) return; else x = y;") ==
      "if constexpr (&& (> N 2) is_same_v<T, float>) return; else (= x y);");
  CHECK(body("x = a ? b : c, d;") == "(, (= x (? a b c)) d);");
  CHECK(
      body(
          "auto f = [&](int i, auto j) -> float { return i * j; }; f(1, 2);") ==
      "let auto f = (lambda (int i, auto j) -> float { return (* i j); }); "
      "(call f 1 2);");
  CHECK(
      body("#pragma unroll\nfor (;;) {}\n#pragma clang loop unroll_count(4)\n"
           "while (x) {}\n#pragma clang loop unroll(disable)\nfor (;;) {}") ==
      "unroll 1 for (_; _; _) { } unroll 4 while x { } for (_; _; _) { }");
  CHECK(
      body(
          "UNROLL for (;;) {}",
          "#define UNROLL _Pragma(\"clang loop unroll(full)\")") ==
      "unroll 1 for (_; _; _) { }");
}

TEST_CASE("msl: functions, structs and templates of the header") {
  CHECK(
      header("inline float f(device const float* p [[buffer(0)]], threadgroup "
             "float (&b)[32], uint i [[thread_position_in_grid]]) { return "
             "p[i]; }") ==
      "fn float f(device const float* p [[buffer 0]], threadgroup float& "
      "b[32], uint i [[thread_position_in_grid]]) { return (at p i); }");
  CHECK(
      header("template <typename A, int N = 4, class B = vec<A, 2>>\n"
             "METAL_FUNC A f(A a, thread B& b, bool = true) { return a; }") ==
      "template < type A; int N = 4; type B = vec<A, 2>; > fn A f(A a, thread "
      "B& b, bool  = true) { return a; }");
  CHECK(
      header(
          "template <typename A> struct S { A a; static constexpr constant "
          "int k = 2; S(A x, int y) thread : a(x), b{y} { b = 1; } A "
          "operator+(S o) const thread { return S(o.a, 1).a + a; } A "
          "operator[](int i) { return this->a; } A operator()(A x); private: "
          "int b; };") ==
      "template < type A; > struct S { A a; static constant const int k = 2; "
      "int b; fn  S(A x, int y) :a{ x } :b{ y } { (= b 1); } fn A operator+(S "
      "o) const { return (+ (.a (make <S> (.a o) 1)) a); } fn A operator[](int "
      "i) { return (->a this); } fn A operator()(A x) _ }");
  CHECK(
      header("template <typename A> struct S {}; template <> struct S<half> { "
             "half x; };") ==
      "template < type A; > struct S { }\nspecial struct S<half> { half x; }");
  CHECK(
      header("template <> float f<float>(float x) { return x; }") ==
      "special fn float f<float>(float x) { return x; }");
  CHECK(
      header("enum class M : uchar { A, B };") ==
      "using M = uchar;\nconstexpr const const uchar M::A = 0;\nconstexpr "
      "const const uchar M::B = (+ M::A 1);");
  CHECK(
      header("constexpr constant float t[2] = {1, 2}, u = 3; "
             "template <typename A> constexpr constant bool v = false;") ==
      "constexpr const constant const float t[2] = { 1 2 };\nconstexpr const "
      "constant const float u = 3;\ntemplate < type A; > constexpr const "
      "constant const bool v = false;");
  CHECK(
      header(
          "using namespace metal; namespace a { namespace b { int f(); } }") ==
      "fn int f() _");
  CHECK(
      header("auto f(int x) -> float { return x; }") ==
      "fn float f(int x) { return x; }");
  CHECK(
      body(
          "x = S<T>::k + E::b + S<T>(3).f<2>(1);",
          "template <typename A> struct S {};") ==
      "(= x (+ (+ S<T>::k E::b) (call (.f<2> (make <S<T>> 3)) 1)));");
}

TEST_CASE("msl: macros and conditions") {
  CHECK(
      body(
          "x = SQ(a + 1) + ONE;", "#define SQ(x) ((x) * (x))\n#define ONE 1") ==
      "(= x (+ (* (+ a 1) (+ a 1)) 1));");
  CHECK(
      body(
          "OP(add, +)\n",
          "#define OP(name, op) \\\n  x_##name = a op b; \\\n  y = name##_;") ==
      "(= x_add (+ a b)); (= y add_);");
  CHECK(
      body("V(x, a, b) V(y)", "#define V(f, ...) f(__VA_ARGS__);") ==
      "(call x a b); (call y);");
  CHECK(
      body("f(f)(1) * a;", "#define f(x) x\n#define a a+b") ==
      "(+ (* (call f 1) a) b);");
  CHECK(body("x = EMPTY y;", "#define EMPTY") == "(= x y);");
  CHECK(body("#define N 2\nx = N;\n#undef N\ny = N;") == "(= x 2); (= y N);");
  auto taken = [](std::string condition) {
    return body("#if " + condition + "\n1;\n#else\n2;\n#endif") == "1;";
  };
  CHECK(taken("defined(N) || !defined N"));
  CHECK(taken("(3 + 4 * 2) % 4 == 3 && -1 < 0"));
  CHECK(taken("1 ? 2 : 0"));
  CHECK(taken("__METAL_VERSION__ >= 310"));
  CHECK(taken("0x10u == 16 && 1'0 == 10 && 0b11 == 3 && (1 << 4) == 16"));
  CHECK_FALSE(taken("(D % 4) != 0")); // names are 0
  CHECK_FALSE(taken("0 && 1 / 0"));
  CHECK(
      body("#ifdef N\n1;\n#if 1\n2;\n#endif\n#elif 0\n3;\n#elif 1\n4;\n#elif "
           "1\n5;\n#else\n6;\n#endif\n7;") == "4; 7;");
  CHECK(body("// a\nx /* b\n */ = /**/ y; // c") == "(= x y);");
}

TEST_CASE("msl: every node is where the user wrote it") {
  auto unit = parse(
      "#define N 3\n\nint f() {\n  return N;\n}",
      "x = 1;\n/* a\n b */ y = \\\n  z + N;\n");
  const auto& f = unit.declarations[0];
  CHECK(f.place.in_header);
  CHECK(f.place.line == 3);
  CHECK(f.place.column == 5);
  CHECK(f.body->statements[0]->place.line == 4);
  const auto& y = *unit.body->statements[1];
  CHECK_FALSE(y.place.in_header);
  CHECK(y.place.line == 3);
  CHECK(y.place.column == 7);
  const auto& sum = *y.expr->children[1];
  CHECK(sum.children[0]->place.line == 4);
  CHECK(sum.children[0]->place.column == 3);
  CHECK(sum.children[1]->text == "3");
  CHECK(sum.children[1]->place.column == 7); // of the macro's use
}

TEST_CASE("msl: errors are sentences with the user's line") {
  CHECK(
      refusal("x = 1;\n  y = 2\nz = 3;") ==
      "[metal_kernel] k: line 2 of the body, column 7: `y = 2`: `z` is not expected "
      "behind `2`: is a `;` missing at the end of this line?");
  CHECK(has(refusal("x = (1;"), "`;` stands") == false);
  CHECK(has(refusal("x = (1;"), "This `(` is never closed; add `)`."));
  CHECK(has(refusal("if (x) { y = 1; ]"), "`]` stands where `}` should close"));
  CHECK(has(refusal("}"), "Nothing is open that this `}` closes."));
  CHECK(has(refusal("x = = 3;"), "`=` is not expected behind `=`; a value"));
  CHECK(has(refusal("x = 1", ""), "ends within a statement"));
  CHECK(has(refusal("return return;"), "`return` is not expected here."));
  CHECK(has(refusal("else x = 1;"), "`else` is not expected here."));
  CHECK(has(refusal("goto a;"), "write a loop"));
  CHECK(has(refusal("a: x = 1;"), "a label"));
  CHECK(has(refusal("try { } catch (int x) { }"), "no exceptions"));
  CHECK(has(refusal("int* p = new int;"), "array of a fixed size"));
  CHECK(has(refusal("for (auto x : y) {}"), "count with an index"));
  CHECK(has(refusal("auto [a, b] = c;"), "name each value"));
  CHECK(has(refusal("int f() { }"), "into the kernel's header"));
  CHECK(has(refusal("if (int x = 1) {}"), "declare the variable before"));
  CHECK(has(refusal("x = \"a\";"), "a string"));
  CHECK(has(refusal("x = 1; $"), "`$` has no meaning"));
  CHECK(has(refusal("/* x"), "no end"));
  CHECK(has(
      refusal("", "struct A {};\nstruct B : A {};"),
      "line 2 of the header, column 10: `struct B : A {};`: Not supported: a struct "
      "that inherits"));
  CHECK(has(refusal("", "union U { int a; };"), "as_type"));
  CHECK(has(refusal("", "struct A { virtual int f(); };"), "`virtual`"));
  CHECK(has(refusal("", "template <typename... A> int f();"), "any number"));
  CHECK(has(refusal("", "#include <vector>"), "#include <vector>"));
  CHECK(refusal("", "#include <metal_stdlib>") == "");
  CHECK(refusal("", "#include \"mlx/backend/metal/kernels/utils.h\"") == "");
  CHECK(has(refusal("", "#error no good"), "#error no good"));
  CHECK(has(refusal("", "#if 1"), "no #endif"));
  CHECK(has(refusal("", "#endif"), "no #if"));
  CHECK(has(refusal("", "#if 1 +\n#endif"), "no end"));
  CHECK(has(refusal("", "#if 1 / 0\n#endif"), "divides by zero"));
  CHECK(
      has(refusal("", "#if (1\n#endif"), "This `(` is never closed; add `)`."));
  CHECK(has(refusal("", "#if 1 2\n#endif"), "`2` is not expected behind `1`"));
  CHECK(has(refusal("", "#if A = 1\n#endif"), "integers and their operators"));
  CHECK(has(refusal("", "#if 0x\n#endif"), "not an integer of 64 bits"));
  CHECK(
      has(refusal("SQ(1, 2);", "#define SQ(x) x"), "takes 1 arguments, not 2"));
  CHECK(has(refusal("SQ(1", "#define SQ(x) x"), "have no end"));
}

namespace {

constexpr struct {
  const char *header, *body;
  uint32_t line, column;
  const char* message;
} kWrongPrograms[] = {
    {"",
     "x = 1;\n  y = 2\nz = 3;",
     2,
     7,
     "`z` is not expected behind `2`: is a `;` missing at the "
     "end of this line?"},
    {"", "x = (1;", 1, 5, "This `(` is never closed; add `)`."},
    {"",
     "x = = 3;",
     1,
     5,
     "`=` is not expected behind `=`; a value is wanted."},
    {"",
     "float a = 1",
     1,
     11,
     "The text ends within a statement: is a `;` missing here?"},
    {"", "return return;", 1, 8, "`return` is not expected here."},
    {"",
     "for (int i = 0; i < 4, ++i) {}",
     1,
     27,
     "`)` is not expected behind `i`; `;` is wanted."},
    {"", "int 3a = 1;", 1, 5, "`3a` is not expected behind `int`."},
    {"", "x = a ? b;", 1, 10, "`;` is not expected behind `b`; `:` is wanted."},
    {"",
     "switch (x) { case: y = 1; }",
     1,
     18,
     "`:` is not expected behind `case`; a value is wanted."},
    {"",
     "do { x = 1; } while (x)",
     1,
     23,
     "The text ends within a statement: is a `;` missing here?"},
    {"",
     "x = (float)* ;",
     1,
     14,
     "`;` is not expected behind `*`; a value is wanted."},
    {"",
     "auto [a, b] = c;",
     1,
     6,
     "Not supported: `auto [a, b]`: name each value."},
    {"",
     "for (auto v : y) {}",
     1,
     11,
     "Not supported: `for` over a range: count with an index."},
    {"",
     "float f(float v) { return v; }",
     1,
     7,
     "A function cannot be declared here; write it into the "
     "kernel's header."},
    {"", "x = T;", 1, 5, "`T` is a type here, not a value."},
    {"struct A { float x }",
     "x = 1;",
     1,
     20,
     "`}` is not expected behind `x`; `;` is wanted."},
    {"template <typename A> f(A x) { return x; }",
     "x=1;",
     1,
     24,
     "`(` is not expected behind `f`."},
    {"enum E { a b };",
     "",
     1,
     12,
     "`b` is not expected behind `a`; `}` is wanted."},
    {"struct A {};\nstruct B : A {};",
     "",
     2,
     10,
     "Not supported: a struct that inherits: give it a field "
     "instead."},
    {"struct S { int f : 3; };",
     "",
     1,
     18,
     "Not supported: a field of some bits: shift and mask an "
     "integer."},
};

} // namespace

TEST_CASE("msl: what is said of wrong programs, and of which column") {
  for (const auto& p : kWrongPrograms) {
    CAPTURE(p.header);
    CAPTURE(p.body);
    try {
      parse(p.header, p.body, kTypes);
      FAIL_CHECK("nothing");
    } catch (const Error& error) {
      CHECK(error.what() == std::string(p.message));
      CHECK(error.place.line == p.line);
      CHECK(error.place.column == p.column);
    }
  }
}

TEST_CASE("msl: what is too deep or too long is an error") {
  auto repeat = [](std::string_view text, size_t times) {
    std::string out;
    for (size_t i = 0; i < times; ++i) {
      out += text;
    }
    return out;
  };
  CHECK(has(refusal(repeat("(", 10000) + "1" + repeat(")", 10000)), "nested"));
  CHECK(has(refusal(repeat("{", 1000) + repeat("}", 1000)), "nested"));
  CHECK(has(refusal("x = " + repeat("- ", 10000) + "1;"), "nested"));
  CHECK(has(refusal("x = " + repeat("!", 10000) + "1;"), "nested"));
  CHECK(has(refusal("x = 1" + repeat(" + 1", 10000) + ";"), "nested"));
  CHECK(has(refusal(repeat("if (x) ", 10000) + ";"), "nested"));
  CHECK(has(refusal(repeat("x ? y : ", 10000) + "1;"), "nested"));
  CHECK(refusal("x = 1" + repeat(" + 1", 400) + ";") == "");
  CHECK(refusal(repeat("x = 1;", 20000)) == "");
  std::string doubling = "#define A0 1\n";
  for (int i = 1; i < 60; ++i) {
    auto before = "A" + std::to_string(i - 1);
    doubling +=
        "#define A" + std::to_string(i) + " " + before + " + " + before + "\n";
  }
  CHECK(has(refusal("x = A59;", doubling), "expand to more"));
  std::string nested = repeat("I(", 300) + "1" + repeat(")", 300);
  CHECK(has(refusal(nested, "#define I(x) x"), "nested too deeply"));
}
