#include "msl/types.h"

#include "msl/record.h"

namespace msl {

namespace {

constexpr ScalarInfo scalars[] = {
    {"bool", "bool", "bvec", "bool", 1, false, false},
    {"char", "int8_t", "i8vec", "i8", 1, true, false},
    {"uchar", "uint8_t", "u8vec", "u8", 1, false, false},
    {"short", "int16_t", "i16vec", "i16", 2, true, false},
    {"ushort", "uint16_t", "u16vec", "u16", 2, false, false},
    {"int", "int", "ivec", "i32", 4, true, false},
    {"uint", "uint", "uvec", "u32", 4, false, false},
    {"long", "int64_t", "i64vec", "i64", 8, true, false},
    {"ulong", "uint64_t", "u64vec", "u64", 8, false, false},
    {"half", "float", "vec", "f16", 2, true, true},
    {"bfloat", "float", "vec", "bf16", 2, true, true},
    {"float", "float", "vec", "f32", 4, true, true},
};

struct Spelling {
  std::string_view name;
  Scalar scalar;
};
// Beside those of `scalars`.
constexpr Spelling spellings[] = {
    {"int8_t", Scalar::I8},
    {"uint8_t", Scalar::U8},
    {"int16_t", Scalar::I16},
    {"uint16_t", Scalar::U16},
    {"int32_t", Scalar::I32},
    {"uint32_t", Scalar::U32},
    {"int64_t", Scalar::I64},
    {"ptrdiff_t", Scalar::I64},
    {"intptr_t", Scalar::I64},
    {"uint64_t", Scalar::U64},
    {"size_t", Scalar::U64},
    {"uintptr_t", Scalar::U64},
    {"float16_t", Scalar::F16},
    {"bfloat16_t", Scalar::BF16},
    {"float32_t", Scalar::F32},
};

constexpr Spelling atomics[] = {
    {"atomic_int", Scalar::I32},
    {"atomic_uint", Scalar::U32},
    {"atomic_bool", Scalar::Bool},
    {"atomic_ulong", Scalar::U64},
    {"atomic_float", Scalar::F32},
};

} // namespace

const ScalarInfo& info_of(Scalar s) {
  return scalars[static_cast<size_t>(s)];
}

Ty Types::get(const TypeData& data) {
  for (auto& t : all_) {
    if (t == data) {
      return &t;
    }
  }
  return &all_.emplace_back(data);
}

Ty Types::vector(Scalar s, int width, bool packed) {
  auto components = static_cast<uint8_t>(width);
  return width == 1 ? scalar(s)
                    : get(
                          {.kind = Kind::Vector,
                           .scalar = s,
                           .width = components,
                           .packed = packed});
}

Ty Types::named(std::string_view name) {
  if (name == "void") {
    return nothing();
  }
  if (name == "complex64_t") {
    return complex();
  }
  if (name == "mem_flags" || name == "memory_order") {
    return flags();
  }
  for (auto& a : atomics) {
    if (a.name == name) {
      return scalar(a.scalar, true);
    }
  }
  auto scalar_named = [](std::string_view n) {
    for (size_t i = 0; i < std::size(scalars); ++i) {
      if (scalars[i].msl == n) {
        return static_cast<int>(i);
      }
    }
    for (auto& s : spellings) {
      if (s.name == n) {
        return static_cast<int>(s.scalar);
      }
    }
    return -1;
  };
  if (int s = scalar_named(name); s >= 0) {
    return scalar(static_cast<Scalar>(s));
  }
  constexpr std::string_view prefix = "packed_";
  bool packed = name.starts_with(prefix);
  if (packed) {
    name.remove_prefix(prefix.size());
  }
  if (name.empty() || name.back() < '2' || name.back() > '4') {
    return nullptr;
  }
  int width = name.back() - '0';
  name.remove_suffix(1);
  int s = scalar_named(name);
  return s >= 0 ? vector(static_cast<Scalar>(s), width, packed) : nullptr;
}

std::string msl_name(Ty t) {
  using Kind = TypeData::Kind;
  constexpr std::string_view spaces[] = {
      "", "device ", "constant ", "threadgroup ", "thread "};
  switch (t->kind) {
    case Kind::Void:
      return "void";
    case Kind::Scalar: {
      std::string name = info_of(t->scalar).msl;
      return t->atomic ? "atomic<" + name + ">" : name;
    }
    case Kind::Vector:
      return (t->packed ? "packed_" : "") +
          std::string(info_of(t->scalar).msl) + std::to_string(t->width);
    case Kind::Complex:
      return "complex64_t";
    case Kind::Struct:
      return t->record->name;
    case Kind::Array:
      return msl_name(t->element) + "[" + std::to_string(t->count) + "]";
    case Kind::Pointer:
      return std::string(spaces[static_cast<size_t>(t->space)]) +
          msl_name(t->element) + "*";
    case Kind::Closure:
      return "a lambda";
    default:
      return "flags";
  }
}

std::string glsl_name(Ty t) {
  using Kind = TypeData::Kind;
  switch (t->kind) {
    case Kind::Void:
      return "void";
    case Kind::Scalar:
      return info_of(t->scalar).value;
    case Kind::Vector:
      return info_of(t->scalar).vector + std::to_string(t->width);
    case Kind::Complex:
      return "vec2";
    case Kind::Struct:
      return t->record->glsl;
    case Kind::Array:
      return glsl_name(flat_element(t));
    case Kind::Pointer:
      return t->is_address() ? "uint64_t" : "int";
    default:
      return "int";
  }
}

std::string memory_name(Ty t) {
  using Kind = TypeData::Kind;
  switch (t->kind) {
    case Kind::Scalar:
      return info_of(t->scalar).dtype;
    case Kind::Vector:
      return std::string(info_of(t->scalar).dtype) + (t->packed ? "p" : "x") +
          std::to_string(t->width);
    case Kind::Complex:
      return "c64";
    case Kind::Pointer:
      return "u64";
    case Kind::Struct:
      return t->record->glsl;
    default:
      return "";
  }
}

uint32_t align_of(Ty t) {
  using Kind = TypeData::Kind;
  switch (t->kind) {
    case Kind::Scalar:
    case Kind::Vector:
      return t->packed ? info_of(t->scalar).size : size_of(t);
    case Kind::Complex:
      return 4;
    case Kind::Struct:
      return t->record->align;
    case Kind::Array:
      return align_of(t->element);
    case Kind::Pointer:
      return 8;
    default:
      return 1;
  }
}

uint32_t size_of(Ty t) {
  using Kind = TypeData::Kind;
  switch (t->kind) {
    case Kind::Scalar:
    case Kind::Vector:
      return info_of(t->scalar).size *
          (t->width == 3 && !t->packed ? 4 : t->width);
    case Kind::Complex:
    case Kind::Pointer:
      return 8;
    case Kind::Struct:
      return t->record->size;
    case Kind::Array:
      return size_of(t->element) * static_cast<uint32_t>(t->count);
    default:
      return 1;
  }
}

Ty flat_element(Ty t) {
  while (t->is_array()) {
    t = t->element;
  }
  return t;
}

int64_t flat_count(Ty t) {
  int64_t n = 1;
  for (; t->is_array(); t = t->element) {
    n *= t->count;
  }
  return n;
}

} // namespace msl
