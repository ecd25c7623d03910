#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "msl/parse.h"
#include "null/msl_print.h"

using namespace mlx::core::vulkan::msl;

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
