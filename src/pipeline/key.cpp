#include "pipeline/key.h"

#include "pipeline/hash.h"

namespace mlx::core::vulkan {

namespace {

struct TypeRow {
  const char* name;
  const char* value; // what load() returns
  const char* kind;
  size_t size;
};

// Indexed by Type.
constexpr TypeRow types[] = {
    {"bool", "bool", "KIND_BOOL", 1},
    {"u8", "uint8_t", "KIND_UINT", 1},
    {"u16", "uint16_t", "KIND_UINT", 2},
    {"u32", "uint32_t", "KIND_UINT", 4},
    {"u64", "uint64_t", "KIND_UINT", 8},
    {"i8", "int8_t", "KIND_INT", 1},
    {"i16", "int16_t", "KIND_INT", 2},
    {"i32", "int32_t", "KIND_INT", 4},
    {"i64", "int64_t", "KIND_INT", 8},
    {"f16", "float", "KIND_FLOAT", 2},
    {"bf16", "float", "KIND_FLOAT", 2},
    {"f32", "float", "KIND_FLOAT", 4},
    {"c64", "vec2", "KIND_COMPLEX", 8},
};

const TypeRow& row(Type t) {
  return types[static_cast<size_t>(t)];
}

void define(
    std::string& out,
    std::string_view name,
    std::string_view suffix,
    std::string_view value) {
  ((((((out += "#define ") += name) += suffix) += ' ') += value) += '\n');
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

size_t size_of(Type t) {
  return row(t).size;
}

std::string_view name_of(Type t) {
  return row(t).name;
}

std::optional<Type> type_named(std::string_view name) {
  for (size_t i = 0; i < std::size(types); ++i) {
    if (name == types[i].name) {
      return static_cast<Type>(i);
    }
  }
  return {};
}

KernelHash hash_of(
    std::string_view file,
    std::span<const Define> defines,
    bool args_in_memory) {
  Hasher h;
  h.add(file, args_in_memory);
  for (auto& d : defines) {
    h.add(d.name, static_cast<uint64_t>(d.kind));
    if (d.kind == Define::Kind::Text) {
      h.add(d.text);
    } else {
      h.add(static_cast<uint64_t>(d.value));
    }
  }
  return {h.a(), h.b()};
}

std::string log_name(std::string_view file, std::span<const Define> defines) {
  std::string s(file);
  char separator = '{';
  for (auto& d : defines) {
    ((s += separator) += d.name) += '=';
    separator = ' ';
    switch (d.kind) {
      case Define::Kind::Integer:
        s += std::to_string(d.value);
        break;
      case Define::Kind::Text:
        s += d.text;
        break;
      case Define::Kind::Type:
        s += name_of(static_cast<Type>(d.value));
        break;
    }
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
      auto& t = row(static_cast<Type>(d.value));
      define(s, d.name, "", t.value);
      define(s, d.name, "_PTR", std::string("Ptr_") + t.name);
      define(s, d.name, "_CAST", std::string("to_") + t.name);
      define(s, d.name, "_SIZE", std::to_string(t.size));
      define(s, d.name, "_KIND", t.kind);
      define(s, d.name, std::string("_IS_") + t.name, "1");
    }
  }
  return s;
}

} // namespace mlx::core::vulkan
