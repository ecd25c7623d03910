// A kernel variant as a value: the file under src/kernels and its defines.
// Hash, log name, #define block and cache key derive from it. Free of MLX and
// Vulkan.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/hash.h"
#include "vk/type.h"

namespace mlx::core::vulkan {

enum class Kind : uint8_t { BOOL, UINT, INT, FLOAT, COMPLEX };

struct TypeInfo {
  std::string_view name; // result type of load(): "float", ...
  std::string_view value; // "float", ...: what load() returns
  std::string_view kind_name; // "KIND_FLOAT"
  Kind kind;
  size_t size; // bytes per item
};
const TypeInfo& info_of(Type t);

inline size_t size_of(Type t) {
  return info_of(t).size;
}
// The unsigned type of an item's size, 1, 2, 4 or 8 bytes, to move bits.
inline Type bits_of(size_t size) {
  return size == 1 ? Type::u8
      : size == 2  ? Type::u16
      : size == 4  ? Type::u32
                   : Type::u64;
}
inline std::string_view name_of(Type t) {
  return info_of(t).name;
}
// The inverse of name_of(); empty for other words.
std::optional<Type> type_named(std::string_view name);

// A define of a kernel's source. A Type expands to P, P_PTR, P_CAST, P_SIZE and
// P_KIND (common/types.glsl).
struct Define {
  enum class Kind : uint8_t { Integer, Text, Type };

  template <std::integral I>
  Define(std::string_view name, I value)
      : name(name), kind(Kind::Integer), value(static_cast<int64_t>(value)) {}
  Define(std::string_view name, std::string_view text)
      : name(name), kind(Kind::Text), text(text) {}
  Define(std::string_view name, const char* text)
      : name(name), kind(Kind::Text), text(text) {}
  Define(std::string_view name, Type type)
      : name(name), kind(Kind::Type), value(static_cast<int64_t>(type)) {}

  std::string_view name;
  Kind kind;
  int64_t value = 0;
  std::string_view text; // not owned: a literal, or outlives the call
};

// Value of a define as one word; text is hashed.
uint64_t word_of(std::string_view text);
inline uint64_t word_of(const char* text) {
  return word_of(std::string_view(text));
}
inline uint64_t word_of(Type type) {
  return static_cast<uint64_t>(type);
}
template <std::integral I>
uint64_t word_of(I value) {
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

// 128-bit hash of a variant; equal variants in equal order hash equal. Combines
// the hash of the names, computed once per variant type, with the values.
struct KernelHash {
  uint64_t a = 0, b = 0;
  bool operator==(const KernelHash&) const = default;
};
Hasher hash_of_names(
    std::string_view file,
    std::span<const Define> defines,
    bool args_in_memory);
inline KernelHash with_values(Hasher h, std::span<const uint64_t> words) {
  size_t i = 0;
  for (; i + 1 < words.size(); i += 2) {
    h.add(words[i], words[i + 1]);
  }
  if (i < words.size()) {
    h.add(words[i]);
  }
  return {h.a(), h.b()};
}
KernelHash hash_of(
    std::string_view file,
    std::span<const Define> defines,
    bool args_in_memory);

// "softmax{T=bf16 Acc=f32 ROWS=4}", for logs, profiles and errors.
std::string log_name(std::string_view file, std::span<const Define> defines);

// The #define lines before the kernel's source.
std::string define_block(std::span<const Define> defines, bool args_in_memory);

// Names and values as text. "T=bf16" is a Type, "N=-4" an integer, anything
// else text; the defines point into `values`.
using NamedValues = std::vector<std::pair<std::string, std::string>>;
std::vector<Define> to_defines(const NamedValues& values);
// The reverse; the values are those of log_name().
NamedValues named_values(std::span<const Define> defines);

} // namespace mlx::core::vulkan
