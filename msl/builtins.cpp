// MSL's functions of numbers, a row each, and the GLSL functions that compute
// them: GLSL's own, or those of common/msl_math.glsl.
#include <algorithm>
#include <string_view>

#include "msl/translator.h"

namespace msl {

namespace {

enum class Rule : uint8_t {
  Float, // the result has the type of the arguments
  Number, // the same, also of integers
  Relation, // a bool for each component
  Length // one number of whole vectors
};

struct Row {
  std::string_view name;
  uint8_t arity;
  Rule rule;
  const char* glsl;
  const char* fast = nullptr; // fast::name, if another
};

constexpr Row rows[] = {
    {"acos", 1, Rule::Float, "msl_acos"},
    {"acosh", 1, Rule::Float, "msl_acosh"},
    {"asin", 1, Rule::Float, "msl_asin"},
    {"asinh", 1, Rule::Float, "msl_asinh"},
    {"atan", 1, Rule::Float, "msl_atan"},
    {"atan2", 2, Rule::Float, "msl_atan2"},
    {"atanh", 1, Rule::Float, "msl_atanh"},
    {"ceil", 1, Rule::Float, "ceil"},
    {"copysign", 2, Rule::Float, "msl_copysign"},
    {"cos", 1, Rule::Float, "msl_cos", "cos"},
    {"cosh", 1, Rule::Float, "msl_cosh"},
    {"cospi", 1, Rule::Float, "msl_cospi"},
    {"divide", 2, Rule::Float, "msl_divide"},
    {"erf", 1, Rule::Float, "msl_erf"},
    {"erfinv", 1, Rule::Float, "msl_erfinv"},
    {"exp", 1, Rule::Float, "msl_exp", "exp"},
    {"exp10", 1, Rule::Float, "msl_exp10"},
    {"exp2", 1, Rule::Float, "msl_exp2", "exp2"},
    {"expm1", 1, Rule::Float, "msl_expm1"},
    {"fabs", 1, Rule::Float, "abs"},
    {"fdim", 2, Rule::Float, "msl_fdim"},
    {"floor", 1, Rule::Float, "floor"},
    {"fma", 3, Rule::Float, "fma"},
    {"fmax", 2, Rule::Float, "msl_max"},
    {"fmax3", 3, Rule::Float, "msl_max3"},
    {"fmedian3", 3, Rule::Float, "msl_median3"},
    {"fmin", 2, Rule::Float, "msl_min"},
    {"fmin3", 3, Rule::Float, "msl_min3"},
    {"fmod", 2, Rule::Float, "msl_fmod"},
    {"fract", 1, Rule::Float, "msl_fract"},
    {"hypot", 2, Rule::Float, "msl_hypot"},
    {"log", 1, Rule::Float, "msl_log", "log"},
    {"log10", 1, Rule::Float, "msl_log10"},
    {"log1p", 1, Rule::Float, "msl_log1p"},
    {"log2", 1, Rule::Float, "msl_log2", "log2"},
    {"mix", 3, Rule::Float, "mix"},
    {"pow", 2, Rule::Float, "msl_pow"},
    {"powr", 2, Rule::Float, "msl_pow", "pow"},
    {"rint", 1, Rule::Float, "roundEven"},
    {"round", 1, Rule::Float, "msl_round"},
    {"rsqrt", 1, Rule::Float, "msl_rsqrt", "inversesqrt"},
    {"saturate", 1, Rule::Float, "msl_saturate"},
    {"sign", 1, Rule::Float, "msl_sign"},
    {"sin", 1, Rule::Float, "msl_sin", "sin"},
    {"sinh", 1, Rule::Float, "msl_sinh"},
    {"sinpi", 1, Rule::Float, "msl_sinpi"},
    {"smoothstep", 3, Rule::Float, "smoothstep"},
    {"sqrt", 1, Rule::Float, "msl_sqrt", "sqrt"},
    {"step", 2, Rule::Float, "step"},
    {"tan", 1, Rule::Float, "msl_tan", "tan"},
    {"tanh", 1, Rule::Float, "msl_tanh"},
    {"tanpi", 1, Rule::Float, "msl_tanpi"},
    {"trunc", 1, Rule::Float, "trunc"},
    {"abs", 1, Rule::Number, "abs"},
    {"clamp", 3, Rule::Number, "msl_clamp"},
    {"max", 2, Rule::Number, "msl_max"},
    {"max3", 3, Rule::Number, "msl_max3"},
    {"median3", 3, Rule::Number, "msl_median3"},
    {"min", 2, Rule::Number, "msl_min"},
    {"min3", 3, Rule::Number, "msl_min3"},
    {"isfinite", 1, Rule::Relation, "msl_isfinite"},
    {"isinf", 1, Rule::Relation, "msl_isinf"},
    {"isnan", 1, Rule::Relation, "msl_isnan"},
    {"isnormal", 1, Rule::Relation, "msl_isnormal"},
    {"isordered", 2, Rule::Relation, "msl_isordered"},
    {"isunordered", 2, Rule::Relation, "msl_isunordered"},
    {"signbit", 1, Rule::Relation, "msl_signbit"},
    {"cross", 2, Rule::Float, "cross"},
    {"distance", 2, Rule::Length, "distance"},
    {"distance_squared", 2, Rule::Length, "msl_distance_squared"},
    {"dot", 2, Rule::Length, "dot"},
    {"length", 1, Rule::Length, "length"},
    {"length_squared", 1, Rule::Length, "msl_length_squared"},
    {"normalize", 1, Rule::Float, "normalize"},
    {"reflect", 2, Rule::Float, "reflect"},
};

} // namespace

int builtin_arity(std::string_view name) {
  auto* row = std::ranges::find(rows, name, &Row::name);
  return row == std::end(rows) ? 0 : row->arity;
}

std::optional<Value> Translator::builtin(
    const std::string& qualified,
    const Expr& e,
    Values& arguments) {
  size_t at = qualified.rfind("::");
  std::string name =
      at == qualified.npos ? qualified : qualified.substr(at + 2);
  bool fast = qualified.starts_with("fast::");
  for (auto& a : arguments) {
    // Pointers to atomics and results, and lambdas, are passed as they are.
    if (!a.is_lvalue()) {
      a = decayed(a);
    }
  }
  for (auto& row : rows) {
    if (row.name != name || row.arity != arguments.size()) {
      continue;
    }
    for (auto& a : arguments) {
      a = load(a);
      if (!a.type->is_numeric()) {
        return {};
      }
    }
    const char* glsl = fast && row.fast ? row.fast : row.glsl;
    switch (row.rule) {
      case Rule::Float:
        return float_function(glsl, arguments);
      case Rule::Number:
        return number_function(name, glsl, arguments);
      case Rule::Relation:
      case Rule::Length: {
        Value v = exact_function(glsl, arguments);
        v.type = row.rule == Rule::Length
            ? types_.scalar(v.type->scalar)
            : types_.with_scalar(v.type, Scalar::Bool);
        return rounded(v);
      }
    }
  }
  if (name == "select" && arguments.size() == 3) {
    return select(arguments);
  }
  if (name == "threadgroup_barrier" || name == "simdgroup_barrier" ||
      name == "atomic_thread_fence") {
    return barrier(name, arguments);
  }
  if (name.starts_with("simd_") || name.starts_with("quad_")) {
    return simd_function(name, arguments);
  }
  if (name.starts_with("atomic_")) {
    return atomic_function(name, arguments);
  }
  if (name == "simdgroup_lane" && arguments.empty()) { // simdgroup_matrix.h
    uses_simd_ = true;
    return plain_value(
        types_.scalar(Scalar::U32), "msl_thread_index_in_simdgroup()");
  }
  if (auto v = with_result(name, arguments)) {
    return v;
  }
  if (auto v = integer_function(name, arguments)) {
    return v;
  }
  return mlx_function(name, e, arguments);
}

// Converts all arguments to one float type (integers to float), not rounded.
Value Translator::exact_function(const char* glsl, const Values& arguments) {
  Ty t = arguments[0].type;
  for (auto& a : arguments) {
    t = common_type(t, a.type);
  }
  if (!t->is_floating()) {
    t = types_.with_scalar(t, Scalar::F32);
  }
  std::string text = std::string(glsl) + "(";
  for (size_t i = 0; i < arguments.size(); ++i) {
    text += (i ? ", " : "") + convert(arguments[i], t).text;
  }
  return plain_value(t, text + ")");
}

Value Translator::float_function(const char* glsl, const Values& arguments) {
  return rounded(exact_function(glsl, arguments));
}

// The type of the first `n` arguments, if it is one, else their common type.
Ty Translator::overload_type(const Values& arguments, size_t n) {
  Ty t = load(arguments[0]).type;
  for (size_t i = 1; i < n; ++i) {
    Ty other = load(arguments[i]).type;
    t = t == other ? t : common_type(t, other);
  }
  return t;
}

Value Translator::number_function(
    const std::string& name,
    const char* real,
    Values& arguments) {
  // Chooses the overload for a type; for several types, C++'s choice.
  Ty own = overload_type(arguments, arguments.size());
  if (own->is_floating()) {
    return float_function(real, arguments);
  }
  Ty t = own;
  if (t->scalar < Scalar::I32) { // GLSL's are of 32 bits and more
    bool is_signed = info_of(t->scalar).is_signed;
    t = types_.with_scalar(t, is_signed ? Scalar::I32 : Scalar::U32);
  }
  auto back = [&](const Value& v) { return convert(v, own); };
  std::vector<std::string> x;
  bool constant = t->is_scalar();
  for (auto& a : arguments) {
    a = convert(a, t);
    x.push_back(a.text);
    constant = constant && a.constant;
  }
  if (name == "abs") {
    if (!info_of(t->scalar).is_signed) {
      return back(arguments[0]);
    }
    // glslang folds abs() of a 64-bit constant to the constant itself.
    const char* f = info_of(t->scalar).size == 8 ? "msl_abs(" : "abs(";
    return back(plain_value(t, f + x[0] + ")"));
  }
  if (constant && (name == "min" || name == "max")) {
    auto less =
        fold("<", arguments[0], arguments[1], types_.scalar(Scalar::Bool));
    return back(arguments[(less->integer() != 0) == (name == "min") ? 0 : 1]);
  }
  if (name == "clamp") {
    return back(
        plain_value(t, "min(max(" + x[0] + ", " + x[1] + "), " + x[2] + ")"));
  }
  std::string f = name.substr(0, 3);
  if (name == "median3") {
    return back(plain_value(
        t,
        "max(min(" + x[0] + ", " + x[1] + "), min(max(" + x[0] + ", " + x[1] +
            "), " + x[2] + "))"));
  }
  std::string text = f + "(" + x[0] + ", " + x[1] + ")";
  return back(plain_value(
      t, x.size() == 3 ? f + "(" + text + ", " + x[2] + ")" : text));
}

Value Translator::select(Values& x) {
  Value a = load(x[0]), b = load(x[1]), c = load(x[2]);
  if (c.type->is_scalar()) {
    return chosen(convert(c, types_.scalar(Scalar::Bool)), b, a);
  }
  Ty t = common_type(a.type, b.type);
  if (!c.type->is_vector() || !t->is_vector()) {
    fail("select() takes a bool, or as many as there are components.");
  }
  if (c.type->scalar != Scalar::Bool) { // by the sign bit
    Value zero = convert(integer(0), c.type);
    c = comparison("<", c, zero);
  }
  return plain_value(
      t,
      "mix(" + convert(a, t).text + ", " + convert(b, t).text + ", " + c.text +
          ")");
}

} // namespace msl
