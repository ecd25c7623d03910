#include "pipeline/key.h"

#include <charconv>

namespace mlx::core::vulkan {

namespace {

#define MLXVK_ROW(type, name, value, kind, size) \
  {#name, #value, "KIND_" #kind, Kind::kind, size},
constexpr TypeInfo types[] = {MLXVK_TYPES(MLXVK_ROW)}; // indexed by Type
#undef MLXVK_ROW

void define(
    std::string& out,
    std::string_view name,
    std::string_view suffix,
    std::string_view value) {
  ((((((out += "#define ") += name) += suffix) += ' ') += value) += '\n');
}

std::string value_text(const Define& d) {
  switch (d.kind) {
    case Define::Kind::Integer:
      return std::to_string(d.value);
    case Define::Kind::Text:
      return std::string(d.text);
    case Define::Kind::Type:
      return std::string(name_of(static_cast<Type>(d.value)));
  }
  return {};
}

std::string integer_literal(int64_t v) {
  if (v == INT64_MIN) { // no literal has this value
    return "(-9223372036854775807l - 1l)";
  }
  std::string s = std::to_string(v);
  if (v > INT32_MAX || v < -INT32_MAX) {
    s += 'l';
  }
  return v < 0 ? "(" + s + ")" : s;
}

} // namespace

const TypeInfo& info_of(Type t) {
  return types[static_cast<size_t>(t)];
}

std::optional<Type> type_named(std::string_view name) {
  for (size_t i = 0; i < std::size(types); ++i) {
    if (name == types[i].name) {
      return static_cast<Type>(i);
    }
  }
  return {};
}

uint64_t word_of(std::string_view text) {
  Hasher h;
  h.add(text);
  return h.a();
}

Hasher hash_of_names(
    std::string_view file,
    std::span<const Define> defines,
    bool args_in_memory) {
  Hasher h;
  h.add(file, args_in_memory);
  for (auto& d : defines) {
    h.add(d.name, static_cast<uint64_t>(d.kind));
  }
  return h;
}

KernelHash hash_of(
    std::string_view file,
    std::span<const Define> defines,
    bool args_in_memory) {
  std::vector<uint64_t> words;
  words.reserve(defines.size());
  for (auto& d : defines) {
    words.push_back(
        d.kind == Define::Kind::Text ? word_of(d.text) : word_of(d.value));
  }
  return with_values(hash_of_names(file, defines, args_in_memory), words);
}

std::string log_name(std::string_view file, std::span<const Define> defines) {
  std::string s(file);
  char separator = '{';
  for (auto& d : defines) {
    ((s += separator) += d.name) += '=';
    separator = ' ';
    s += value_text(d);
  }
  if (!defines.empty()) {
    s += '}';
  }
  return s;
}

std::string define_block(std::span<const Define> defines, bool args_in_memory) {
  std::string s;
  if (args_in_memory) {
    s += "#define ARGS_IN_MEMORY 1\n";
  }
  for (auto& d : defines) {
    if (d.kind == Define::Kind::Integer) {
      define(s, d.name, "", integer_literal(d.value));
    } else if (d.kind == Define::Kind::Text) {
      define(s, d.name, "", d.text);
    } else {
      auto& t = info_of(static_cast<Type>(d.value));
      define(s, d.name, "", t.value);
      define(s, d.name, "_PTR", "Ptr_" + std::string(t.name));
      define(s, d.name, "_CAST", "to_" + std::string(t.name));
      define(s, d.name, "_SIZE", std::to_string(t.size));
      define(s, d.name, "_KIND", t.kind_name);
      define(s, d.name, "_IS_" + std::string(t.name), "1");
      if (static_cast<Type>(d.value) == Type::f64) {
        s += "#define FLOAT64 1\n";
      }
    }
  }
  return s;
}

NamedValues named_values(std::span<const Define> defines) {
  NamedValues out;
  for (auto& d : defines) {
    out.emplace_back(d.name, value_text(d));
  }
  return out;
}

std::vector<Define> to_defines(const NamedValues& values) {
  std::vector<Define> out;
  for (auto& [name, text] : values) {
    int64_t n = 0;
    auto* end = text.data() + text.size();
    auto [rest, error] = std::from_chars(text.data(), end, n);
    if (auto type = type_named(text)) {
      out.emplace_back(name, *type);
    } else if (error == std::errc{} && rest == end && !text.empty()) {
      out.emplace_back(name, n);
    } else {
      out.emplace_back(name, std::string_view(text));
    }
  }
  return out;
}

} // namespace mlx::core::vulkan
