#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "msl/parse.h"
#include "msl/tests/print.h"

using namespace msl;

namespace {

// What kernels look like: mutations begin with one of these.
const std::vector<std::string> kHeaders{
    "",
    R"(
#include <metal_stdlib>
using namespace metal;
#define TILE 32
#define LOAD(p, i) (p)[(i)]
constant constexpr int PER = TILE / 4;
template <typename A, int N = 2>
struct Acc {
  A v[N];
  static constexpr constant int n = N;
  Acc(A x) thread : v{x} {}
  void add(thread const A& x, int i) thread { v[i] += x; }
  A operator[](int i) const thread { return v[i]; }
};
template <> struct Acc<half, 1> { half v; };
enum class Mode : uchar { Sum, Max = 3 };
)",
    R"(
#if defined(TILE) && TILE % 4 == 0
inline float pick(device const float* p, uint i) { return p[i]; }
#elif 1
template <typename D>
METAL_FUNC D pick(const device D* p [[buffer(0)]], threadgroup D (&b)[32]) {
  return static_cast<D>(*p) + b[0];
}
#else
#error none
#endif
namespace inner { float4 f(float4 x, float w = 1.0f); }
)"};

const std::vector<std::string> kBodies{
    R"(
uint i = thread_position_in_grid.x;
threadgroup float tile[TILE * 2];
float sum = 0.0f, m(-INFINITY);
for (uint j = i, k = 0; j < N && k < 4u; j += 32, ++k) {
  float x = static_cast<float>(a[j]) * (b ? b[j] : 1.0h);
  sum = metal::fma(x, x, sum);
}
#pragma unroll
for (int d = 16; d > 0; d >>= 1) { sum += simd_shuffle_down(sum, d); }
threadgroup_barrier(mem_flags::mem_threadgroup);
if (i == 0) out[threadgroup_position_in_grid.x] = (T)sum;
)",
    R"(
using V = vec<T, 4>;
auto p = reinterpret_cast<const device V*>(x + i * 4);
Acc<float, PER> acc(0);
thread auto& r = acc.v[0];
do { r -= (*p++).x; --n; } while (n > 0 && !done);
switch (mode) { case 0: case Mode::Max: r = 1; break; default: { r = -r; } }
auto f = [&](uint u) { return u ^ (u >> 3); };
uchar4 q = as_type<uchar4>(f(0x1fu)) & uchar4(0xf);
if constexpr (is_same_v<T, half>) { y[i] = q.x; } else { y[i] = LOAD(x, i); }
struct Pair { float a; int b; } pair = {1.f, 2};
static_assert(sizeof(Pair) == 8, "packed");
return;
)"};

// Directives get lines of their own.
constexpr const char* kPieces = R"(
( ) { } [ ] < > >> ; , * & && :: -> . = ? : # ## ... ~ [[ ]] /* */ // " ' \
template template< struct enum class typedef operator using const device for(
threadgroup if( else do while( case return 0x 1e+ [&]( sizeof decltype( auto
unsigned T vec< Acc< static_cast< namespace B A(A(1),2) static_assert( typename
=default goto union new default: <typename (T) (x) x<y> #if~1 #endif #else
#define~A(x,...)~x~A~#x #define~B~B~B~B #undef~TILE #pragma~unroll #elif~B
#include~<metal_x> #define~T(x)~x##x _Pragma("unroll") \x80 this true 1.5h
)";

std::vector<std::string> words(const char* text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    if (word.size() > 2 && word[0] == '#') {
      std::replace(word.begin(), word.end(), '~', ' ');
      word = "\n" + word + "\n";
    } else {
      word = " " + word;
    }
    out.push_back(word);
  }
  return out;
}

// An expression as C++ writes it, with no more brackets than needed and some
// that are not, and as print() does.
class Expressions {
 public:
  struct Made {
    std::string text, form;
    int binds; // as kBinary says; a unary operator 11, what stands alone 12
  };

  explicit Expressions(uint32_t seed) : random_(seed) {}

  Made any(int depth) {
    switch (depth <= 0 ? below(2) : below(14)) {
      case 0:
        return alone(pick({"a", "b", "c", "d1", "this->e"}));
      case 1:
        return alone(pick({"1", "2.5f", "0x1fu", "true", "3h"}));
      case 2:
        return conditional(depth);
      case 3:
        return unary(depth);
      case 4:
        return cast(depth);
      case 5:
        return assignment(depth);
      case 6:
        return lambda(depth);
      case 7:
      case 8:
        return applied(depth);
      default:
        return binary(depth);
    }
  }

 private:
  size_t below(size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random_);
  }
  std::string pick(std::initializer_list<const char*> of) {
    return of.begin()[below(of.size())];
  }
  std::string gap() {
    return pick({" ", " ", "", "\n", " /* < ( */ ", "\\\n"});
  }

  static Made alone(std::string text) {
    auto arrow = text.find("->");
    auto form = arrow == text.npos
        ? text
        : "(->" + text.substr(arrow + 2) + " " + text.substr(0, arrow) + ")";
    return {text, form, 12};
  }

  // In brackets if it binds less, and sometimes without need.
  Made least(int binds, Made made) {
    if (made.binds < binds || below(6) == 0) {
      made.text = "(" + gap() + made.text + gap() + ")";
      made.binds = 12;
    }
    return made;
  }

  Made binary(int depth) {
    struct Operator {
      const char* text;
      int binds;
    };
    static constexpr Operator operators[] = {
        {"*", 10}, {"*", 10}, {"/", 10}, {"%", 10}, {"+", 9},  {"-", 9},
        {"-", 9},  {"<<", 8}, {">>", 8}, {"<", 7},  {"<", 7},  {">", 7},
        {">", 7},  {"<=", 7}, {">=", 7}, {"==", 6}, {"!=", 6}, {"&", 5},
        {"&", 5},  {"^", 4},  {"|", 3},  {"&&", 2}, {"||", 1}};
    auto [text, binds] = operators[below(std::size(operators))];
    // `a < b > (c)` calls the template a, if it is one.
    auto left = least(binds + (binds == 7), any(depth - 1));
    auto right = least(binds + 1, any(depth - 1));
    return {
        left.text + gap() + text + " " + right.text,
        std::string("(") + text + " " + left.form + " " + right.form + ")",
        binds};
  }

  Made conditional(int depth) {
    auto a = least(1, any(depth - 1)), b = least(0, any(depth - 1)),
         c = least(0, any(depth - 1));
    return {
        a.text + " ? " + b.text + gap() + ": " + c.text,
        "(? " + a.form + " " + b.form + " " + c.form + ")",
        0};
  }

  Made assignment(int depth) {
    auto text = pick({"=", "+=", "<<=", ">>=", "&=", "*="});
    auto of = any(depth - 2), right = least(0, any(depth - 1));
    Made left = below(2) ? Made{"* a", "(* a)", 11}
                         : Made{"a[" + of.text + "]", "(at a " + of.form + ")"};
    return {
        left.text + " " + text + " " + right.text,
        "(" + text + " " + left.form + " " + right.form + ")",
        0};
  }

  Made lambda(int depth) {
    auto of = least(0, any(depth - 1)), with = least(0, any(depth - 1));
    bool typed = below(2);
    return {
        "[&](T x, int) " + std::string(typed ? "-> U " : "") + "{ return " +
            of.text + "; }(" + with.text + ")",
        "(call (lambda (T x, int ) " + std::string(typed ? "-> U " : "") +
            "{ return " + of.form + "; }) " + with.form + ")",
        12};
  }

  Made unary(int depth) {
    auto text = pick({"-", "!", "~", "*", "&", "++"});
    auto of = least(11, any(depth - 1));
    return {text + " " + of.text, "(" + text + " " + of.form + ")", 11};
  }

  Made cast(int depth) {
    auto type = pick(
        {"T",
         "float",
         "half4",
         "device const T*",
         "thread U&",
         "vec<T, 4>",
         "device const vec<T, 2>*"});
    auto of = any(depth - 1);
    if (below(2) == 0) {
      of = least(11, of);
      return {
          "(" + gap() + type + ")" + gap() + of.text,
          "(cast <" + type + "> " + of.form + ")",
          11};
    }
    return {
        "static_cast<" + type + ">(" + of.text + ")",
        "(cast:static_cast <" + type + "> " + of.form + ")",
        12};
  }

  Made applied(int depth) {
    auto of = any(depth - 1);
    switch (below(8)) {
      case 0:
        return {"T(" + of.text + ")", "(make <T> " + of.form + ")", 12};
      case 1:
        return {
            "vec<T, 2>(" + of.text + gap() + ")",
            "(make <vec<T, 2>> " + of.form + ")",
            12};
      case 2: {
        auto other = any(depth - 1);
        return {
            "f(" + of.text + ", " + other.text + ")",
            "(call f " + of.form + " " + other.form + ")",
            12};
      }
      case 3:
        return {
            "g<T, 3>(" + of.text + ")", "(call g<T, 3> " + of.form + ")", 12};
      case 4: {
        auto operand = alone("a");
        return {
            operand.text + "[" + gap() + of.text + "]",
            "(at " + operand.form + " " + of.form + ")",
            12};
      }
      case 5: {
        auto operand = postfixed(of);
        return {operand.text + ".xy", "(.xy " + operand.form + ")", 12};
      }
      case 6: {
        auto operand = postfixed(of);
        return {operand.text + "++", "(" + operand.form + " ++)", 12};
      }
      default:
        return {"sizeof(" + of.text + ")", "(sizeof " + of.form + ")", 11};
    }
  }

  // A name is not bracketed where that would be a cast's type.
  Made postfixed(const Made& of) {
    return of.binds == 12 && of.text.find_first_of("0123456789") != 0
        ? of
        : Made{"(" + of.text + ")", of.form, 12};
  }

  std::mt19937 random_;
};

class Fuzz {
 public:
  explicit Fuzz(uint32_t seed) : random_(seed) {}

  std::string text(const std::vector<std::string>& of) {
    std::string out = of[below(of.size())];
    for (size_t n = below(6); n > 0; --n) {
      mutate(out);
    }
    return out;
  }

 private:
  size_t below(size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random_);
  }

  void mutate(std::string& text) {
    static const auto pieces = words(kPieces);
    size_t at = below(text.size() + 1);
    size_t length = std::min(below(12), text.size() - at);
    switch (below(6)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(below(text.size() + 1), below(40)));
        break;
      case 2:
        if (at < text.size()) {
          text[at] = char(below(256));
        }
        break;
      case 3:
        text.resize(at);
        break;
      default:
        text.insert(at, pieces[below(pieces.size())]);
    }
  }

  std::mt19937 random_;
};

} // namespace

TEST_CASE("msl: what is written is what is read") {
  const char* rounds = std::getenv("MLX_VK_TEST_ROUNDS");
  const std::vector<std::string> types{"T", "U"};
  for (uint32_t seed = 0; seed < (rounds ? std::stoul(rounds) : 1500); ++seed) {
    auto made = Expressions(seed).any(4);
    CAPTURE(seed);
    std::string text = "r = " + made.text + ";";
    CAPTURE(text);
    REQUIRE_NOTHROW(parse("", text, types));
    auto unit = parse("", text, types);
    REQUIRE(print(*unit.body) == "{ (= r " + made.form + "); }");
  }
}

// Every text is either a tree that can be walked, or an Error with a place in
// the text and a sentence. MLX_VK_TEST_ROUNDS=1000000 for a soak.
TEST_CASE("msl: no text crashes or hangs the parser") {
  using Clock = std::chrono::steady_clock;
  const char* rounds = std::getenv("MLX_VK_TEST_ROUNDS");
  size_t trees = 0, errors = 0;
  for (uint32_t seed = 0; seed < (rounds ? std::stoul(rounds) : 1500); ++seed) {
    Fuzz fuzz(seed);
    std::string header = fuzz.text(kHeaders), body = fuzz.text(kBodies);
    CAPTURE(seed);
    auto begin = Clock::now();
    try {
      auto unit = parse(header, body);
      REQUIRE(!print(unit).empty());
      ++trees;
    } catch (const Error& error) {
      ++errors;
      std::string_view text = error.place.in_header ? header : body;
      auto lines = std::count(text.begin(), text.end(), '\n') + 1;
      CAPTURE(error.message("k", header, body));
      REQUIRE(error.place.line <= lines);
      REQUIRE(std::string_view(error.what()).size() > 10);
    }
    // Seconds: what hangs takes for ever, and machines can be busy.
    REQUIRE(Clock::now() - begin < std::chrono::seconds(10));
  }
  // Neither may have become all there is.
  CHECK(trees > 50);
  CHECK(errors > 50);
}
