// Functions of integers, functions with a second result, and what MLX puts
// before every kernel.
#include <string_view>

#include "msl/names.h"
#include "msl/translator.h"

namespace msl {

namespace {

struct IntegerRow {
  std::string_view name;
  uint8_t arity;
  const char* glsl; // of int, uint, int64_t and uint64_t
  uint8_t uints = 0; // how many of the last arguments are uint
};
constexpr IntegerRow integer_rows[] = {
    {"absdiff", 2, "msl_absdiff"},
    {"addsat", 2, "msl_addsat"},
    {"extract_bits", 3, "msl_extract_bits", 2},
    {"hadd", 2, "msl_hadd"},
    {"insert_bits", 4, "msl_insert_bits", 2},
    {"mad24", 3, "msl_mad"},
    {"madhi", 3, "msl_madhi"},
    {"mul24", 2, "msl_mul"},
    {"mulhi", 2, "msl_mulhi"},
    {"rhadd", 2, "msl_rhadd"},
    {"subsat", 2, "msl_subsat"},
};

} // namespace

// f(a, b, ...) of each component; the last `uints` arguments are uint.
Value Translator::by_components(
    const char* glsl,
    Values& arguments,
    size_t uints) {
  size_t n = arguments.size();
  Ty t = overload_type(arguments, n - uints);
  bool is_signed = info_of(t->scalar).is_signed;
  Scalar w = info_of(t->scalar).size >= 4 ? t->scalar
      : is_signed                         ? Scalar::I32
                                          : Scalar::U32;
  Ty own = types_.scalar(t->scalar);
  Values values;
  for (size_t i = 0; i < n; ++i) {
    Scalar s = i < n - uints ? w : Scalar::U32;
    Value v =
        convert(arguments[i], i < n - uints ? t : load(arguments[i]).type);
    v = convert(v, types_.with_scalar(v.type, s));
    values.push_back(t->is_vector() ? temporary(v, "x") : v);
  }
  std::string all;
  for (int c = 0; c < t->width; ++c) {
    std::vector<std::string> x;
    for (auto& v : values) {
      x.push_back(
          v.type->is_vector() ? component(v, std::to_string(c), true).text
                              : v.text);
    }
    Value one = plain_value(
        types_.scalar(w), narrow_text(glsl, own, types_.scalar(w), x));
    all += (c ? ", " : "") + convert(one, own).text;
  }
  return plain_value(t, t->is_vector() ? glsl_name(t) + "(" + all + ")" : all);
}

// clz, popcount and similar functions count within the type's width.
std::optional<Value> Translator::integer_function(
    const std::string& name,
    Values& arguments) {
  size_t n = arguments.size();
  if (n == 0 || !load(arguments[0]).type->is_integer()) {
    return {};
  }
  Value x = load(arguments[0]);
  Ty t = x.type;
  int bits = 8 * info_of(t->scalar).size;
  Scalar wide = bits == 64 ? Scalar::U64 : Scalar::U32;
  auto as_unsigned = [&](const Value& v) {
    Scalar same = static_cast<Scalar>(
        static_cast<int>(t->scalar) + info_of(t->scalar).is_signed);
    Value u = convert(v, types_.with_scalar(t, same));
    return convert(u, types_.with_scalar(t, wide));
  };
  Ty u = types_.with_scalar(t, wide);
  auto result = [&](const std::string& text) {
    return convert(plain_value(u, text, Prec::Add), t);
  };
  if (has_word("popcount clz ctz reverse_bits", name) && n == 1) {
    std::string all = fmt("msl_{}({})", name, as_unsigned(x).text);
    return result(
        bits >= 32 || name == "popcount" ? all
            : name == "clz"              ? fmt("{} - {}u", all, 32 - bits)
            : name == "ctz"              ? fmt("min({}, {}u)", all, bits)
                                         : fmt("{} >> {}u", all, 32 - bits));
  }
  if (name == "rotate" && n == 2 && t->is_scalar()) {
    Value by = as_unsigned(convert(arguments[1], t));
    return result(
        fmt("msl_rotate({}, {}, {}u)", as_unsigned(x).text, by.text, bits));
  }
  for (auto& row : integer_rows) {
    if (row.name != name || row.arity != n) {
      continue;
    }
    return by_components(row.glsl, arguments, row.uints);
  }
  if ((name == "any" || name == "all") && n == 1) {
    return t->is_vector()
        ? plain_value(
              types_.scalar(Scalar::Bool),
              name + "(" +
                  convert(x, types_.with_scalar(t, Scalar::Bool)).text + ")")
        : convert(x, types_.scalar(Scalar::Bool));
  }
  return {};
}

// One component of type `t`, computed as `wide` and corrected where the result
// depends on the width of `t`.
std::string Translator::narrow_text(
    const std::string& glsl,
    Ty t,
    Ty wide,
    const std::vector<std::string>& x) {
  std::string text = glsl + "(";
  for (size_t i = 0; i < x.size(); ++i) {
    text += (i ? ", " : "") + x[i];
  }
  text += ")";
  int bits = 8 * info_of(t->scalar).size;
  if (bits >= 32) {
    return text;
  }
  bool is_signed = info_of(t->scalar).is_signed;
  int64_t high = (int64_t(1) << (is_signed ? bits - 1 : bits)) - 1;
  std::string most = literal(wide, high).text;
  if (glsl == "msl_addsat" || glsl == "msl_subsat") {
    return is_signed ? "clamp(" + text + ", " + literal(wide, -high - 1).text +
            ", " + most + ")"
                     : "min(" + text + ", " + most + ")";
  }
  if (glsl == "msl_mulhi" || glsl == "msl_madhi") {
    std::string product =
        "((" + x[0] + ") * (" + x[1] + ") >> " + std::to_string(bits) + ")";
    return x.size() == 3 ? product + " + (" + x[2] + ")" : product;
  }
  return text;
}

// sincos(x, c), modf(x, i), frexp(x, e), ldexp(x, n), ilogb(x).
std::optional<Value> Translator::with_result(
    const std::string& name,
    Values& arguments) {
  if (arguments.size() == 1 && name == "ilogb") {
    Value x = convert(arguments[0], types_.scalar(Scalar::F32));
    return plain_value(types_.scalar(Scalar::I32), "msl_ilogb(" + x.text + ")");
  }
  if (arguments.size() != 2) {
    return {};
  }
  Value x = load(arguments[0]);
  if (!x.type->is_numeric()) {
    return {};
  }
  Ty t =
      x.type->is_floating() ? x.type : types_.with_scalar(x.type, Scalar::F32);
  if (name == "ldexp") {
    Value n = convert(arguments[1], types_.with_scalar(t, Scalar::I32));
    return rounded(plain_value(
        t, "msl_ldexp(" + convert(x, t).text + ", " + n.text + ")"));
  }
  if (name != "sincos" && name != "modf" && name != "frexp") {
    return {};
  }
  Value second = arguments[1].type->is_pointer() ? dereference(arguments[1])
                                                 : arguments[1];
  x = temporary(convert(x, t), "x");
  auto call = [&](const std::string& f, Ty type) {
    return rounded(plain_value(type, f + "(" + x.text + ")"));
  };
  Value first;
  if (name == "sincos") {
    first = temporary(call("msl_sin", t), "s");
    store(second, call("msl_cos", t));
  } else if (name == "modf") {
    store(second, call("trunc", t));
    first = plain_value(t, x.text + " - trunc(" + x.text + ")", Prec::Add);
  } else {
    first = temporary(call("msl_frexp_fraction", t), "fraction");
    store(
        second, call("msl_frexp_exponent", types_.with_scalar(t, Scalar::I32)));
  }
  return first;
}

std::optional<Value> Translator::mlx_function(
    const std::string& name,
    const Expr& e,
    Values& arguments) {
  size_t n = arguments.size();
  if (name == "ceildiv" && n == 2) {
    Value a = load(arguments[0]), b = load(arguments[1]);
    Value up = arithmetic("+", a, b);
    up = arithmetic("-", up, integer(1));
    return convert(arithmetic("/", up, b), a.type);
  }
  if (name == "bfloat16_to_uint16" && n == 1) {
    Value x = convert(arguments[0], types_.scalar(Scalar::BF16));
    return as_type(x, types_.scalar(Scalar::U16));
  }
  if (name == "uint16_to_bfloat16" && n == 1) {
    Value x = convert(arguments[0], types_.scalar(Scalar::U16));
    return as_type(x, types_.scalar(Scalar::BF16));
  }
  if (!name.starts_with("elem_to_loc") || n < 2) {
    return {};
  }
  // The index type: the template argument's, the element's, or 64 bits.
  Value element = load(arguments[0]);
  const Expr& callee = *e.children[0];
  Ty index = types_.scalar(Scalar::I64);
  if (!callee.arguments.empty()) {
    index = argument_type(callee.arguments[0]);
  } else if (name == "elem_to_loc" && element.type->is_scalar()) {
    index = promoted(element.type);
  }
  bool known = name == "elem_to_loc" ? n == 4 : n == 2 && name.size() == 13;
  if (!known || !index->is_integer()) {
    return {};
  }
  // In the widest type of the same sign: narrower types agree modulo 2^n.
  std::string text = name == "elem_to_loc"
      ? (element.type->is_vector() ? "msl_elem_to_loc_3d(" : "msl_elem_to_loc(")
      : "msl_" + name + "(";
  if (element.type->is_scalar()) {
    element = convert(
        element,
        name == "elem_to_loc" ? types_.scalar(Scalar::I64)
                              : types_.scalar(Scalar::U32));
  }
  text += element.text;
  for (size_t i = 1; i < n; ++i) {
    Value x = load(arguments[i]);
    if (x.type->is_array() || x.type->is_pointer()) {
      if (!x.type->is_address()) {
        fail("`{}` takes shapes and strides of an input.", name);
      }
      text += ", " + x.text;
    } else {
      bool stride = name == "elem_to_loc_1";
      Ty to = types_.scalar(stride ? Scalar::I64 : Scalar::I32);
      text += ", " + convert(x, to).text;
    }
  }
  Value loc = plain_value(types_.scalar(Scalar::I64), text + ")");
  return convert(loc, index);
}

} // namespace msl
