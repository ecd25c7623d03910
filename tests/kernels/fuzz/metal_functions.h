// Functions of the Metal standard library for metal_on_cpu.h, and its fibers.
#pragma once

namespace metal {

using ::vec;

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
T saturate_to(__int128 x) {
  constexpr auto low = std::numeric_limits<T>::min();
  constexpr auto high = std::numeric_limits<T>::max();
  return x < low ? low : x > high ? high : T(x);
}

#define FUNCTION1(name, ...)     \
  template <class X>             \
  auto name(const X& x) {        \
    return lift(                 \
        [](auto a) {             \
          using T = decltype(a); \
          return T(__VA_ARGS__); \
        },                       \
        x);                      \
  }
#define FUNCTION2(name, ...)          \
  template <class X, class Y>         \
  auto name(const X& x, const Y& y) { \
    return lift(                      \
        [](auto a, auto b_) {         \
          using T = decltype(a);      \
          T b(b_);                    \
          return T(__VA_ARGS__);      \
        },                            \
        x,                            \
        y);                           \
  }
FUNCTION1(abs, a < T(0) ? T(-a) : a)
FUNCTION1(floor, std::floor(float(a)))
FUNCTION1(ceil, std::ceil(float(a)))
FUNCTION1(trunc, std::trunc(float(a)))
FUNCTION1(rint, std::nearbyint(float(a)))
FUNCTION1(sign, a > T(0) ? T(1) : a < T(0) ? T(-1) : T(0))
FUNCTION1(popcount, std::popcount(Unsigned<T>(a)))
FUNCTION1(clz, std::countl_zero(Unsigned<T>(a)))
FUNCTION1(ctz, std::countr_zero(Unsigned<T>(a)))
FUNCTION2(min, b < a ? b : a)
FUNCTION2(max, a < b ? b : a)
FUNCTION2(rotate, std::rotl(Unsigned<T>(a), int(b)))
FUNCTION2(mulhi, (__int128(a) * __int128(b)) >> (8 * sizeof(T)))
FUNCTION2(addsat, saturate_to<T>(__int128(a) + __int128(b)))
FUNCTION2(subsat, saturate_to<T>(__int128(a) - __int128(b)))

template <class X, class Y, class Z>
auto clamp(const X& x, const Y& y, const Z& z) {
  return min(max(x, y), z);
}
template <class X, class Y, class Z>
auto fma(const X& x, const Y& y, const Z& z) {
  return lift(
      [](auto a, auto b, auto c) {
        return decltype(a)(std::fma(float(a), float(b), float(c)));
      },
      x,
      y,
      z);
}
template <class X, class Y, class C>
auto select(const X& x, const Y& y, const C& c) {
  return lift([](auto a, auto b, auto k) { return k ? b : a; }, x, y, c);
}
template <class X>
bool all(const X& x) {
  bool r = true;
  for (auto b : plain(x).v)
    r = r && b;
  return r;
}
template <class X>
bool any(const X& x) {
  bool r = false;
  for (auto b : plain(x).v)
    r = r || b;
  return r;
}
template <class X, class Y>
auto dot(const X& x, const Y& y) {
  auto p = plain(x) * plain(y);
  auto sum = p.v[0];
  for (int i = 1; i < traits<X>::n; ++i)
    sum = decltype(sum)(sum + p.v[i]);
  return sum;
}
template <class T>
T extract_bits(T x, uint offset, uint bits) {
  constexpr uint width = 8 * sizeof(T);
  if (bits == 0)
    return T(0);
  auto left = Unsigned<T>(Unsigned<T>(x) << (width - offset - bits));
  return T(T(left) >> (width - bits));
}

// Fibers

struct Lane {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  bool done = false;
  int site = 0; // the line of what it waits in; 0: none
  bool barrier = false; // of the threadgroup
  void *value = nullptr, *result = nullptr;
  std::function<void(const std::vector<Lane*>&)> apply;
  uint number = 0; // in the threadgroup
  uint index = 0; // in the SIMD-group
};
inline std::vector<std::unique_ptr<Lane>> lanes;
inline Lane* current = nullptr;
inline ucontext_t scheduler;
inline std::function<void(uint)> body;

inline void wait_at(int site, bool barrier) {
  current->site = site;
  current->barrier = barrier;
  swapcontext(&current->context, &scheduler);
}

// combine(values of those that take part, their lanes, own position in them)
template <class R, class T, class F>
R collective(int site, T x, F combine) {
  R result{};
  current->value = &x;
  current->result = &result;
  current->apply = [combine](const std::vector<Lane*>& all) {
    std::vector<T> values;
    std::vector<uint> indices;
    for (auto* lane : all) {
      values.push_back(*static_cast<T*>(lane->value));
      indices.push_back(lane->index);
    }
    for (size_t i = 0; i < all.size(); ++i)
      *static_cast<R*>(all[i]->result) = combine(values, indices, i);
  };
  wait_at(site, false);
  return result;
}

#define REDUCTION(name, ...)                                   \
  template <class T>                                           \
  T name##_at(int site, T x) {                                 \
    return collective<T>(site, x, [](auto& v, auto&, size_t) { \
      T a = v[0];                                              \
      for (size_t i = 1; i < v.size(); ++i) {                  \
        T b = v[i];                                            \
        a = T(__VA_ARGS__);                                    \
      }                                                        \
      return a;                                                \
    });                                                        \
  }
REDUCTION(simd_sum, a + b)
REDUCTION(simd_min, b < a ? b : a)
REDUCTION(simd_max, a < b ? b : a)
REDUCTION(simd_and, a& b)
REDUCTION(simd_or, a | b)
REDUCTION(simd_xor, a ^ b)
REDUCTION(simd_any, a || b)
REDUCTION(simd_all, a&& b)

template <class T>
T prefix_sum(int site, T x, bool inclusive) {
  return collective<T>(site, x, [=](auto& v, auto&, size_t own) {
    T sum = T(0);
    for (size_t i = 0; i < own + inclusive; ++i)
      sum = T(sum + v[i]);
    return sum;
  });
}
template <class T>
T simd_prefix_exclusive_sum_at(int site, T x) {
  return prefix_sum(site, x, false);
}
template <class T>
T simd_prefix_inclusive_sum_at(int site, T x) {
  return prefix_sum(site, x, true);
}
// Callers have all lanes take part. What comes from beyond is 0 here, and
// masked by the text.
template <class T, class F>
T from_lane(int site, T x, F source) {
  uint index = source(current->index);
  struct Both {
    T x;
    uint index;
  };
  return collective<T>(site, Both{x, index}, [](auto& v, auto&, size_t own) {
    return v[own].index < v.size() ? v[v[own].index].x : T(0);
  });
}
#define SHUFFLE(name, ...)                                                  \
  template <class T>                                                        \
  T name##_at(int site, T x, uint n) {                                      \
    return from_lane(site, x, [=](uint i) -> uint { return __VA_ARGS__; }); \
  }
SHUFFLE(simd_shuffle, n)
SHUFFLE(simd_broadcast, n)
SHUFFLE(simd_shuffle_xor, i ^ n)
SHUFFLE(simd_shuffle_down, i + n)
SHUFFLE(simd_shuffle_up, i - n)
SHUFFLE(quad_shuffle, (i & ~3u) | n)
SHUFFLE(quad_shuffle_xor, i ^ n)
template <class T>
T quad_sum_at(int site, T x) {
  T a = T(x + quad_shuffle_xor_at(site, x, 1));
  return T(a + quad_shuffle_xor_at(site, a, 2));
}

enum class mem_flags { mem_none, mem_device, mem_threadgroup };

inline void start() {
  body(current->number);
  current->done = true;
  swapcontext(&current->context, &scheduler);
}

inline void resume(Lane& lane) {
  lane.site = 0;
  current = &lane;
  swapcontext(&scheduler, &lane.context);
}

// Answers what the earliest waiting lanes of each SIMD-group wait for. A lane
// at a barrier has passed all collective functions before it, or skipped them:
// in a loop it may be an iteration ahead.
inline bool answer(size_t threads) {
  bool any = false, all_at_barrier = true;
  for (size_t first = 0; first < threads; first += 32) {
    int site = 0;
    std::vector<Lane*> group;
    for (size_t i = first; i < std::min(first + 32, threads); ++i) {
      auto& lane = *lanes[i];
      if (lane.done)
        continue;
      any = true;
      if (lane.barrier)
        continue;
      if (!site || lane.site < site) {
        site = lane.site;
        group.clear();
      }
      if (lane.site == site)
        group.push_back(&lane);
    }
    if (group.empty())
      continue;
    all_at_barrier = false;
    group[0]->apply(group);
    for (auto* lane : group)
      resume(*lane);
  }
  if (any && all_at_barrier)
    for (size_t i = 0; i < threads; ++i)
      if (!lanes[i]->done)
        resume(*lanes[i]);
  return any;
}

inline void run_threadgroup(
    uint threads,
    std::function<void(uint)> thread_body) {
  constexpr size_t stack = 256 << 10;
  body = std::move(thread_body);
  while (lanes.size() < threads) {
    lanes.push_back(std::make_unique<Lane>());
    lanes.back()->stack.reset(new char[stack]);
  }
  for (uint i = 0; i < threads; ++i) {
    auto& lane = *lanes[i];
    lane.done = false;
    lane.number = i;
    lane.index = i % 32;
    getcontext(&lane.context);
    lane.context.uc_stack.ss_sp = lane.stack.get();
    lane.context.uc_stack.ss_size = stack;
    lane.context.uc_link = nullptr;
    makecontext(&lane.context, start, 0);
    resume(lane);
  }
  while (answer(threads)) {
  }
}

} // namespace metal

using namespace metal;

#define simd_sum(...) simd_sum_at(__LINE__, __VA_ARGS__)
#define simd_min(...) simd_min_at(__LINE__, __VA_ARGS__)
#define simd_max(...) simd_max_at(__LINE__, __VA_ARGS__)
#define simd_and(...) simd_and_at(__LINE__, __VA_ARGS__)
#define simd_or(...) simd_or_at(__LINE__, __VA_ARGS__)
#define simd_xor(...) simd_xor_at(__LINE__, __VA_ARGS__)
#define simd_any(...) simd_any_at(__LINE__, __VA_ARGS__)
#define simd_all(...) simd_all_at(__LINE__, __VA_ARGS__)
#define simd_shuffle(...) simd_shuffle_at(__LINE__, __VA_ARGS__)
#define simd_broadcast(...) simd_broadcast_at(__LINE__, __VA_ARGS__)
#define simd_shuffle_xor(...) simd_shuffle_xor_at(__LINE__, __VA_ARGS__)
#define simd_shuffle_down(...) simd_shuffle_down_at(__LINE__, __VA_ARGS__)
#define simd_shuffle_up(...) simd_shuffle_up_at(__LINE__, __VA_ARGS__)
#define quad_sum(...) quad_sum_at(__LINE__, __VA_ARGS__)
#define quad_shuffle(...) quad_shuffle_at(__LINE__, __VA_ARGS__)
#define quad_shuffle_xor(...) quad_shuffle_xor_at(__LINE__, __VA_ARGS__)
#define simd_prefix_exclusive_sum(...) \
  simd_prefix_exclusive_sum_at(__LINE__, __VA_ARGS__)
#define simd_prefix_inclusive_sum(...) \
  simd_prefix_inclusive_sum_at(__LINE__, __VA_ARGS__)
#define threadgroup_barrier(flags) wait_at(__LINE__, true)
#define simdgroup_barrier(flags) (void)0

// Files of items as the GPU has them.

template <class T>
std::unique_ptr<T[]> read_items(FILE* file, size_t n) {
  std::unique_ptr<T[]> items(new T[n]);
  for (size_t i = 0; i < n; ++i) {
    if constexpr (is_small<T>::value) {
      ushort u = 0;
      std::ignore = fread(&u, 2, 1, file);
      items[i] = std::is_same_v<T, half>
          ? T(float(std::bit_cast<_Float16>(u)))
          : T(std::bit_cast<float>(uint32_t(u) << 16));
    } else {
      std::ignore = fread(&items[i], sizeof(T), 1, file);
    }
  }
  return items;
}
template <class T>
void write_items(FILE* file, const T* items, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if constexpr (is_small<T>::value) {
      ushort u = bits_of(items[i]);
      fwrite(&u, 2, 1, file);
    } else {
      fwrite(&items[i], sizeof(T), 1, file);
    }
  }
}
