// Declarations of variables.
#include <algorithm>

#include "msl/translator.h"

namespace msl {

namespace {

using Kind = Stmt::Kind;
using Home = Value::Home;

constexpr int64_t longest_constructor = 16; // items; more by a loop

// The value of T x(value) or T x = value.
const Expr& value_of(const Declarator& d) {
  bool only = d.constructed && d.value->children.size() == 1;
  return only ? *d.value->children[0] : *d.value;
}

} // namespace

void Translator::declaration(const Stmt& s) {
  for (auto& d : s.declarators) {
    declare_one(s, d);
  }
}

// Makes the declared name mean `v`.
Value& Translator::name_of(const Declarator& d, const Value& v) {
  auto [it, is_new] = scope_->names.try_emplace(d.name);
  if (!is_new) {
    fail_at(d.place, "`{}` is declared twice; give one another name.", d.name);
  }
  return it->second.value = v;
}

void Translator::declare_constant(const Declarator& d, const Value& v) {
  auto* named = variable(d.name, v.type, Space::Thread);
  auto& w = *writing_;
  bool outside = !w.guard.empty() && w.guard_depth == 0;
  w.lines.push_back(
      {w.indent,
       outside ? "" : w.guard,
       " = " + v.text + ";",
       named,
       "const "});
  Value& value = name_of(d, of_variable(named));
  value.home = Home::None;
  value.read_only = true;
  value.constant = v.constant;
}

void Translator::declare_shared(const Declarator& d) {
  Ty type = declared_type(d);
  auto* v = variable(d.name, type, Space::Threadgroup);
  Ty item = flat_element(type);
  v->coded = item->is_narrow_float();
  independent_ = false;
  place_variable(v, d);
  shared_bytes_ +=
      static_cast<uint32_t>(flat_count(type)) * std::max(size_of(item), 1u);
  Value& value = name_of(d, of_variable(v));
  if (type->is_array()) {
    value.home = Home::None;
  }
  if (shared_bytes_ > target_.shared_bytes) {
    fail(
        "with `{}` the threadgroup memory has more than the {} bytes that this "
        "device offers; use smaller arrays.",
        d.name,
        target_.shared_bytes);
  }
}

void Translator::declare_reference(const Declarator& d) {
  if (!d.value) {
    fail("the reference `{}` is bound to nothing.", d.name);
  }
  Value v = eval(value_of(d));
  Ty type = d.type.name == "auto" ? v.type : declared_type(d);
  if (v.type != type && !(v.type->is_array() && type->is_array())) {
    if (!d.type.is_const) {
      fail("a reference to `{}` cannot be bound to `{}`.", type, v.type);
    }
    v = convert(v, type);
  }
  bool place = v.is_lvalue() || (v.type->is_array() && v.base);
  v = place ? pinned(v) : temporary(v, d.name.c_str());
  v.read_only = v.read_only || is_read_only(d.type, v.type);
  name_of(d, v);
}

void Translator::declare_one(const Stmt& stmt, const Declarator& d) {
  Temporarily here(here_, d.place);
  if (d.type.reference) {
    return declare_reference(d);
  }
  if (d.type.space == Space::Threadgroup && d.type.pointers == 0) {
    return declare_shared(d);
  }
  bool is_auto = d.type.name == "auto";
  if (is_auto && !d.value) {
    fail("`auto {}` needs a value.", d.name);
  }
  Value init;
  bool has_init = false;
  Ty type = nullptr;
  if (is_auto) {
    init = decayed(load(eval(value_of(d))));
    has_init = true;
    type = init.type;
    if (type->kind == TypeData::Kind::Closure) {
      name_of(d, init);
      return;
    }
  } else {
    type = declared_type(d);
  }
  if (type->is_void()) {
    fail("`{}` cannot be void.", d.name);
  }
  bool list = d.value && d.value->kind == Expr::Kind::List;
  bool long_list =
      list && type->is_array() && flat_count(type) > longest_constructor;
  bool moved = !together_.group(key_of(d)).empty();
  long_list = long_list || (list && type->is_array() && moved);
  if (!has_init && d.value && !long_list) {
    init = initial(type, *d.value);
    has_init = true;
  } else if (!has_init && !d.value && type->is_struct()) {
    init = construct_record(type, {});
    has_init = true;
  }
  bool fixed = (stmt.is_constexpr || d.type.is_const) && d.type.pointers == 0;
  if (fixed && has_init && init.constant && !moved) {
    return declare_constant(d, init);
  }
  if (stmt.is_constexpr && !type->is_array() && !type->is_struct() &&
      !type->is_vector() && !type->is_pointer()) {
    fail(
        "`{}` is constexpr, but its value is not known when compiling.",
        d.name);
  }
  auto* v = variable(d.name, type, Space::Thread);
  place_variable(v, d);
  v->is_precise = d.type.is_volatile && type->is_floating();
  v->points_to = flat_element(type)->is_pointer() ? init.base : nullptr;
  if (!v->whole) {
    declare_variable(v, has_init ? init.text : "");
  } else if (has_init) {
    store(of_variable(v), init);
  }
  Value& value = name_of(d, of_variable(v));
  v->read_only = is_read_only(d.type, type);
  if (type->is_array()) {
    value.home = Home::None;
    if (long_list) {
      fill(value, *d.value);
    }
  }
}

void Translator::local_declaration(const Stmt& s) {
  if (s.kind == Kind::StaticAssert) {
    if (s.expr && constant_integer(*s.expr, "static_assert") == 0) {
      fail_at(s.place, "static_assert: {}", s.text);
    }
  } else if (s.declared) {
    declare(*scope_, *s.declared);
  }
}

} // namespace msl
