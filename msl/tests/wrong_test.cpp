// Wrong programs: what is said, of which line and column.
#include <doctest/doctest.h>

#include <string>

#include "msl/translate.h"

using namespace msl;

namespace {

// Programs as users get them wrong, with the message of each.
constexpr struct {
  const char *header, *body, *place, *text;
} wrong_programs[] = {
    {"",
     "uint i = thread_position_in_grid.x\ny[i] = x[i];",
     "line 1 of the body, column 34: ",
     "`y` is not expected behind `x`: is a `;` missing at the end of this "
     "line?"},
    {"",
     "uint i = thread_position_in_grid.x;\nfloat v = x;\ny[i] = v;",
     "line 2 of the body, column 11: ",
     "`device float*` does not convert to `float`; read an item with [i]."},
    {"",
     "uint i = thread_position_in_grid.x;\ny[i] = sigmoid(x[i]);",
     "line 2 of the body, column 8: ",
     "there is no function `sigmoid(float)` here, neither in the header nor "
     "among those of MSL that are supported; write it into the header."},
    {"",
     "uint i = thread_position_in_grid.x;\ny[i] = pow(x[i]);",
     "line 2 of the body, column 8: ",
     "there is no function `pow(float)` here; MSL's takes 2 numbers or "
     "vectors."},
    {"float twice(float v) { return 2 * v; }",
     "y[0] = twice(x[0], 2);",
     "line 1 of the body, column 8: ",
     "there is no function `twice(float, int)` here; that of the header takes "
     "another number of arguments: 1."},
    {"float f(float v [[stage_in]]) { return v; }",
     "y[0] = x[0];",
     "line 1 of the header, column 17: ",
     "The attribute `stage_in` is not known, and may change what the kernel "
     "computes; take it out."},
    {"",
     "threadgroup float tile[n];\ntile[0] = x[0];\ny[0] = tile[0];",
     "line 1 of the body, column 24: ",
     "the size of an array must be an integer constant: a number, a constexpr "
     "or a template argument."},
    {"int fact(int k) { return k < 2 ? 1 : k * fact(k - 1); }",
     "y[0] = fact(3);",
     "line 1 of the header, column 42: ",
     "`fact` calls itself; GPUs here have no recursion, so write a loop."},
    {"",
     "device float** p = &y;",
     "line 1 of the body, column 8: ",
     "pointers to pointers are not supported; use an index, or an array of "
     "pointers."},
    {"",
     "double v = x[0];\ny[0] = v;",
     "line 1 of the body, column 1: ",
     "`double` is no type of Metal; use float."},
    {"",
     "x[0] = 1.0f;",
     "line 1 of the body, column 6: ",
     "inputs of a kernel and what is const are only read; write to an output, "
     "or to a variable that is not const."},
    {"float f(float v) { v *= 2; }",
     "y[0] = f(x[0]);",
     "line 1 of the header, column 18: ",
     "`f` returns `float`, but has no return statement; add one."},
    {"",
     "y[thread_position_in_grid.x] = x[i];",
     "line 1 of the body, column 34: ",
     "`i` is not known: neither the header, nor the kernel's arguments and "
     "template arguments, nor this translator have it; declare it."},
    {"",
     "float2 v = float2(x[0], x[1]);\ny[0] = v.z;",
     "line 2 of the body, column 10: ",
     "`float2` has no `.z`; it has 2 components, of xyzw or rgba."},
    {"#define ADD(a, b) ((a) + (b))",
     "y[0] = ADD(x[0], 1;",
     "line 1 of the body, column 8: ",
     "The arguments of the macro `ADD` have no end; add `)`."},
    {"#define ADD(a, b ((a) + (b))",
     "y[0] = 1;",
     "line 1 of the header, column 1: ",
     "The parameters of a macro are names with commas between them, and `...` "
     "at most at the end."},
    {"#include \"my_utils.h\"",
     "y[0] = x[0];",
     "line 1 of the header, column 1: ",
     "#include \"my_utils.h\" cannot be read: a kernel may include Metal's own "
     "headers (<metal_stdlib>) and MLX's utils.h. Put the text itself into the "
     "kernel's header."},
    {"",
     "if (x[0] > 0) {\n  y[0] = 1;",
     "line 1 of the body, column 15: ",
     "This `{` is never closed; add `}`."},
    {"",
     "y[0] = (x[0] + x[1];",
     "line 1 of the body, column 8: ",
     "This `(` is never closed; add `)`."},
    {"",
     "again:\ny[0] += 1;\nif (y[0] < 3) goto again;",
     "line 3 of the body, column 15: ",
     "`goto` is not supported; write a loop with break and continue."},
    {"",
     "float (*op)(float) = exp;\ny[0] = op(x[0]);",
     "line 1 of the body, column 1: ",
     "Not supported: a pointer to a function: use a lambda, or a template's "
     "argument."},
    {"",
     "auto f = exp;\ny[0] = f(x[0]);",
     "line 1 of the body, column 10: ",
     "`exp` is not known: neither the header, nor the kernel's arguments and "
     "template arguments, nor this translator have it; declare it."},
    {"",
     "const float a = 1;\na = 2;\ny[0] = a;",
     "line 2 of the body, column 3: ",
     "inputs of a kernel and what is const are only read; write to an output, "
     "or to a variable that is not const."},
    {"",
     "if x[0] > 0 { y[0] = 1; }",
     "line 1 of the body, column 4: ",
     "`x` is not expected behind `if`; `(` is wanted."},
    {"",
     "y[0] = x[0] % 2.0f;",
     "line 1 of the body, column 13: ",
     "`%` needs integers; fmod() takes floats."},
    {"",
     "printf(\"%f\", x[0]);",
     "line 1 of the body, column 8: ",
     "Not supported: a string: kernels have none, so take it out."},
    {"",
     "atomic_fetch_add_explicit((device atomic_ulong*)y, 1ul, "
     "memory_order_relaxed);",
     "line 1 of the body, column 1: ",
     "atomics are supported for int, uint and float; use one of these."},
    {"",
     "threadgroup float t[10000];\ny[0] = t[0];",
     "line 1 of the body, column 19: ",
     "with `t` the threadgroup memory has more than the 32768 bytes that this "
     "device offers; use smaller arrays."},
    {"",
     "struct P { float a; } p = {1};\ny[0] = p.b;",
     "line 2 of the body, column 10: ",
     "`P` has no member `b`; it has `a`."},
    {"",
     "float3 a = float2(1, 2);\ny[0] = a.x;",
     "line 1 of the body, column 12: ",
     "`float2` does not convert to `float3`; give as many components as it "
     "has."},
    {"",
     "y[0] = 1;\nbreak;",
     "line 2 of the body, column 1: ",
     "there is no loop or switch to leave here; `return` ends a function."},
    {"",
     "float a = 1;\nfloat a = 2;\ny[0] = a;",
     "line 2 of the body, column 7: ",
     "`a` is declared twice; give one another name."},
    {"",
     "y[0.5f] = 1;",
     "line 1 of the body, column 1: ",
     "an index must be an integer; convert it with int(...)."},
    {"",
     "float* p = new float[4];",
     "line 1 of the body, column 12: ",
     "`new` is not supported; use an array of a fixed size."},
    {"template <typename T, int M> T f(T v) { return v * M; }",
     "y[0] = f(x[0]);",
     "line 1 of the body, column 8: ",
     "there is no function `f(float)` here; that of the header takes other "
     "types: convert the arguments, or give its template arguments."},
    {"void g() {}",
     "float a = g();\ny[0] = a;",
     "line 1 of the body, column 11: ",
     "`void` does not convert to `float`; it has no value."},
    {"",
     "return 1;",
     "line 1 of the body, column 1: ",
     "this function returns no value; assign the value to a variable or "
     "output."},
    {"",
     "y[0] = x[0] * ;",
     "line 1 of the body, column 15: ",
     "`;` is not expected behind `*`; a value is wanted."},
    {"",
     "y[0] = x[0] << 2;",
     "line 1 of the body, column 13: ",
     "`<<` needs integers; convert with int(...)."},
    {"",
     "thread float* p = &(x[0] + 1);",
     "line 1 of the body, column 19: ",
     "the address of this expression cannot be taken; assign it to a variable "
     "first."},
    {"",
     "device float* p = y;\nthreadgroup float* q = p;",
     "line 2 of the body, column 24: ",
     "a pointer cannot change its address space (`device float*` to "
     "`threadgroup float*`); copy the items."},
    {"",
     "else { y[0] = 1; }",
     "line 1 of the body, column 1: ",
     "`else` is not expected here."},
    {"",
     "switch (x[0]) { case 1: y[0] = 1; }",
     "line 1 of the body, column 1: ",
     "switch takes an integer; convert the value with int(...)."},
};

std::string refusal(const std::string& header, const std::string& body) {
  Source s;
  s.name = "k";
  s.header = header;
  s.body = body;
  s.arguments = {
      {.name = "x", .type = "float"},
      {.name = "n", .type = "int", .constant = true, .reference = true},
      {.name = "y", .type = "float", .output = true}};
  try {
    translate(s, Target{});
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

} // namespace

TEST_CASE("msl: wrong programs of users") {
  for (auto& p : wrong_programs) {
    std::string message = refusal(p.header, p.body);
    CAPTURE(message);
    CHECK(message.starts_with(std::string("[metal_kernel] k: ") + p.place));
    CHECK(message.ends_with(std::string("`: ") + p.text));
  }
}
