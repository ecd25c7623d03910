// From types as written to types: names, templates, extents.

#include "msl/names.h"
#include "msl/translator.h"

namespace msl {

namespace {

constexpr int64_t most_items = 1 << 24; // of an array; more is a mistake

} // namespace

Ty Translator::type_of(const Type& t) {
  Temporarily here(here_, t.place);
  Ty type = base_type(t);
  if (t.pointers > 1) {
    fail(
        "pointers to pointers are not supported; use an index, or an array of "
        "pointers.");
  }
  return t.pointers ? types_.pointer(type, t.space) : type;
}

Ty Translator::base_type(const Type& t) {
  if (t.name == "decltype" && t.of) {
    return type_without_effects(*t.of);
  }
  if (t.name == "auto") {
    fail("`auto` cannot be deduced here.");
  }
  if (t.scope) { // Foo<T>::type
    Ty outer = type_of(*t.scope);
    std::string name = last_name(t.name);
    if (outer->is_struct() && outer->record->scope->names.contains(name)) {
      Temporarily inner(scope_, outer->record->scope);
      Symbol& s = outer->record->scope->names[name];
      return s.kind == Symbol::Kind::Type ? s.type
                                          : template_type(name, t.arguments);
    }
    fail("`{}` has no type `{}`.", outer, name);
  }
  if (!t.arguments.empty()) {
    return template_type(t.name, t.arguments);
  }
  Scope* where = nullptr;
  Symbol* s = find_qualified(t.name, &where);
  if (s && s->kind == Symbol::Kind::Type) {
    return s->type;
  }
  if (s && s->kind == Symbol::Kind::Template) {
    return template_type(t.name, t.arguments);
  }
  if (Ty known = types_.named(t.name)) {
    return known;
  }
  if (t.name == "double") {
    fail("`double` is no type of Metal; use float.");
  }
  fail(
      "the type `{}` is not known; scalars, vectors, structs of the header and "
      "template parameters are.",
      t.name);
}

Ty Translator::template_type(
    const std::string& name,
    const TemplateArguments& a) {
  if (name == "vec" && a.size() == 2) {
    Ty of = argument_type(a[0]);
    int64_t n = argument_constant(a[1]).integer();
    if (!of->is_scalar() || n < 1 || n > 4) {
      fail("vec<T, N> takes a scalar type and 1 to 4.");
    }
    return types_.vector(of->scalar, static_cast<int>(n));
  }
  if ((name == "atomic" || name == "_atomic") && a.size() == 1) {
    Ty of = argument_type(a[0]);
    bool known = of->is_scalar() &&
        (of->scalar >= Scalar::I32 || of->scalar == Scalar::Bool) &&
        !of->is_narrow_float();
    if (!known) {
      fail(
          "atomic<{}> is not supported; int, uint, ulong, bool and float are.",
          of);
    }
    return types_.scalar(of->scalar, true);
  }
  Scope* where = nullptr;
  Symbol* s = find(scope_, name, &where);
  if (name == "array" && a.size() == 2 && !s) {
    int64_t n = argument_constant(a[1]).integer();
    if (n < 1 || n > most_items) {
      fail("an array of {} items.", n);
    }
    return types_.array(argument_type(a[0]), n);
  }
  if (!s || s->kind != Symbol::Kind::Template) {
    fail("the template `{}` is not known.", name);
  }
  const Declaration* primary = nullptr;
  for (auto* d : s->declared) {
    if (!d->specialization && d->specialized.empty()) {
      primary = d;
    }
  }
  if (Ty special = specialized_type(*s, a, where)) {
    return special;
  }
  if (!primary) {
    fail("the template `{}` is only specialized.", name);
  }
  if (primary->kind == Declaration::Kind::Struct) {
    return struct_type(*primary, a, where);
  }
  std::string key;
  Scope* own = bind(*primary, a, where, key);
  Temporarily inner(scope_, own);
  return type_of(primary->result);
}

// The specialization for these arguments; the one with the fewest parameters of
// its own, if there are several.
Ty Translator::specialized_type(
    const Symbol& s,
    const TemplateArguments& a,
    Scope* where) {
  const Declaration* chosen = nullptr;
  Scope* chosen_scope = nullptr;
  for (auto* d : s.declared) {
    if (!d->specialization && d->specialized.empty()) {
      continue;
    }
    Scope* own = new_scope(where);
    bool matches = d->specialized.size() <= a.size();
    for (size_t i = 0; matches && i < d->specialized.size(); ++i) {
      matches = deduce_argument(d->specialized[i], argument_of(a[i]), *d, *own);
    }
    if (matches &&
        (!chosen || d->parameters.size() < chosen->parameters.size())) {
      chosen = d;
      chosen_scope = own;
    }
  }
  // A struct of its own for each set of deduced arguments.
  return chosen ? struct_type(*chosen, {}, chosen_scope) : nullptr;
}

bool Translator::is_type_argument(const TemplateArgument& a) {
  if (!a.type || !a.value) {
    return a.type != nullptr;
  }
  if (a.type->pointers || a.type->name == "decltype") {
    return true;
  }
  Scope* where = nullptr;
  Symbol* s = find_qualified(a.type->name, &where);
  if (s) {
    return s->kind == Symbol::Kind::Type || s->kind == Symbol::Kind::Template;
  }
  return types_.named(a.type->name) != nullptr || a.type->name == "vec";
}

TypeOrNumber Translator::argument_of(const TemplateArgument& a) {
  if (is_type_argument(a)) {
    return argument_type(a);
  }
  return argument_constant(a).integer();
}

Ty Translator::argument_type(const TemplateArgument& a) {
  if (!a.type) {
    fail("a type is expected as template argument.");
  }
  return type_of(*a.type);
}

Value Translator::argument_constant(const TemplateArgument& a) {
  if (!a.value) {
    fail("a value is expected as template argument.");
  }
  Value v = rvalue(*a.value);
  if (!v.constant) {
    fail("a template argument must be known when compiling.");
  }
  return v;
}

int64_t Translator::constant_integer(const Expr& e, const char* name) {
  Temporarily here(here_, e.place);
  Value v = rvalue(e);
  if (!v.constant || !v.type->is_integer()) {
    fail(
        "{} must be an integer constant: a number, a constexpr or a template "
        "argument.",
        name);
  }
  return v.integer();
}

Ty Translator::declared_type(const Declarator& d) {
  return with_extents(type_of(d.type), d, nullptr);
}

Ty Translator::with_extents(Ty t, const Declarator& d, const Value* init) {
  for (size_t i = d.extents.size(); i-- > 0;) {
    int64_t n = 0;
    if (d.extents[i]) {
      n = constant_integer(*d.extents[i], "the size of an array");
    } else if (init && init->type->is_array()) {
      n = init->type->count;
    } else if (d.value && d.value->kind == Expr::Kind::List) {
      n = static_cast<int64_t>(d.value->children.size());
    } else {
      fail_at(d.place, "the size of the array `{}` is missing.", d.name);
    }
    if (n < 1 || n > most_items || flat_count(t) * n > most_items) {
      fail_at(d.place, "the array `{}` would have {} items.", d.name, n);
    }
    t = types_.array(t, n);
  }
  return t;
}

void Translator::bind_one(
    Scope& to,
    const TemplateParameter& p,
    const TemplateArgument& a,
    std::string& key) {
  Symbol s;
  if (p.is_type) {
    s.kind = Symbol::Kind::Type;
    s.type = argument_type(a);
    key += "," + identity(s.type);
  } else {
    Value v = argument_constant(a);
    Temporarily inner(scope_, &to);
    Ty type = p.type.name == "auto" ? v.type : type_of(p.type);
    s.value = convert(v, type);
    key += "," + s.value.text;
  }
  to.names[p.name] = s;
}

Scope* Translator::bind(
    const Declaration& d,
    const TemplateArguments& arguments,
    Scope* scope,
    std::string& key) {
  Scope* own = new_scope(scope);
  if (arguments.size() > d.parameters.size()) {
    fail("`{}` takes fewer template arguments.", d.name);
  }
  for (size_t i = 0; i < d.parameters.size(); ++i) {
    auto& p = d.parameters[i];
    auto deduced = scope->names.find(p.name);
    if (d.specialization && deduced != scope->names.end()) {
      own->names[p.name] = deduced->second;
    } else if (i < arguments.size()) {
      bind_one(*own, p, arguments[i], key);
    }
  }
  if (auto* missing = bind_defaults(d, *own, key)) {
    fail(
        "the template argument `{}` of `{}` is missing.",
        missing->name,
        d.name);
  }
  return own;
}

} // namespace msl
