// A kernel's variant as a typed value: a struct whose members are the names
// that the kernel's source sees.
//
//   struct RopeVariant {
//     Type T;
//     bool FORWARD;
//     KERNEL_VARIANT("rope", RopeArgs, T, FORWARD)
//   };
//
// gives it `file` and `defines()`, from which hash, log name, #define block and
// cache key derive (pipeline/key.h), `words()`, the values alone, and the
// struct, or the template of one, that its argument block is (Takes). Variants
// are declared in src/kernels/<kernel>.h.
#pragma once

#include <array>
#include <concepts>
#include <string_view>

#include "pipeline/key.h"
#include "vk/matrix_units.h"

// FOR_EACH_(f, a, b, ...) is f(a) f(b) ...
#define MLXVK_PARENS ()
#define MLXVK_EXPAND(...) \
  MLXVK_EXPAND1(MLXVK_EXPAND1(MLXVK_EXPAND1(__VA_ARGS__)))
#define MLXVK_EXPAND1(...) \
  MLXVK_EXPAND2(MLXVK_EXPAND2(MLXVK_EXPAND2(__VA_ARGS__)))
#define MLXVK_EXPAND2(...) \
  MLXVK_EXPAND3(MLXVK_EXPAND3(MLXVK_EXPAND3(__VA_ARGS__)))
#define MLXVK_EXPAND3(...) __VA_ARGS__
#define MLXVK_FOR_EACH(f, ...) \
  __VA_OPT__(MLXVK_EXPAND(MLXVK_STEP(f, __VA_ARGS__)))
#define MLXVK_STEP(f, first, ...) \
  f(first) __VA_OPT__(MLXVK_AGAIN MLXVK_PARENS(f, __VA_ARGS__))
#define MLXVK_AGAIN() MLXVK_STEP

#define MLXVK_DEFINE(member) Define(#member, member),
#define MLXVK_WORD(member) word_of(member),

// A block of the kernel, also one with members added behind (a derived struct).
// KERNEL_VARIANT() names the first, this one others.
#define TAKES(Args)               \
  template <typename A>           \
  requires requires(const A* a) { \
    is_block<Args>(a);            \
  }                               \
  static void takes(const A*);

#define KERNEL_VARIANT(name, Args, ...)                           \
  static constexpr std::string_view file = name;                  \
  TAKES(Args)                                                     \
  auto defines() const {                                          \
    return std::array{MLXVK_FOR_EACH(MLXVK_DEFINE, __VA_ARGS__)}; \
  }                                                               \
  auto words() const {                                            \
    return std::array{MLXVK_FOR_EACH(MLXVK_WORD, __VA_ARGS__)};   \
  }

// A variant with cooperative matrices of any shape for inputs of type T, f16 or
// bf16. Its member `units` (Caps::matrices()) gives SG, the subgroup size, and
// MM, MN and MK (common/matrix_units.glsl).
#define MATRIX_VARIANT(name, Args, ...)                                \
  static constexpr std::string_view file = name;                       \
  TAKES(Args)                                                          \
  auto defines() const {                                               \
    return std::array{                                                 \
        Define("COOPMAT", !units.emulated),                            \
        Define(                                                        \
            units.emulated                       ? "EMULATED_MATRICES" \
                : T == Type::f16 || units.halves ? "NATIVE_F16"        \
                                                 : "BF16_EXT",         \
            1),                                                        \
        Define("HALVES", units.halves),                                \
        Define("SG", units.lanes),                                     \
        Define("MM", units.shape.m),                                   \
        Define("MN", units.shape.n),                                   \
        Define("MK", units.shape.k),                                   \
        MLXVK_FOR_EACH(MLXVK_DEFINE, T, __VA_ARGS__)};                 \
  }

// A variant with matrices of 16 x 16 x 16 for inputs of type T, in subgroups of
// SG invocations (Caps::matrix_subgroup()); T and SG are members.
#define COOPMAT_VARIANT(name, Args, ...)                       \
  static constexpr std::string_view file = name;               \
  TAKES(Args)                                                  \
  auto defines() const {                                       \
    return std::array{                                         \
        Define("COOPMAT", 1),                                  \
        Define(T == Type::f16 ? "NATIVE_F16" : "BF16_EXT", 1), \
        MLXVK_FOR_EACH(MLXVK_DEFINE, T, SG, __VA_ARGS__)};     \
  }

namespace mlx::core::vulkan {

// Declared for pointers to `Args`, or to instances of the template.
template <typename Args>
void is_block(const Args*);
template <template <auto...> typename Args, auto... N>
void is_block(const Args<N...>*);
template <template <typename...> typename Args, typename... T>
void is_block(const Args<T...>*);
template <template <int, typename> typename Args, int N, typename T>
void is_block(const Args<N, T>*);

// Whether the kernel's argument block may be an `Args`.
template <typename V, typename Args>
concept Takes = requires(const Args* args) {
  V::takes(args);
};

template <typename V>
concept KernelVariant = requires(const V& v) {
  { V::file } -> std::convertible_to<std::string_view>;
  v.defines();
};

} // namespace mlx::core::vulkan
