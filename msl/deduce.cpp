// Template arguments of a call: given, deduced, or by default.
#include "msl/translator.h"

namespace msl {

namespace {

using SK = Symbol::Kind;

const TemplateParameter*
parameter_named(const Declaration& d, const std::string& name, bool is_type) {
  for (auto& p : d.parameters) {
    if (p.name == name && p.is_type == is_type) {
      return &p;
    }
  }
  return nullptr;
}

} // namespace

bool Translator::deduce_argument(
    const TemplateArgument& a,
    const TypeOrNumber& given,
    const Declaration& d,
    Scope& to) {
  Temporarily inner(scope_, &to);
  bool ok = false;
  bool valid = attempt([&] {
    auto* type = std::get_if<Ty>(&given);
    if (type && a.type) {
      ok = deduce(*a.type, *type, d, to) && type_of(*a.type) == *type;
    } else if (!type && a.value) {
      auto number = std::get<int64_t>(given);
      bool named = a.value->kind == Expr::Kind::Name;
      auto* p = named ? parameter_named(d, a.value->text, false) : nullptr;
      if (p && !to.names.contains(p->name)) {
        Ty t = p->type.name == "auto" ? types_.scalar(Scalar::I32)
                                      : type_of(p->type);
        to.names[p->name].value = literal(t, number);
        ok = true;
      } else {
        Value v = rvalue(*a.value);
        ok = v.constant && v.integer() == number;
      }
    }
  });
  return ok && valid;
}

// Binds the template parameters that the type of a parameter names; false if
// `given` cannot be of that form.
bool Translator::deduce(
    const Type& t,
    Ty given,
    const Declaration& d,
    Scope& to) {
  if (t.pointers) {
    bool array = given->is_array();
    if (!array && !given->is_pointer()) {
      return true; // a conversion may do
    }
    given = given->element;
  }
  if (t.arguments.empty()) {
    auto* p = parameter_named(d, t.name, true);
    if (!p) {
      return true;
    }
    if (given->is_array() && !t.reference) {
      given = types_.pointer(given->element, Space::Thread);
    }
    if (given->is_scalar() && given->atomic) {
      given = types_.scalar(given->scalar);
    }
    auto& s = to.names[t.name];
    if (static_cast<size_t>(p - d.parameters.data()) < explicit_) {
      return true; // given; the argument is converted
    }
    if (s.type) {
      return s.type == given;
    }
    s.kind = SK::Type;
    s.type = given;
    return true;
  }
  auto& a = t.arguments;
  if (t.name == "vec" && a.size() == 2) {
    return given->is_vector() &&
        deduce_argument(a[0], types_.scalar(given->scalar), d, to) &&
        deduce_argument(a[1], int64_t(given->width), d, to);
  }
  if (t.name == "array" && a.size() == 2) {
    return given->is_array() && deduce_argument(a[0], given->element, d, to) &&
        deduce_argument(a[1], given->count, d, to);
  }
  if ((t.name == "atomic" || t.name == "_atomic") && a.size() == 1) {
    return given->is_scalar() &&
        deduce_argument(a[0], types_.scalar(given->scalar), d, to);
  }
  if (!given->is_struct() || given->record->declared->name != t.name) {
    return false;
  }
  auto& of = given->record->declared->parameters;
  for (size_t i = 0; i < a.size() && i < of.size(); ++i) {
    auto& s = given->record->scope->names[of[i].name];
    TypeOrNumber its = s.type;
    if (!of[i].is_type) {
      its = s.value.integer();
    }
    if (!deduce_argument(a[i], its, d, to)) {
      return false;
    }
  }
  return true;
}

// Template arguments of a call: given, deduced, or by default.
bool Translator::bind_call(
    const Declaration& d,
    Scope& to,
    const TemplateArguments& explicit_arguments,
    const Values& arguments,
    std::string& key) {
  if (d.specialization) {
    return true; // no parameters are left
  }
  if (explicit_arguments.size() > d.parameters.size()) {
    return false;
  }
  for (size_t i = 0; i < explicit_arguments.size(); ++i) {
    bind_one(to, d.parameters[i], explicit_arguments[i], key);
  }
  explicit_ = explicit_arguments.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto& declarator = d.takes[i].declarator;
    Ty given = arguments[i].type;
    for (auto& extent : declarator.extents) {
      if (!given->is_array() && !given->is_pointer()) {
        return false;
      }
      bool named = extent && extent->kind == Expr::Kind::Name;
      auto* p = named ? parameter_named(d, extent->text, false) : nullptr;
      if (p && given->is_array() && !to.names.contains(p->name)) {
        to.names[p->name].value = integer(given->count);
      }
      given = given->element;
    }
    if (!deduce(declarator.type, given, d, to)) {
      return false;
    }
  }
  return !bind_defaults(d, to, key);
}

// Gives parameters without an argument their defaults, which may use earlier
// parameters. Returns the first parameter without one; null if all are bound.
const TemplateParameter*
Translator::bind_defaults(const Declaration& d, Scope& to, std::string& key) {
  Temporarily inner(scope_, &to);
  for (auto& p : d.parameters) {
    auto& s = to.names[p.name];
    if (p.is_type && !s.type && p.default_type) {
      s.kind = SK::Type;
      s.type = type_of(*p.default_type);
    } else if (!p.is_type && !s.value.type && p.default_value) {
      s.value = convert(rvalue(*p.default_value), type_of(p.type));
    }
    if (p.is_type ? !s.type : !s.value.type) {
      return &p;
    }
    key += "," + (p.is_type ? identity(s.type) : s.value.text);
  }
  return nullptr;
}

} // namespace msl
