// What expressions.py uses of the Metal Shading Language, in C++: scalars and
// vectors, functions, address spaces, and a threadgroup whose threads are
// fibers. A collective function runs once all threads of its SIMD-group wait or
// are done, for those that wait at the earliest line: how structured control
// flow converges again. Integers wrap (-fwrapv).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <tuple>
#include <type_traits>
#include <vector>

#include <ucontext.h>

#define device
#define constant
#define thread
#define threadgroup

using uchar = uint8_t;
using ushort = uint16_t;
using uint = uint32_t;
using ulong = uint64_t;

// half (10 bits of fraction) and bfloat (7): rounded after each operation.
template <int bits>
struct Small {
  float v;
  Small() = default;
  template <class A>
  requires std::is_arithmetic_v<A> Small(A a) : v(round(float(a))) {}
  template <int other>
  explicit Small(Small<other> a) : v(round(a.v)) {}
  operator float() const {
    return v;
  }
  static float round(float x) {
    if constexpr (bits == 10) {
      return float(_Float16(x));
    } else {
      auto u = std::bit_cast<uint32_t>(x);
      u += 0x7fff + (u >> 16 & 1);
      return std::bit_cast<float>(u & 0xffff0000u);
    }
  }
  Small operator-() const {
    return Small(-v);
  }
  template <class A>
  Small& operator+=(A a) {
    return *this = Small(*this + a);
  }
  template <class A>
  Small& operator-=(A a) {
    return *this = Small(*this - a);
  }
  template <class A>
  Small& operator*=(A a) {
    return *this = Small(*this * a);
  }
};
using half = Small<10>;
using bfloat = Small<7>;

template <class T>
struct is_small : std::false_type {};
template <int b>
struct is_small<Small<b>> : std::true_type {};
template <class T>
concept Scalar = std::is_arithmetic_v<T> || is_small<T>::value;

// Of a Small and another scalar: float if that is float, else the Small.
template <class A, class B>
using Common = std::conditional_t<
    std::is_same_v<A, float> || std::is_same_v<B, float>,
    float,
    std::conditional_t<is_small<A>::value, A, B>>;
#define SMALL_OPERATOR(op, ...)                                           \
  template <class A, class B>                                             \
  requires Scalar<A> && Scalar<B> &&                                      \
      (is_small<A>::value || is_small<B>::value) auto                     \
      operator op(A a, B b) {                                             \
    return __VA_ARGS__(float(Common<A, B>(a)) op float(Common<A, B>(b))); \
  }
SMALL_OPERATOR(+, Common<A, B>)
SMALL_OPERATOR(-, Common<A, B>)
SMALL_OPERATOR(*, Common<A, B>)
SMALL_OPERATOR(/, Common<A, B>)
SMALL_OPERATOR(<, bool)
SMALL_OPERATOR(>, bool)
SMALL_OPERATOR(<=, bool)
SMALL_OPERATOR(>=, bool)
SMALL_OPERATOR(==, bool)
SMALL_OPERATOR(!=, bool)

template <class T, int N>
struct vec;

template <class T, int N, int... I>
struct Swizzle {
  T d[N];
  using V = vec<T, sizeof...(I)>;
  operator V() const {
    return V(d[I]...);
  }
  Swizzle& operator=(V o) { // a copy: it may be the same vector
    int k = 0;
    ((d[I] = o.v[k++]), ...);
    return *this;
  }
  Swizzle& operator=(const Swizzle& o) {
    return *this = V(o);
  }
  template <class A>
  Swizzle& operator+=(const A& a) {
    return *this = V(*this) + a;
  }
};

#define SWIZZLES2(T, N)   \
  Swizzle<T, N, 0, 1> xy; \
  Swizzle<T, N, 1, 0> yx; \
  Swizzle<T, N, 0, 0> xx;
#define SWIZZLES3(T, N)       \
  SWIZZLES2(T, N)             \
  Swizzle<T, N, 1, 2> yz;     \
  Swizzle<T, N, 0, 2> xz;     \
  Swizzle<T, N, 2, 1, 0> zyx; \
  Swizzle<T, N, 1, 1, 2> yyz;
#define SWIZZLES4(T, N)       \
  SWIZZLES3(T, N)             \
  Swizzle<T, N, 2, 3> zw;     \
  Swizzle<T, N, 3, 1> wy;     \
  Swizzle<T, N, 0, 1, 2> xyz; \
  Swizzle<T, N, 1, 2, 3> yzw; \
  Swizzle<T, N, 3, 2, 1, 0> wzyx;

#define VEC(N, SWIZZLES, ...)                                        \
  template <class T>                                                 \
  struct vec<T, N> {                                                 \
    union {                                                          \
      T v[N];                                                        \
      struct {                                                       \
        T __VA_ARGS__;                                               \
      };                                                             \
      SWIZZLES(T, N)                                                 \
    };                                                               \
    vec() {}                                                         \
    vec(const vec& o) {                                              \
      std::memcpy(v, o.v, sizeof v);                                 \
    }                                                                \
    vec& operator=(const vec& o) {                                   \
      std::memcpy(v, o.v, sizeof v);                                 \
      return *this;                                                  \
    }                                                                \
    template <Scalar A>                                              \
    vec(A a) {                                                       \
      for (auto& item : v)                                           \
        item = T(a);                                                 \
    }                                                                \
    template <class A, class... B>                                   \
    requires(!std::is_same_v<A, vec>) &&                             \
        (!Scalar<A> ||                                               \
         sizeof...(B) > 0) explicit vec(const A& a, const B&... b) { \
      int k = 0;                                                     \
      put(k, a);                                                     \
      (put(k, b), ...);                                              \
    }                                                                \
    T& operator[](long i) {                                          \
      return v[i];                                                   \
    }                                                                \
    const T& operator[](long i) const {                              \
      return v[i];                                                   \
    }                                                                \
    template <class A>                                               \
    vec& operator+=(const A& a) {                                    \
      return *this = *this + a;                                      \
    }                                                                \
    template <class A>                                               \
    vec& operator-=(const A& a) {                                    \
      return *this = *this - a;                                      \
    }                                                                \
    template <class A>                                               \
    vec& operator*=(const A& a) {                                    \
      return *this = *this * a;                                      \
    }                                                                \
    template <class A>                                               \
    vec& operator^=(const A& a) {                                    \
      return *this = *this ^ a;                                      \
    }                                                                \
                                                                     \
   private:                                                          \
    template <class A>                                               \
    void put(int& k, const A& a) {                                   \
      if constexpr (Scalar<A>) {                                     \
        v[k++] = T(a);                                               \
      } else {                                                       \
        for (auto& item : plain(a).v)                                \
          v[k++] = T(item);                                          \
      }                                                              \
    }                                                                \
  };

template <class X>
struct traits {
  static constexpr int n = 0;
};
template <class T, int N>
struct traits<vec<T, N>> {
  static constexpr int n = N;
  using type = T;
};
template <class T, int N, int... I>
struct traits<Swizzle<T, N, I...>> {
  static constexpr int n = sizeof...(I);
  using type = T;
};
template <class X>
concept Vector = (traits<X>::n > 0);
template <Vector X>
auto plain(const X& x) {
  vec<typename traits<X>::type, traits<X>::n> items = x; // by conversion
  return items;
}
VEC(2, SWIZZLES2, x, y)
VEC(3, SWIZZLES3, x, y, z)
VEC(4, SWIZZLES4, x, y, z, w)

// f of each item; scalars are converted to the vectors' type.
template <class R = void, class F, class... X>
auto lift(F f, const X&... x) {
  constexpr int n = std::max({traits<X>::n...});
  if constexpr (n == 0) {
    return f(x...);
  } else {
    auto item = [](auto& y, int i) {
      if constexpr (Vector<std::decay_t<decltype(y)>>) {
        return plain(y).v[i];
      } else {
        return y;
      }
    };
    using Item = decltype(f(item(x, 0)...));
    using T = std::conditional_t<std::is_void_v<R>, Item, R>;
    vec<T, n> out;
    for (int i = 0; i < n; ++i)
      out.v[i] = T(f(item(x, i)...));
    return out;
  }
}
template <class A, class B>
using ItemOf = typename traits<std::conditional_t<Vector<A>, A, B>>::type;
#define VECTOR_OPERATOR(op, R)                                                \
  template <class A, class B>                                                 \
  requires(Vector<A> || Vector<B>) auto operator op(const A& a, const B& b) { \
    using T = ItemOf<A, B>;                                                   \
    return lift<R>([](auto x, auto y) { return T(x) op T(y); }, a, b);        \
  }
VECTOR_OPERATOR(+, T)
VECTOR_OPERATOR(-, T)
VECTOR_OPERATOR(*, T)
VECTOR_OPERATOR(/, T)
VECTOR_OPERATOR(&, T)
VECTOR_OPERATOR(|, T)
VECTOR_OPERATOR(^, T)
VECTOR_OPERATOR(<<, T)
VECTOR_OPERATOR(>>, T)
VECTOR_OPERATOR(<, bool)
VECTOR_OPERATOR(>, bool)
VECTOR_OPERATOR(<=, bool)
VECTOR_OPERATOR(>=, bool)
VECTOR_OPERATOR(==, bool)
VECTOR_OPERATOR(!=, bool)
template <Vector A>
auto operator-(const A& a) {
  using T = typename traits<A>::type;
  return lift<T>([](auto x) { return T(-x); }, a);
}
template <Vector A>
auto operator~(const A& a) {
  using T = typename traits<A>::type;
  return lift<T>([](auto x) { return T(~x); }, a);
}

#define NAMES(T)          \
  using T##2 = vec<T, 2>; \
  using T##3 = vec<T, 3>; \
  using T##4 = vec<T, 4>
NAMES(bool);
NAMES(char);
NAMES(uchar);
NAMES(short);
NAMES(ushort);
NAMES(int);
NAMES(uint);
NAMES(long);
NAMES(ulong);
NAMES(half);
NAMES(bfloat);
NAMES(float);

template <class To, class From>
To as_type(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
// A Small is wider here than its bits.
inline ushort bits_of(half x) {
  return std::bit_cast<ushort>(_Float16(x.v));
}
inline ushort bits_of(bfloat x) {
  return std::bit_cast<uint32_t>(x.v) >> 16;
}
#include "metal_functions.h"
