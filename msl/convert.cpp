// Conversions between types: implicit, explicit, of bits, and constructors.
#include <algorithm>

#include "msl/translator.h"

namespace msl {

namespace {

using Home = Value::Home;

bool is_64(Scalar s) {
  return s == Scalar::I64 || s == Scalar::U64;
}

} // namespace

std::string within(const Value& v, Prec prec) {
  return v.prec > prec ? "(" + v.text + ")" : v.text;
}

Ty Translator::promoted(Ty t) {
  bool small = t->is_scalar() && t->is_integer() && t->scalar < Scalar::I32;
  return small ? types_.scalar(Scalar::I32) : t;
}

Ty Translator::common_type(Ty a, Ty b) {
  if (a->is_complex() || b->is_complex()) {
    return types_.complex();
  }
  if (!a->is_numeric() || !b->is_numeric()) {
    fail("`{}` and `{}` have no common type here.", a, b);
  }
  if (a->is_vector() || b->is_vector()) {
    if (a->is_vector() && b->is_vector() && a->width != b->width) {
      fail("vectors of different widths ({}, {}) do not combine.", a, b);
    }
    Ty v = a->is_vector() ? a : b;
    return types_.vector(v->scalar, v->width);
  }
  if (a->is_floating() || b->is_floating()) {
    Scalar s = !b->is_floating() ? a->scalar
        : !a->is_floating()      ? b->scalar
        : a->scalar == b->scalar ? a->scalar
                                 : Scalar::F32;
    return types_.scalar(s);
  }
  // The type of higher rank; of equal ranks, the unsigned one.
  return types_.scalar(std::max(promoted(a)->scalar, promoted(b)->scalar));
}

Value Translator::rounded(Value v) {
  v.unrounded.clear();
  if (!v.type->is_narrow_float() || v.constant) {
    return v;
  }
  const char* f =
      v.type->scalar == Scalar::F16 ? "msl_round_f16(" : "msl_round_bf16(";
  Value r = plain_value(v.type, f + v.text + ")");
  r.unrounded = std::move(v.text);
  return r;
}

int Translator::conversion_cost(Ty from, Ty to, const Value* v) {
  if (from == to) {
    return 0;
  }
  if (from->is_array() && to->is_pointer()) {
    bool shared = v && v->base && v->base->space() == Space::Threadgroup;
    bool device = v && v->home == Value::Home::Device;
    if (v && device != to->is_address()) {
      return -1;
    }
    return (flat_element(from) == flat_element(to->element) ? 0 : 3) +
        (shared && to->space != Space::Threadgroup);
  }
  if (from->is_pointer() && to->is_pointer()) {
    bool known = v && v->base;
    Space space = known ? v->base->space() : from->space;
    if (v && v->is_null) {
      return 2;
    }
    bool same = space == to->space;
    // Small inputs come as constant, although the kernel may ask for device.
    bool near = from->is_address() && to->is_address();
    return from->element != to->element ? -1 : same ? 0 : near ? 1 : -1;
  }
  if (to->is_pointer()) {
    return v && v->constant && v->integer() == 0 ? 3 : -1;
  }
  if (from->is_pointer()) {
    return to->is_bool() ? 3 : -1;
  }
  if (to->is_complex()) {
    return from->is_scalar() ? 3 : -1;
  }
  if (!from->is_numeric() || !to->is_numeric()) {
    return -1;
  }
  if (from->is_vector() || to->is_vector()) {
    if (from->is_vector() && to->is_vector()) {
      return from->width == to->width && from->scalar == to->scalar ? 0 : -1;
    }
    return from->is_scalar() ? 4 : -1; // a splat
  }
  if (from->scalar == to->scalar) {
    return 0;
  }
  if (promoted(from) == to) {
    return 1;
  }
  bool widens = from->is_narrow_float() && to->scalar == Scalar::F32;
  return widens ? 1 : from->is_floating() == to->is_floating() ? 2 : 3;
}

Value Translator::convert_pointer(const Value& v, Ty to, bool is_explicit) {
  if (v.constant && v.type->is_integer() && v.integer() == 0) {
    Value null = plain_value(to, to->is_address() ? "0ul" : null_offset);
    null.is_null = true;
    return null;
  }
  Value p = decayed(v);
  p.read_only = p.read_only && !is_explicit;
  if (!p.type->is_pointer()) {
    if (is_explicit && to->is_address() && p.type->is_integer()) {
      Value bits = convert(p, types_.scalar(Scalar::U64));
      bits.type = to;
      bits.constant.reset();
      return bits;
    }
    fail("`{}` is not a pointer, but `{}` is wanted.", v.type, to);
  }
  if (p.is_null || p.type == to) {
    p.type = to;
    return p;
  }
  if (p.type->is_address() != to->is_address()) {
    fail(
        "a pointer cannot change its address space (`{}` to `{}`); copy the "
        "items.",
        p.type,
        to);
  }
  if (!is_explicit &&
      flat_element(p.type->element) != flat_element(to->element)) {
    fail("`{}` does not convert to `{}` without a cast.", p.type, to);
  }
  if (p.type->is_address()) {
    p.type = to;
    return p;
  }
  // Another view of the same variable: its offset is in items of the new type.
  Ty from_item = flat_element(p.type->element),
     item = flat_element(to->element);
  bool views = from_item->is_numeric() && item->is_numeric() &&
      from_item->scalar == item->scalar;
  if (!views && from_item != item) {
    fail(
        "a pointer into threadgroup or thread memory cannot be cast to items "
        "of another type (`{}` to `{}`); declare an array of that type.",
        p.type,
        to);
  }
  int from_width = from_item->width, width = item->width;
  if (from_width != width && p.text != "0") {
    p.text = "(" + p.text + ") * " + std::to_string(from_width) +
        (width == 1 ? "" : " / " + std::to_string(width));
    p.prec = Prec::Mul;
  }
  p.type = to;
  return p;
}

Value Translator::convert(const Value& given, Ty to, bool is_explicit) {
  if (to->is_pointer()) {
    return convert_pointer(given, to, is_explicit);
  }
  Value v = load(given);
  if (v.type == to || to->is_void()) {
    v.type = to;
    return v;
  }
  if (v.type->is_pointer() && to->is_bool()) {
    return v.type->is_address()
        ? plain_value(to, within(v, Prec::Add) + " != 0ul", Prec::Equality)
        : compared_with_null(v, "!=");
  }
  if (v.type->is_address() && is_explicit && to->is_scalar() &&
      is_64(to->scalar)) {
    Value bits = v;
    bits.type = types_.scalar(Scalar::U64);
    return convert(bits, to);
  }
  if (to->is_complex() && v.type->is_scalar()) {
    Value re = convert(v, types_.scalar(Scalar::F32));
    return plain_value(to, "vec2(" + re.text + ", 0.0)");
  }
  if (v.type->is_complex() && to->is_scalar() && is_explicit) {
    Value re =
        plain_value(types_.scalar(Scalar::F32), within(v, Prec::Atom) + ".x");
    return convert(re, to);
  }
  bool splat = to->is_vector() && v.type->is_scalar();
  if (!v.type->is_numeric() || !to->is_numeric() ||
      (v.type->is_vector() && v.type->width != to->width)) {
    fail(
        "`{}` does not convert to `{}`; {}.",
        v.type,
        to,
        v.type->is_void()          ? "it has no value"
            : v.type->is_pointer() ? "read an item with [i]"
            : v.type->is_numeric() ? "give as many components as it has"
                                   : "use one of its fields or items");
  }
  if (v.constant && to->is_scalar()) {
    return literal(to, *v.constant);
  }
  if (splat) {
    Value one = convert(v, types_.scalar(to->scalar));
    return plain_value(to, glsl_name(to) + "(" + one.text + ")");
  }
  if (to->scalar == v.type->scalar) { // packed
    v.type = to;
    return v;
  }
  // bool of a vector or scalar: "is not zero", of NaN true.
  if (to->scalar == Scalar::Bool && !to->is_vector()) {
    Value zero = literal(types_.scalar(v.type->scalar), int64_t(0));
    Ty wide = promoted(v.type);
    Value x = convert(v, wide);
    zero = convert(zero, wide);
    return plain_value(
        to, within(x, Prec::Relation) + " != " + zero.text, Prec::Equality);
  }
  int size = info_of(to->scalar).size;
  if ((to->scalar == Scalar::I8 || to->scalar == Scalar::I16) &&
      v.type->is_integer() && info_of(v.type->scalar).size > size) {
    // NVIDIA's compiler (driver 580) has -int8_t(-128) as 128 even after a
    // conversion to int8_t.
    v = convert(v, types_.with_scalar(v.type, Scalar::I32));
    v.text =
        "bitfieldExtract(" + v.text + ", 0, " + std::to_string(8 * size) + ")";
  }
  bool same_in_glsl = glsl_name(to) == glsl_name(v.type);
  Value r =
      same_in_glsl ? v : plain_value(to, glsl_name(to) + "(" + v.text + ")");
  r.type = to;
  r.home = Home::None;
  return rounded(r);
}

Value Translator::construct(Ty to, Values from) {
  if (to->is_struct()) {
    return construct_record(to, std::move(from));
  }
  if (from.empty()) {
    return to->is_numeric() && to->is_scalar() ? literal(to, int64_t(0))
        : to->is_vector()                      ? convert(integer(0), to)
        : to->is_complex()                     ? plain_value(to, "vec2(0.0)")
                                               : convert(integer(0), to);
  }
  if (to->is_complex() && from.size() == 2) {
    Ty f = types_.scalar(Scalar::F32);
    return plain_value(
        to,
        "vec2(" + convert(from[0], f).text + ", " + convert(from[1], f).text +
            ")");
  }
  if (from.size() == 1) {
    return convert(from[0], to, true);
  }
  if (!to->is_vector()) {
    fail("`{}` is not made of {} values.", to, from.size());
  }
  std::string text = glsl_name(to) + "(";
  int width = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    Value x = load(from[i]);
    if (!x.type->is_numeric()) {
      fail("`{}` is no component of `{}`.", x.type, to);
    }
    width += x.type->width;
    x = convert(x, types_.with_scalar(x.type, to->scalar));
    text += (i ? ", " : "") + x.text;
  }
  if (width != to->width) {
    fail("`{}` is given {} components.", to, width);
  }
  return plain_value(to, text + ")");
}

namespace {

// The bits of a scalar as a uint (of 64 bits, as a uvec2), and the way back.
struct Bits {
  std::string_view to, from;
};
constexpr Bits bits_of_scalars[] = {
    {"uint({})", "({} != 0u)"},
    {"(uint({}) & 0xffu)", "int8_t(uint8_t({}))"},
    {"uint({})", "uint8_t({})"},
    {"(uint({}) & 0xffffu)", "int16_t(uint16_t({}))"},
    {"uint({})", "uint16_t({})"},
    {"uint({})", "int({})"},
    {"uint({})", "{}"},
    {"unpackUint2x32(uint64_t({}))", "int64_t(packUint2x32({}))"},
    {"unpackUint2x32({})", "packUint2x32({})"},
    {"uint(f32_to_f16({}))", "f16_to_f32(uint16_t({}))"},
    {"uint(f32_to_bf16({}))", "bf16_to_f32(uint16_t({}))"},
    {"floatBitsToUint({})", "uintBitsToFloat({})"},
};

std::string component_text(const Value& v, int i) {
  return v.type->is_vector() ? within(v, Prec::Atom) + "." + "xyzw"[i] : v.text;
}

} // namespace

Value Translator::as_type(const Value& given, Ty to) {
  Value v = load(given);
  if (v.type == to) {
    return v;
  }
  bool fits = v.type->is_numeric() && to->is_numeric() &&
      info_of(v.type->scalar).size * v.type->width ==
          info_of(to->scalar).size * to->width;
  if (!fits) {
    fail("as_type needs types of one size; `{}` and `{}` are not.", v.type, to);
  }
  if (v.type->is_vector()) {
    v = temporary(v);
  }
  auto& as = bits_of_scalars[static_cast<size_t>(v.type->scalar)];
  auto& back = bits_of_scalars[static_cast<size_t>(to->scalar)];
  int from_size = info_of(v.type->scalar).size, size = info_of(to->scalar).size;
  // Its words, 32 bits each (or the whole value, if it is shorter).
  std::vector<std::string> words;
  int total = from_size * v.type->width;
  if (from_size == 8) {
    for (int i = 0; i < v.type->width; ++i) {
      std::string pair = fmt(as.to, component_text(v, i));
      words.insert(words.end(), {pair + ".x", pair + ".y"});
    }
  } else {
    int per_word = std::max(1, std::min(4, total) / from_size);
    for (int i = 0; i < v.type->width; i += per_word) {
      std::string word;
      for (int k = 0; k < per_word; ++k) {
        std::string part = fmt(as.to, component_text(v, i + k));
        word += k
            ? " | (" + part + " << " + std::to_string(8 * from_size * k) + "u)"
            : part;
      }
      words.push_back(per_word > 1 ? "(" + word + ")" : word);
    }
  }
  std::string text;
  for (int i = 0; i < to->width; ++i) {
    int bit = 8 * size * i;
    std::string bits = size == 8
        ? "uvec2(" + words[2 * i] + ", " + words[2 * i + 1] + ")"
        : words[bit / 32];
    if (size < 4 && bit % 32) {
      bits = "(" + bits + " >> " + std::to_string(bit % 32) + "u)";
    }
    text += (i ? ", " : "") + fmt(back.from, bits);
  }
  return plain_value(
      to, to->is_vector() ? glsl_name(to) + "(" + text + ")" : text);
}

} // namespace msl
