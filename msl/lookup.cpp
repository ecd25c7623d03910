// Names: scopes, what the header and the kernel declare, constants of MSL.
#include <cfloat>
#include <climits>
#include <cmath>

#include "msl/names.h"
#include "msl/translator.h"

namespace msl {

namespace {

struct NamedReal {
  std::string_view name;
  double value;
  bool half = false;
};
constexpr NamedReal reals[] = {
    {"INFINITY", HUGE_VAL},
    {"HUGE_VALF", HUGE_VAL},
    {"HUGE_VALH", HUGE_VAL, true},
    {"MAXFLOAT", FLT_MAX},
    {"FLT_MAX", FLT_MAX},
    {"FLT_MIN", FLT_MIN},
    {"FLT_EPSILON", FLT_EPSILON},
    {"MAXHALF", 65504.0, true},
    {"HALF_MAX", 65504.0, true},
    {"HALF_MIN", 0.00006103515625, true},
    {"HALF_EPSILON", 0.0009765625, true},
    {"M_E_F", 2.71828182845904523536},
    {"M_LOG2E_F", 1.44269504088896340736},
    {"M_LOG10E_F", 0.43429448190325182765},
    {"M_LN2_F", 0.69314718055994530942},
    {"M_LN10_F", 2.30258509299404568402},
    {"M_PI_F", 3.14159265358979323846},
    {"M_PI_2_F", 1.57079632679489661923},
    {"M_PI_4_F", 0.78539816339744830962},
    {"M_1_PI_F", 0.31830988618379067154},
    {"M_2_PI_F", 0.63661977236758134308},
    {"M_2_SQRTPI_F", 1.12837916709551257390},
    {"M_SQRT2_F", 1.41421356237309504880},
    {"M_SQRT1_2_F", 0.70710678118654752440},
    {"M_PI_H", 3.14159265358979323846, true},
};

struct NamedInteger {
  std::string_view name;
  int64_t value;
  Scalar scalar;
};
constexpr NamedInteger integers[] = {
    {"CHAR_BIT", 8, Scalar::I32},
    {"CHAR_MAX", SCHAR_MAX, Scalar::I32},
    {"CHAR_MIN", SCHAR_MIN, Scalar::I32},
    {"SCHAR_MAX", SCHAR_MAX, Scalar::I32},
    {"SCHAR_MIN", SCHAR_MIN, Scalar::I32},
    {"UCHAR_MAX", UCHAR_MAX, Scalar::I32},
    {"SHRT_MAX", SHRT_MAX, Scalar::I32},
    {"SHRT_MIN", SHRT_MIN, Scalar::I32},
    {"USHRT_MAX", USHRT_MAX, Scalar::I32},
    {"INT_MAX", INT32_MAX, Scalar::I32},
    {"INT_MIN", INT32_MIN, Scalar::I32},
    {"INT32_MAX", INT32_MAX, Scalar::I32},
    {"INT32_MIN", INT32_MIN, Scalar::I32},
    {"UINT_MAX", UINT32_MAX, Scalar::U32},
    {"UINT32_MAX", UINT32_MAX, Scalar::U32},
    {"LONG_MAX", INT64_MAX, Scalar::I64},
    {"LONG_MIN", INT64_MIN, Scalar::I64},
    {"INT64_MAX", INT64_MAX, Scalar::I64},
    {"INT64_MIN", INT64_MIN, Scalar::I64},
    {"ULONG_MAX", -1, Scalar::U64},
    {"UINT64_MAX", -1, Scalar::U64},
    // Constants that MLX defines before a kernel.
    {"SIMD_SIZE", 32, Scalar::I32},
    {"QUAD_SIZE", 4, Scalar::I32},
};

// Attributes of a thread that a kernel may use, as MLX declares them: of the
// grid, of the place in a threadgroup, and of the place in a SIMD-group.
constexpr std::string_view grid_vectors =
    "thread_position_in_grid threads_per_grid grid_size grid_origin";
constexpr std::string_view group_vectors =
    "thread_position_in_threadgroup threadgroup_position_in_grid "
    "threads_per_threadgroup threadgroups_per_grid "
    "dispatch_threads_per_threadgroup";
constexpr std::string_view grid_numbers =
    "threads_per_simdgroup thread_execution_width";
constexpr std::string_view group_numbers =
    "thread_index_in_threadgroup dispatch_threads_per_simdgroup";
constexpr std::string_view simd_numbers =
    "thread_index_in_simdgroup simdgroup_index_in_threadgroup "
    "simdgroups_per_threadgroup dispatch_simdgroups_per_threadgroup "
    "thread_index_in_quadgroup quadgroup_index_in_threadgroup "
    "quadgroups_per_threadgroup";

} // namespace

Scope* Translator::new_scope(Scope* parent) {
  auto& s = scopes_.emplace_back();
  s.parent = parent;
  s.function = writing_ ? writing_->id : 0;
  return &s;
}

Symbol* Translator::find(Scope* scope, const std::string& name, Scope** where) {
  for (; scope; scope = scope->parent) {
    auto it = scope->names.find(name);
    if (it != scope->names.end()) {
      if (where) {
        *where = scope;
      }
      return &it->second;
    }
  }
  return nullptr;
}

Symbol* Translator::find(const std::string& name) {
  return find(scope_, name, nullptr);
}

// Looks up A::b::c: structs and types, and at last a name in them.
Symbol* Translator::find_qualified(const std::string& name, Scope** where) {
  if (Symbol* whole = find(scope_, name, where)) { // an enumerator, E::a
    return whole;
  }
  size_t at = name.rfind("::");
  if (at == name.npos) {
    return nullptr;
  }
  Type outer;
  outer.place = here_;
  outer.name = name.substr(0, at);
  if (!find_qualified(outer.name, where)) { // a namespace: names are global
    return find(scope_, name.substr(at + 2), where);
  }
  Ty t = base_type(outer);
  Symbol* own = member_of(t, name.substr(at + 2));
  if (t->is_struct()) {
    *where = t->record->scope;
  }
  return own;
}

void Translator::declare(Scope& scope, const Declaration& d) {
  using Kind = Declaration::Kind;
  if (d.kind == Kind::StaticAssert) {
    Value v = rvalue(*d.constant.value);
    if (v.constant && v.integer() == 0) {
      fail_at(d.place, "static_assert: {}", d.name);
    }
    return;
  }
  auto& s = scope.names[d.name];
  s.scope = &scope;
  switch (d.kind) {
    case Kind::Function:
      s.kind = Symbol::Kind::Functions;
      s.declared.push_back(&d);
      break;
    case Kind::Struct:
    case Kind::Using:
      s.kind = Symbol::Kind::Template;
      s.declared.push_back(&d);
      break;
    default:
      s.kind = Symbol::Kind::Lazy;
      s.lazy = &d.constant;
  }
}

void Translator::declare_header(const Unit& unit) {
  for (auto& d : unit.declarations) {
    declare(global_, d);
  }
}

void Translator::declare_templates() {
  for (auto& t : source_.templates) {
    Symbol s;
    if (auto* type = std::get_if<std::string>(&t.value)) {
      s.kind = Symbol::Kind::Type;
      s.type = types_.named(*type);
      if (!s.type) {
        fail_at(Place{}, "the template argument `{}` is not a type.", t.name);
      }
      scope_->names[t.name] = s;
      continue;
    }
    auto* flag = std::get_if<bool>(&t.value);
    Value v = flag ? boolean(*flag) : integer(std::get<int64_t>(t.value));
    auto* named = variable(t.name, v.type, Space::Constant);
    named->function = 0;
    globals_.push_back({0, "", " = " + v.text + ";", named, "const "});
    s.value = v;
    s.value.text = mark(*named);
    s.value.prec = Prec::Atom;
    scope_->names[t.name] = s;
  }
}

void Translator::declare_arguments() {
  for (size_t i = 0; i < source_.arguments.size(); ++i) {
    Symbol s;
    s.kind = Symbol::Kind::Argument;
    s.argument = i + 1;
    scope_->names[source_.arguments[i].name] = s;
  }
  Symbol attribute;
  attribute.kind = Symbol::Kind::Argument;
  for (auto list :
       {grid_vectors,
        group_vectors,
        grid_numbers,
        group_numbers,
        simd_numbers}) {
    for (auto name : words_of(list)) {
      scope_->names.emplace(name, attribute);
    }
  }
}

Value Translator::argument_value(Symbol& s, size_t index) {
  auto& a = source_.arguments[index];
  Ty item = types_.named(a.type);
  if (!item) {
    fail_at(
        Place{}, "the argument `{}` has the unknown type {}", a.name, a.type);
  }
  if (a.atomic) {
    item = types_.scalar(item->scalar, true);
  }
  std::string from = "A.a" + std::to_string(index);
  Space space = a.constant ? Space::Constant : Space::Device;
  Variable* v = nullptr;
  if (a.reference) {
    v = variable(a.name, item, Space::Thread);
    from = "load(Ptr_" + memory_name(item) + "(" + from + "), 0)";
  } else {
    v = variable(a.name, types_.pointer(item, space), Space::Thread);
  }
  v->function = 1;
  v->read_only = !a.output;
  prologue_.push_back({1, "", " = " + from + ";", v, ""});
  s.kind = Symbol::Kind::Value;
  s.value = of_variable(v);
  return s.value;
}

Value Translator::attribute_value(Symbol& s, const std::string& name) {
  bool simd = has_word(simd_numbers, name);
  bool vector = has_word(grid_vectors, name) || has_word(group_vectors, name);
  uses_simd_ = uses_simd_ || simd;
  independent_ = independent_ && !simd && !has_word(group_vectors, name) &&
      !has_word(group_numbers, name);
  auto* v =
      variable(name, types_.vector(Scalar::U32, vector ? 3 : 1), Space::Thread);
  v->function = 1;
  prologue_.push_back({1, "", " = msl_" + name + "();", v, ""});
  s.kind = Symbol::Kind::Value;
  s.value = of_variable(v);
  return s.value;
}

// A constant of the header, or a static one of a struct, at its first use.
Value Translator::lazy_value(Symbol& s, const std::string& name) {
  if (s.busy) {
    fail("the constant `{}` depends on itself.", name);
  }
  s.busy = true;
  const Declarator& d = *s.lazy;
  Value v;
  Ty type = nullptr;
  auto lines = captured([&] {
    Temporarily inner(scope_, s.scope);
    if (!d.value) {
      fail_at(d.place, "the constant `{}` has no value.", name);
    }
    type = d.type.name == "auto" ? load(eval(*d.value)).type : declared_type(d);
    v = initial(type, *d.value);
  });
  s.busy = false;
  if (!lines.empty()) {
    fail_at(d.place, "the constant `{}` must be a constant expression.", name);
  }
  if (!v.constant) {
    auto* named = variable(name, type, Space::Thread);
    named->function = 0;
    globals_.push_back({0, "", " = " + v.text + ";", named, "const "});
    v = of_variable(named);
    v.home = Value::Home::None;
  }
  s.kind = Symbol::Kind::Value;
  s.value = v;
  return v;
}

// Makes a variable of another function, used by a lambda, a global.
Value Translator::symbol_value(Symbol& s, const std::string& name) {
  using Kind = Symbol::Kind;
  if (s.kind == Kind::Lazy) {
    return lazy_value(s, name);
  }
  if (s.kind == Kind::Argument) {
    s.argument ? argument_value(s, s.argument - 1) : attribute_value(s, name);
  }
  if (s.kind != Kind::Value) {
    fail("`{}` is not a value; call it, in a lambda if need be.", name);
  }
  Value v = s.value;
  if (v.variable) {
    auto kept = v.constant;
    bool other = v.variable->function != 0 &&
        v.variable->function != writing_->id && !v.variable->global;
    if (kept && other) { // a constant needs no variable there
      return literal(v.type, *kept);
    }
    auto home = v.home;
    bool read_only = v.read_only;
    v = of_variable(v.variable);
    v.constant = kept;
    v.home = home;
    v.read_only = v.read_only || read_only;
  }
  share(v.text);
  share(v.index);
  if (v.base) {
    share(mark(*v.base->variable) + v.base->path);
  }
  return v;
}

// Variables named in `text` are seen from the function that is written.
void Translator::share(const std::string& text) {
  for (size_t at = text.find('\x01'); at != text.npos;
       at = text.find('\x01', at + 1)) {
    auto& v = variables_[std::stoul(text.substr(at + 1)) - 1];
    if (v.function != 0 && v.function != writing_->id) {
      make_global(&v);
    }
  }
}

std::optional<Value> Translator::named_constant(const Expr& e) {
  for (auto& r : reals) {
    if (r.name == e.text) {
      return literal(
          types_.scalar(r.half ? Scalar::F16 : Scalar::F32), r.value);
    }
  }
  for (auto& i : integers) {
    if (i.name == e.text) {
      return integer(i.value, i.scalar);
    }
  }
  if (e.text == "NAN") {
    return literal(types_.scalar(Scalar::F32), double(NAN));
  }
  if (e.text == "nullptr" || e.text == "NULL") {
    return integer(0);
  }
  bool flag = e.text.starts_with("mem_flags::") ||
      e.text.starts_with("memory_order") || e.text.starts_with("thread_scope");
  if (flag) {
    return plain_value(types_.flags(), e.text);
  }
  return {};
}

// numeric_limits<T>::what() and MLX's Limits<T>::what.
std::optional<Value> Translator::limit(const Expr& e) {
  if (!e.type || e.type->arguments.size() != 1 ||
      (e.type->name != "numeric_limits" && e.type->name != "Limits") ||
      find(e.type->name)) {
    return {};
  }
  Ty t = argument_type(e.type->arguments[0]);
  std::string member = last_name(e.text);
  if (!t->is_scalar()) {
    fail("there are no limits of `{}`.", t);
  }
  bool mlx = e.type->name == "Limits";
  auto& i = info_of(t->scalar);
  int bits = 8 * i.size;
  if (!i.floating) {
    bool is_bool = t->scalar == Scalar::Bool;
    int64_t max = is_bool ? 1
        : i.is_signed ? static_cast<int64_t>((uint64_t(1) << (bits - 1)) - 1)
        : bits == 64  ? -1
                      : static_cast<int64_t>((uint64_t(1) << bits) - 1);
    bool is_max = member == "max" || member == "finite_max";
    bool is_min =
        member == "min" || member == "lowest" || member == "finite_min";
    if (member == "digits") {
      return integer(is_bool ? 1 : bits - i.is_signed);
    }
    if (is_max || is_min) {
      return literal(t, is_max ? max : i.is_signed ? -max - 1 : int64_t(0));
    }
  } else {
    bool f16 = t->scalar == Scalar::F16, bf16 = t->scalar == Scalar::BF16;
    double max = f16 ? 65504.0 : bf16 ? 3.38953138925153547590e38 : FLT_MAX;
    double min = f16 ? 0.00006103515625 : FLT_MIN;
    double inf = HUGE_VAL;
    if (member == "max" || member == "finite_max") {
      return literal(t, mlx && member == "max" ? inf : max);
    }
    if (member == "lowest" || member == "finite_min" ||
        (mlx && member == "min")) {
      return literal(t, mlx && member == "min" ? -inf : -max);
    }
    if (member == "min" || member == "denorm_min") {
      return literal(t, min);
    }
    if (member == "infinity") {
      return literal(t, inf);
    }
    if (member == "quiet_NaN" || member == "signaling_NaN") {
      return literal(t, double(NAN));
    }
    if (member == "epsilon") {
      return literal(t, f16 ? 0.0009765625 : bf16 ? 0.0078125 : FLT_EPSILON);
    }
  }
  fail("`{}` is not a limit that is known.", e.text);
}

Value Translator::name_value(const Expr& e) {
  if (auto v = limit(e)) {
    return *v;
  }
  if (e.type) { // Foo<T>::name
    Ty t = type_of(*e.type);
    std::string name = last_name(e.text);
    if (Symbol* s = member_of(t, name)) {
      return symbol_value(*s, name);
    }
    fail("`{}` has no constant `{}`.", t, name);
  }
  if (e.text.find("::") != e.text.npos) {
    Scope* where = nullptr;
    if (Symbol* s = find_qualified(e.text, &where)) {
      return symbol_value(*s, e.text);
    }
  }
  for (Scope* at = scope_; at; at = at->parent) {
    auto it = at->names.find(e.text);
    if (it != at->names.end()) {
      return symbol_value(it->second, e.text);
    }
    if (at->record && at->self.type) { // of the object whose method this is
      for (auto& f : at->record->fields) {
        if (f.name == e.text) {
          return field_of(at->self, f);
        }
      }
    }
  }
  if (auto v = named_constant(e)) {
    return *v;
  }
  fail(
      "`{}` is not known: neither the header, nor the kernel's arguments and "
      "template arguments, nor this translator have it; declare it.",
      e.text);
}

} // namespace msl
