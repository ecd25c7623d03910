// Which function a call means: lookup, deduction, overloads.
#include "msl/names.h"
#include "msl/translator.h"

namespace msl {

namespace {

using Home = Value::Home;
using SK = Symbol::Kind;

// The field that a method `T& f() { return field; }` returns as a reference.
const Expr* named_place(const Candidate& c) {
  bool fits = c.result->reference && c.parameters->empty() && c.body &&
      c.body->statements.size() == 1 &&
      c.body->statements[0]->kind == Stmt::Kind::Return;
  return fits ? c.body->statements[0]->expr.get() : nullptr;
}

} // namespace

Values Translator::arguments_of(const Expr& e) {
  Values all;
  for (size_t i = 1; i < e.children.size(); ++i) {
    if (e.children[i]->kind == Expr::Kind::List) {
      fail_at(
          e.children[i]->place,
          "a list in braces as an argument needs its type: T{...}.");
    }
    all.push_back(eval(*e.children[i]));
  }
  return all;
}

// T(x) and vec<T, 4>(x), if only scopes tell that the name is a type.
std::optional<Value> Translator::call_type(const Expr& callee, const Expr& e) {
  Ty to = nullptr;
  Scope* where = nullptr;
  if (callee.type) {
    return {};
  }
  Symbol* s = find_qualified(callee.text, &where);
  if (s && s->kind == SK::Type) {
    to = s->type;
  } else if (s && s->kind == SK::Template) {
    to = template_type(callee.text, callee.arguments);
  } else if (
      !s && !callee.arguments.empty() &&
      (callee.text == "vec" || callee.text == "array")) {
    to = template_type(callee.text, callee.arguments);
  } else if (!s) {
    to = types_.named(callee.text);
  }
  if (!to) {
    return {};
  }
  if (to->is_struct()) {
    return make_struct(to, items_of(e, 1));
  }
  if (e.children.size() == 2 && e.children[1]->kind == Expr::Kind::List) {
    return list_value(to, *e.children[1]);
  }
  return construct(to, arguments_of(e));
}

Value Translator::call(const Expr& e) {
  const Expr& callee = *e.children[0];
  if (callee.kind == Expr::Kind::Member) {
    return call_member(callee, e);
  }
  if (callee.kind != Expr::Kind::Name) {
    auto arguments = arguments_of(e);
    return call_closure(load(eval(callee)), arguments);
  }
  if (auto v = limit(callee)) {
    return *v;
  }
  if (callee.text == "as_type" && callee.arguments.size() == 1 &&
      e.children.size() == 2) {
    Ty to = argument_type(callee.arguments[0]);
    return as_type(rvalue(*e.children[1]), to);
  }
  if (auto v = call_type(callee, e)) {
    return *v;
  }
  bool discarded = std::exchange(discarding_, false);
  auto arguments = arguments_of(e);
  discarding_ = discarded;
  auto v = call_named(callee, arguments, e);
  discarding_ = false;
  if (v) {
    return *v;
  }
  no_function(callee.text, arguments);
}

// Says what functions of that name take.
void Translator::no_function(const std::string& name, const Values& given) {
  std::string types;
  for (auto& a : given) {
    types += (types.empty() ? "" : ", ") + msl_name(a.type);
  }
  std::string known;
  Symbol* s = find(last_name(name));
  if (s && s->kind == SK::Functions) {
    size_t n = s->declared[0]->takes.size();
    known = n == given.size()
        ? "; that of the header takes other types: convert the arguments, or "
          "give its template arguments"
        : fmt("; that of the header takes another number of arguments: {}", n);
  } else if (int n = builtin_arity(last_name(name))) {
    known = fmt("; MSL's takes {} numbers or vectors", n);
  } else {
    known =
        ", neither in the header nor among those of MSL that are supported; "
        "write it into the header";
  }
  fail("there is no function `{}({})` here{}.", name, types, known);
}

std::optional<Value>
Translator::call_named(const Expr& callee, Values& arguments, const Expr& e) {
  auto attempt = [&](Symbol& s, Scope* scope, const Value* self) {
    return try_functions(s, scope, callee.arguments, arguments, self);
  };
  if (callee.type) { // Foo<T>::f(x)
    Ty t = type_of(*callee.type);
    Symbol* s = member_of(t, last_name(callee.text));
    return s ? attempt(*s, t->record->scope, nullptr) : std::nullopt;
  }
  if (callee.text.find("::") != callee.text.npos) {
    Scope* where = nullptr;
    Symbol* s = find_qualified(callee.text, &where);
    if (s && s->kind == SK::Functions) {
      if (auto v = attempt(*s, where, nullptr)) {
        return v;
      }
    }
    return builtin(callee.text, e, arguments);
  }
  const Value* self = nullptr;
  for (Scope* at = scope_; at; at = at->parent) {
    if (!self && at->self.type) {
      self = &at->self;
    }
    auto it = at->names.find(callee.text);
    if (it == at->names.end()) {
      continue;
    }
    if (it->second.kind == SK::Functions) {
      if (auto v = attempt(it->second, at, at->record ? self : nullptr)) {
        return v;
      }
    } else if (it->second.kind == SK::Value || it->second.kind == SK::Lazy) {
      Value f = load(symbol_value(it->second, callee.text));
      return call_closure(f, arguments);
    }
  }
  return builtin(callee.text, e, arguments);
}

Value Translator::call_member(const Expr& callee, const Expr& e) {
  const Expr& of = *callee.children[0];
  Value object;
  bool is_this = of.kind == Expr::Kind::Name && of.text == "this";
  for (Scope* at = scope_; is_this && at && !object.type; at = at->parent) {
    object = at->self;
  }
  if (!object.type) {
    object = eval(of);
    object = callee.arrow ? dereference(object) : object;
  }
  auto arguments = arguments_of(e);
  Symbol* s = member_of(object.type, callee.text);
  if (s && s->kind == SK::Functions) {
    auto* own = object.type->record->scope;
    auto v = try_functions(*s, own, callee.arguments, arguments, &object);
    if (v) {
      return *v;
    }
  }
  if (object.type->is_array() && callee.text == "size") {
    return integer(object.type->count, Scalar::U64);
  }
  fail(
      "`{}` has no method `{}` for these arguments.", object.type, callee.text);
}

int Translator::parameter_cost(
    const Parameter& p,
    Ty type,
    const Value& given) {
  auto& written = p.declarator.type;
  if (!written.reference || written.is_const || type->is_array()) {
    if (type->is_array() && !given.type->is_array()) {
      return -1;
    }
    Ty from = given.type->is_scalar() && given.type->atomic
        ? types_.scalar(given.type->scalar)
        : given.type;
    return conversion_cost(from, type, &given);
  }
  if (given.type != type || !given.is_lvalue()) {
    return -1;
  }
  bool device = given.home == Home::Device;
  bool shared =
      given.base && given.base->space() == Space::Threadgroup && !device;
  switch (written.space) {
    case Space::Device:
    case Space::Constant:
      return device ? 0 : -1;
    case Space::Threadgroup:
      return shared ? 0 : -1;
    default:
      return device || shared ? 1 : 0;
  }
}

// The types of the parameters, and the cost of the conversions to them.
bool Translator::rank(Candidate& c, const Values& arguments) {
  Temporarily inner(scope_, c.scope);
  for (size_t i = 0; i < c.parameters->size(); ++i) {
    auto& declarator = (*c.parameters)[i].declarator;
    bool given = i < arguments.size();
    Ty type = nullptr;
    if (declarator.type.name == "auto" && given) {
      type = arguments[i].type->is_array() && !declarator.type.reference
          ? decayed(arguments[i]).type
          : load(arguments[i]).type;
    } else {
      type = declared_type(declarator);
    }
    if (type->is_array() && !declarator.type.reference) { // T x[4] is T* x
      type = types_.pointer(type->element, declarator.type.space);
    }
    bool table = given && type->is_pointer() &&
        type->space == Space::Constant && arguments[i].base &&
        arguments[i].home != Home::Device && !(arguments[i].type->is_address());
    if (table) { // a constant array of the header, which has no address
      type = types_.pointer(type->element, Space::Thread);
    }
    c.takes.push_back(type);
    int cost =
        given ? parameter_cost((*c.parameters)[i], type, arguments[i]) : 0;
    if (cost < 0) {
      return false;
    }
    c.cost += 4 * cost;
  }
  return true;
}

std::optional<Candidate> Translator::viable(
    const Declaration& d,
    Scope* scope,
    const TemplateArguments& explicit_arguments,
    const Values& arguments) {
  size_t n = arguments.size();
  if (n > d.takes.size() || !d.body) {
    return {};
  }
  for (size_t i = n; i < d.takes.size(); ++i) {
    if (!d.takes[i].declarator.value) {
      return {};
    }
  }
  Candidate c;
  c.declared = &d;
  c.name = d.name;
  c.parameters = &d.takes;
  c.result = &d.result;
  c.body = d.body.get();
  c.scope = new_scope(scope);
  // Overloads in structs of one template differ by their struct.
  c.key = identity(&d) + "@" + identity(scope);
  bool fits = true;
  bool valid = attempt([&] {
    fits = bind_call(d, *c.scope, explicit_arguments, arguments, c.key) &&
        rank(c, arguments);
  });
  if (!valid || !fits) { // no such types for these arguments
    return {};
  }
  for (size_t i = 0; d.specialization && i < explicit_arguments.size() &&
       i < d.specialized.size();
       ++i) {
    auto given = argument_of(explicit_arguments[i]);
    if (!deduce_argument(d.specialized[i], given, d, *c.scope)) {
      return {};
    }
  }
  c.cost += d.specialization ? 1 : d.parameters.empty() ? 0 : 2;
  return c;
}

std::optional<Value> Translator::try_functions(
    Symbol& s,
    Scope* scope,
    const TemplateArguments& explicit_arguments,
    Values& arguments,
    const Value* self) {
  std::optional<Candidate> best;
  for (auto* d : s.declared) {
    auto c = viable(*d, scope, explicit_arguments, arguments);
    if (c && (!best || c->cost < best->cost)) {
      best = std::move(c);
    }
  }
  if (!best) {
    return {};
  }
  bool needs_self = !best->declared->is_static && scope->record &&
      best->declared->name != scope->record->declared->name;
  if (const Expr* place_of = named_place(*best); place_of && self) {
    Scope& own = *new_scope(best->scope);
    own.record = scope->record;
    own.self = *self;
    Temporarily inner(scope_, &own);
    return eval(*place_of);
  }
  return instantiate(*best, arguments, needs_self ? self : nullptr);
}

Value Translator::call_closure(const Value& closure, Values& arguments) {
  if (closure.type->kind != TypeData::Kind::Closure) {
    fail("`{}` cannot be called.", closure.type);
  }
  const Expr& l = *closure.type->closure->lambda;
  if (l.parameters.size() != arguments.size() || !l.body) {
    fail("the lambda takes {} arguments.", l.parameters.size());
  }
  Candidate c;
  c.name = "lambda";
  c.parameters = &l.parameters;
  c.body = l.body.get();
  c.result = l.type.get();
  c.scope = new_scope(closure.type->closure->scope);
  c.key = "lambda" + std::to_string(closure.type->closure->id);
  for (size_t i = 0; i < arguments.size(); ++i) {
    Temporarily inner(scope_, c.scope);
    auto& declarator = l.parameters[i].declarator;
    c.takes.push_back(
        declarator.type.name == "auto" ? decayed(load(arguments[i])).type
                                       : declared_type(declarator));
  }
  return instantiate(c, arguments, nullptr);
}

} // namespace msl
