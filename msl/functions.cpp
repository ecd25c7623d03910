// Functions for given types and memory, written once each; calls of them.
#include "msl/translator.h"

namespace msl {

namespace {

using Home = Value::Home;
using How = Passed::How;

// Limits templates that instantiate themselves without end.
constexpr size_t most_instances = 2000;
constexpr int deepest = 48;

} // namespace

Passed Translator::passing(Ty type, const Type& written, const Value& given) {
  using TK = TypeData::Kind;
  Passed p;
  p.type = type;
  if (type->kind == TK::Closure || type->kind == TK::Flags) {
    p.how = How::Static;
    return p;
  }
  bool offset_zero = given.is_null ||
      (given.type->is_array() ? given.text.empty() || given.text == "0"
                              : given.text == "0");
  if (type->is_pointer() && written.reference && given.is_lvalue() &&
      given.home != Home::Device) {
    p.how = How::InOut;
    return p;
  }
  if (type->is_pointer() || (type->is_array() && given.base)) {
    bool device = type->is_address() || given.home == Home::Device;
    p.reference = type->is_array();
    p.how = device ? How::Value : offset_zero ? How::Static : How::Offset;
    if (device && p.reference) {
      p.how = How::Address;
    }
    return p;
  }
  if (!written.reference) {
    p.how = How::Value;
    return p;
  }
  p.reference = true;
  bool device = given.home == Home::Device;
  bool shared = !device && given.is_lvalue() && given.base &&
      given.base->space() == Space::Threadgroup;
  if (device && (!written.is_const || written.space != Space::None)) {
    p.how = How::Address;
  } else if (shared && !written.is_const) {
    p.how = given.base->single ? How::Static : How::Offset;
  } else {
    p.how = written.is_const || !given.is_lvalue() ? How::Value : How::InOut;
    p.reference = false;
  }
  return p;
}

std::string Translator::passing_key(const Passed& p, const Value& given) {
  std::string key = ";" + std::to_string(static_cast<int>(p.how)) +
      (p.reference ? "r" : "v") + identity(p.type);
  bool offset = p.how == How::Offset || p.how == How::Static;
  if (offset || p.type->is_pointer()) {
    key += "b" + identity(given.base);
  }
  return key;
}

Value Translator::instantiate(
    const Candidate& c,
    Values arguments,
    const Value* self) {
  bool discarded = std::exchange(discarding_, false);
  std::vector<Passed> how;
  std::string key = c.key;
  // Default arguments are evaluated in the scope of the function.
  for (size_t i = arguments.size(); i < c.parameters->size(); ++i) {
    Temporarily inner(scope_, c.scope);
    arguments.push_back(
        initial(c.takes[i], *(*c.parameters)[i].declarator.value));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto& written = (*c.parameters)[i].declarator.type;
    Value& a = arguments[i];
    bool keeps = written.reference && a.is_lvalue() && a.type == c.takes[i];
    if (c.takes[i]->is_pointer() && !keeps) {
      a = convert_pointer(load(a), c.takes[i], false);
    }
    how.push_back(passing(c.takes[i], written, a));
    key += passing_key(how.back(), a);
    bool shares = how.back().how == How::Offset ||
        how.back().how == How::Static || how.back().type->is_pointer();
    if (shares && a.base) { // the function writes to it by name
      make_global(a.base->variable);
      for (size_t at = a.base->path.find('\x01'); at != std::string::npos;
           at = a.base->path.find('\x01', at + 1)) {
        make_global(&variables_[std::stoul(a.base->path.substr(at + 1)) - 1]);
      }
    }
  }
  if (self) {
    Type written;
    written.reference = true;
    written.is_const = c.declared && c.declared->is_const;
    Passed p = passing(self->type, written, *self);
    p.how = p.how == How::Value ? How::Value : How::InOut;
    p.reference = false;
    how.push_back(p);
    arguments.push_back(*self);
    key += "self" + passing_key(p, *self);
  }
  auto known = instances_.find(key);
  if (known == instances_.end()) {
    Temporarily deeper(nested_, nested_ + 1);
    if (instances_.size() >= most_instances || nested_ > deepest) {
      fail("the templates of `{}` do not come to an end.", c.name);
    }
    known = instances_.emplace(key, Instance{}).first;
    try {
      write_function(known->second, c, how, arguments, self);
    } catch (...) {
      instances_.erase(key);
      throw;
    }
  } else if (known->second.busy) {
    fail(
        "`{}` calls itself; GPUs here have no recursion, so write a loop.",
        c.name);
  }
  discarding_ = discarded;
  return call_instance(known->second, how, arguments);
}

Variable* Translator::declare_parameter(
    Scope& scope,
    const std::string& name,
    const Passed& p,
    const Value& given) {
  using TK = TypeData::Kind;
  std::string wish = name.empty() ? "unused" : name;
  Symbol& s = scope.names[name];
  if (p.type->kind == TK::Closure || p.type->kind == TK::Flags) {
    s.value = plain_value(p.type, given.text);
    return nullptr;
  }
  if (p.how == How::Address) {
    auto* v = variable(wish, types_.scalar(Scalar::U64), Space::Thread);
    s.value = plain_value(p.type, mark(*v));
    s.value.home = Home::Device;
    return v;
  }
  if (p.how == How::Value || p.how == How::InOut) {
    auto* v = variable(wish, p.type, Space::Thread);
    v->points_to = p.type->is_pointer() ? given.base : nullptr;
    s.value = of_variable(v);
    return v;
  }
  // The pointer points into memory that the function knows.
  Ty offset = p.type->is_pointer() ? p.type : types_.scalar(Scalar::I32);
  auto* v = variable(wish, offset, Space::Thread);
  v->points_to = given.base;
  if (p.how == How::Static && !p.reference) {
    declare_variable(v, "0");
  }
  std::string at = p.how == How::Static ? "0" : mark(*v);
  if (p.type->is_array()) {
    s.value = plain_value(p.type, at);
    s.value.base = given.base;
  } else if (p.reference) {
    s.value = base_item(given.base, p.type, at);
  } else {
    s.value = of_variable(v);
    s.value.is_null = given.is_null;
    s.value.slot = given.is_null ? nullptr : s.value.slot;
  }
  return p.how == How::Static ? nullptr : v;
}

void Translator::write_body(const Candidate& c, Scope& own, bool constructs) {
  auto& w = *writing_;
  if (constructs) {
    auto* self = variable("self", w.result, Space::Thread);
    declare_variable(self, default_record(w.result).text);
    w.result_variable = self;
    w.constructs = true;
    own.record = w.result->record;
    own.self = of_variable(self);
    for (auto& [name, list] : c.declared->initializers) {
      for (auto& f : own.record->fields) {
        if (f.name == name && list) {
          Value to = field_of(own.self, f);
          bool one = list->kind == Expr::Kind::List &&
              list->children.size() == 1 && !f.type->is_array();
          if (f.type->is_array()) {
            fill(to, *list);
          } else {
            store(
                to,
                one ? initial(f.type, *list->children[0])
                    : initial(f.type, *list));
          }
        }
      }
    }
  } else if (w.masked) {
    begin_masks();
  }
  block(c.body->statements);
  if (!constructs && w.result && !w.result->is_void() && !w.returns) {
    fail_at(
        c.body->place,
        "`{}` returns `{}`, but has no return statement; add one.",
        c.name,
        w.result);
  }
  if (w.result_variable) {
    w.guard.clear();
    emit("return " + mark(*w.result_variable) + ";");
  }
}

void Translator::write_function(
    Instance& f,
    const Candidate& c,
    const std::vector<Passed>& how,
    const Values& arguments,
    const Value* self) {
  Writing w;
  w.id = ++functions_;
  Temporarily inside(writing_, &w);
  Scope& own = *new_scope(c.scope);
  Temporarily inner(scope_, &own);
  const Record* record = c.scope->parent ? c.scope->parent->record : nullptr;
  bool constructs = c.declared && record && !self && !c.declared->is_static &&
      c.declared->name == record->declared->name;
  w.masked = target_.subgroup < 32 && !constructs && is_collective(*c.body);
  f.name = free_name(c.name.starts_with("operator") ? "operator_of" : c.name);
  bool deduced = !c.result || c.result->name == "auto";
  w.result = constructs ? types_.record(record)
      : deduced         ? nullptr
                        : type_of(*c.result);
  std::vector<std::pair<std::string, Variable*>> parameters;
  if (w.masked) {
    auto* lanes = variable("lanes", types_.scalar(Scalar::Bool), Space::Thread);
    w.live = &masks_.emplace_back(Mask{mark(*lanes), false});
    w.mask = w.live;
    parameters.push_back({"", lanes});
  }
  bool inout = false;
  for (size_t i = 0; i < how.size(); ++i) {
    bool is_self = self && i + 1 == how.size();
    std::string name = is_self ? "self" : (*c.parameters)[i].declarator.name;
    auto* v = declare_parameter(own, name, how[i], arguments[i]);
    inout = inout || how[i].how == How::InOut;
    if (v && !is_self) {
      v->read_only = is_read_only((*c.parameters)[i].declarator.type, v->type);
    }
    if (v) {
      parameters.push_back({how[i].how == How::InOut ? "inout " : "", v});
    }
    if (is_self) {
      own.record = record;
      own.self = own.names["self"].value;
      own.names.erase("self");
    }
  }
  write_body(c, own, constructs);
  f.result = w.result ? w.result : types_.nothing();
  f.result_base = w.result_base;
  f.masked = w.masked;
  f.pure = w.pure && !inout;
  f.busy = false;
  std::string header = glsl_name(f.result) + " " + f.name + "(";
  std::vector<Line> copies;
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto& [prefix, v] = parameters[i];
    Variable* shown = v;
    if (v->global) { // its address was passed on
      if (!prefix.empty()) {
        fail_at(
            c.body->place,
            "the address of the reference `{}` cannot be passed on; take a "
            "pointer instead.",
            v->wish);
      }
      shown = variable(v->wish, v->type, Space::Thread);
      copies.push_back(
          {1, "", mark(*v) + " = " + mark(*shown) + ";", nullptr, ""});
    }
    header +=
        (i ? ", " : "") + prefix + glsl_name(v->type) + " " + mark(*shown);
  }
  w.lines.insert(w.lines.begin(), copies.begin(), copies.end());
  written_.push_back({header + ")", std::move(w.lines)});
}

// Converts an argument for the function; `back` gets what is copied back later.
std::string Translator::argument_text(
    const Passed& p,
    const Value& given,
    bool apart,
    std::vector<std::pair<Value, Value>>& back) {
  switch (p.how) {
    case How::Static:
      return "";
    case How::Address:
      if (given.type->is_array() || given.home == Home::Device) {
        Value x =
            plain_value(types_.scalar(Scalar::U64), device_address(given));
        return apart ? temporary(x).text : x.text;
      }
      return given.text;
    case How::Offset: {
      Value x = given.type->is_pointer() || given.type->is_array()
          ? decayed(given)
          : address_of(given);
      x.type = types_.scalar(Scalar::I32);
      x.base = nullptr;
      return apart ? temporary(x).text : x.text;
    }
    case How::InOut: {
      if (given.home == Home::Local && !apart) {
        wrote(given);
        return given.text;
      }
      Value copy = temporary(given, "copy");
      if (!given.read_only || given.type->is_pointer()) {
        back.push_back({given, copy});
      }
      return copy.text;
    }
    case How::Value:
      break;
  }
  Value x = convert(given, p.type);
  return apart ? temporary(x).text : x.text;
}

Value Translator::call_instance(
    const Instance& f,
    const std::vector<Passed>& how,
    const Values& arguments) {
  bool discarded = std::exchange(discarding_, false);
  std::vector<std::pair<Value, Value>> back;
  bool apart = f.masked && !writing_->guard.empty();
  std::string text = f.masked ? mask_text() : "";
  for (size_t i = 0; i < how.size(); ++i) {
    std::string a = argument_text(how[i], arguments[i], apart, back);
    text += (a.empty() || text.empty() ? "" : ", ") + a;
  }
  Value r = plain_value(f.result, f.name + "(" + text + ")");
  r.base = f.result_base;
  writing_->pure = writing_->pure && f.pure;
  bool nothing = f.result->is_void();
  if (f.pure && !f.masked && !nothing && back.empty()) {
    return r;
  }
  if (nothing || (discarded && !f.masked)) {
    f.masked ? emit_everywhere(r.text + ";") : emit(r.text + ";");
  } else {
    auto* v = variable(f.name, f.result, Space::Thread);
    v->points_to = f.result_base;
    f.masked ? declare_everywhere(v, r.text) : declare_variable(v, r.text);
    r = load(of_variable(v));
  }
  for (auto& [to, from] : back) {
    store(to, from);
  }
  return r;
}

Value Translator::default_record(Ty to) {
  return make_struct(to, {});
}

// Without constructors: the fields in order, the others by their defaults.
Value Translator::make_struct(Ty to, const std::vector<const Expr*>& items) {
  if (items.size() == 1 && items[0]->kind != Expr::Kind::List &&
      type_without_effects(*items[0]) == to) { // a copy
    return rvalue(*items[0]);
  }
  if (!items.empty() && member_of(to, "(constructor)")) {
    return construct_record(to, values_of(items));
  }
  auto& r = *to->record;
  if (items.size() > r.fields.size()) {
    fail("`{}` has fewer fields.", r.name);
  }
  std::string text;
  for (size_t i = 0; i < r.fields.size(); ++i) {
    auto& f = r.fields[i];
    const Expr* from = i < items.size() ? items[i] : f.declared->value.get();
    Temporarily inner(scope_, i < items.size() ? scope_ : r.scope);
    Expr none{};
    none.kind = Expr::Kind::List;
    none.place = here_;
    Value v = from            ? initial(f.type, *from)
        : f.type->is_struct() ? default_record(f.type)
                              : list_value(f.type, none);
    points_into(f.points_to, f.type->is_pointer() ? v.base : nullptr);
    text += (i ? ", " : "") + v.text;
  }
  return plain_value(to, r.glsl + "(" + (text.empty() ? "0" : text) + ")");
}

Value Translator::construct_record(Ty to, Values values) {
  if (values.size() == 1 && values[0].type == to) {
    return load(values[0]);
  }
  if (auto* s = member_of(to, "(constructor)")) {
    auto v = try_functions(*s, to->record->scope, {}, values, nullptr);
    if (v) {
      return *v;
    }
    if (!values.empty()) {
      fail("`{}` has no constructor for these arguments.", to->record->name);
    }
  }
  auto& fields = to->record->fields;
  if (values.empty()) {
    return default_record(to);
  }
  if (values.size() != fields.size()) {
    fail(
        "`{}` has {} fields, not {}.",
        to->record->name,
        fields.size(),
        values.size());
  }
  std::string text;
  for (size_t i = 0; i < fields.size(); ++i) {
    Value v = convert(values[i], fields[i].type);
    points_into(fields[i].points_to, v.type->is_pointer() ? v.base : nullptr);
    text += (i ? ", " : "") + v.text;
  }
  return plain_value(to, to->record->glsl + "(" + text + ")");
}

} // namespace msl
