// Expressions: names, members, casts, initializer lists.
#include <algorithm>
#include <string_view>

#include "msl/translator.h"

namespace msl {

namespace {

using Kind = Expr::Kind;
using Home = Value::Home;

constexpr int deepest = 300; // of a tree that the user wrote
constexpr int64_t longest_list = 64; // longer arrays are filled by a loop

} // namespace

Temporarily<int> Translator::deeper() {
  if (depth_ == deepest) {
    fail("this is nested too deeply.");
  }
  return {depth_, depth_ + 1};
}

Value Translator::eval(const Expr& e) {
  auto level = deeper();
  Temporarily here(here_, e.place);
  last_ = e.place;
  return eval_inner(e);
}

Value Translator::eval_inner(const Expr& e) {
  switch (e.kind) {
    case Kind::Number:
      return number(e);
    case Kind::Name:
      return name_value(e);
    case Kind::Unary:
      return unary(e);
    case Kind::Postfix:
      return step_by_one(e, true, false);
    case Kind::Binary:
      return binary(e);
    case Kind::Assign:
      return assign(e);
    case Kind::Conditional:
      return conditional(e);
    case Kind::Call:
      return call(e);
    case Kind::Index:
      return subscript(e);
    case Kind::Member:
      return member(e);
    case Kind::Cast:
      return cast(e);
    case Kind::Construct:
      return constructed(e);
    case Kind::List:
      fail("the type of this list is not known here.");
    case Kind::Sizeof:
      if (e.type) {
        return integer(size_of(type_of(*e.type)), Scalar::U64);
      }
      return integer(
          size_of(type_without_effects(*e.children[0])), Scalar::U64);
    case Kind::Lambda:
      return lambda(e);
  }
  fail("this expression is not supported.");
}

Value Translator::rvalue(const Expr& e) {
  return load(eval(e));
}

Value Translator::condition(const Expr& e) {
  Temporarily here(here_, e.place);
  return convert(rvalue(e), types_.scalar(Scalar::Bool));
}

void Translator::discard(const Expr& e) {
  Temporarily here(here_, e.place);
  auto level = deeper();
  bool steps = e.text == "++" || e.text == "--";
  if (e.kind == Kind::Assign) {
    assign(e);
  } else if (steps && e.kind == Kind::Unary) {
    step_by_one(e, false, true);
  } else if (steps && e.kind == Kind::Postfix) {
    step_by_one(e, true, true);
  } else {
    discarding_ = e.kind == Kind::Call;
    eval(e);
    discarding_ = false;
  }
}

Ty Translator::type_without_effects(const Expr& e) {
  Ty t = nullptr;
  bool pure = writing_->pure;
  captured([&] { t = load(eval(e)).type; });
  writing_->pure = pure;
  return t;
}

Value Translator::temporary(const Value& given, const char* wish) {
  Value v = load(given);
  using TK = TypeData::Kind;
  if (v.constant || v.type->is_array() || v.type->kind == TK::Closure ||
      v.type->kind == TK::Flags || v.type->is_void()) {
    return v;
  }
  auto* t = variable(wish, v.type, Space::Thread);
  t->points_to = v.type->is_pointer() ? v.base : nullptr;
  declare_variable(t, v.text);
  return of_variable(t);
}

Value Translator::swizzle(const Value& v, const std::string& name) {
  constexpr std::string_view letters = "xyzw", colors = "rgba";
  std::string xyzw;
  for (char c : name) {
    size_t i =
        letters.find(c) != letters.npos ? letters.find(c) : colors.find(c);
    if (i == letters.npos || i >= v.type->width) {
      fail(
          "`{}` has no `.{}`; it has {} components, of xyzw or rgba.",
          v.type,
          name,
          v.type->width);
    }
    xyzw += letters[i];
  }
  if (xyzw.size() == 1) {
    return component(v, std::to_string(letters.find(xyzw[0])), true);
  }
  if (xyzw.size() > 4) {
    fail("a swizzle has up to 4 letters.");
  }
  Value r = v.home == Home::Local ? v : load(v);
  r.text = within(r, Prec::Atom) + "." + xyzw;
  r.unrounded.clear();
  r.prec = Prec::Atom;
  r.base = nullptr;
  r.variable = nullptr;
  r.type = types_.vector(v.type->scalar, static_cast<int>(xyzw.size()));
  return r;
}

Value Translator::member(const Expr& e) {
  const Expr& of = *e.children[0];
  Value object;
  if (of.kind == Kind::Name && of.text == "this") {
    Scope* at = scope_;
    while (at && !at->self.type) {
      at = at->parent;
    }
    if (!at) {
      fail("there is no `this` here.");
    }
    object = at->self;
  } else {
    object = eval(of);
    if (e.arrow) {
      object = dereference(object);
    }
  }
  if (object.type->is_struct()) {
    for (auto& f : object.type->record->fields) {
      if (f.name == e.text) {
        return field_of(object, f);
      }
    }
    if (Symbol* s = member_of(object.type, e.text)) {
      return symbol_value(*s, e.text);
    }
  }
  if (object.type->is_vector()) {
    return swizzle(object, e.text);
  }
  if (object.type->is_complex() && (e.text == "real" || e.text == "imag")) {
    Value v = object.home == Home::Local ? object : load(object);
    v.text = within(v, Prec::Atom) + (e.text == "real" ? ".x" : ".y");
    v.prec = Prec::Atom;
    v.base = nullptr;
    v.variable = nullptr;
    v.type = types_.scalar(Scalar::F32);
    if (object.home == Home::Device) {
      v.home = Home::Device;
      v.text = device_address(object);
      v.index = e.text == "real" ? "" : "1";
    }
    return v;
  }
  std::string known;
  if (object.type->is_struct()) {
    for (auto& f : object.type->record->fields) {
      known += (known.empty() ? "; it has `" : "`, `") + f.name;
    }
  }
  fail(
      "`{}` has no member `{}`{}.",
      object.type,
      e.text,
      known.empty() ? known : known + "`");
}

Value Translator::subscript(const Expr& e) {
  Value of = eval(*e.children[0]);
  Value index = rvalue(*e.children[1]);
  if (of.type->is_struct()) {
    if (auto v = overloaded("[]", {of, index})) {
      return *v;
    }
  }
  if (!index.type->is_scalar() || !index.type->is_integer()) {
    if (of.type->is_scalar() && index.type->is_pointer()) {
      std::swap(of, index); // i[p]
    } else {
      fail("an index must be an integer; convert it with int(...).");
    }
  }
  if (of.type->is_array() || of.type->is_pointer()) {
    return item(of, index);
  }
  if (!of.type->is_vector()) {
    fail("`{}` has no items.", of.type);
  }
  if (index.constant &&
      (index.integer() < 0 || index.integer() >= of.type->width)) {
    fail("`{}` has no such component.", of.type);
  }
  if (of.home == Home::None && !index.constant) {
    of = temporary(of); // GLSL indexes variables
  }
  return component(of, index_text(index, false), bool(index.constant));
}

Value Translator::cast(const Expr& e) {
  const Type& written = *e.type;
  if (e.text == "as_type") {
    return as_type(rvalue(*e.children[0]), type_of(written));
  }
  if (e.children[0]->kind == Kind::List) {
    return list_value(type_of(written), *e.children[0]);
  }
  Value v = eval(*e.children[0]);
  if (written.name == "auto") {
    return load(v);
  }
  Ty to = type_of(written);
  if (written.reference && v.is_lvalue()) {
    if (v.type == to) {
      return v;
    }
    Value p = address_of(v);
    Ty pointer = types_.pointer(to, p.type->space);
    return dereference(convert_pointer(p, pointer, true));
  }
  if (to->is_void()) {
    return plain_value(to, "");
  }
  if (to->is_pointer()) {
    return convert_pointer(load(v), to, true);
  }
  if (to->is_struct() && v.type != to) {
    return construct(to, {v});
  }
  return convert(v, to, true);
}

Value Translator::constructed(const Expr& e) {
  Ty to = type_of(*e.type);
  if (to->is_struct()) {
    return make_struct(to, items_of(e));
  }
  if (e.children.size() == 1 && e.children[0]->kind == Kind::List) {
    return list_value(to, *e.children[0]);
  }
  if (to->is_array()) {
    return list_value(to, e);
  }
  return construct(to, values_of(items_of(e)));
}

// {a, b, {c, d}} for an array, flat, the rest zero: GLSL's own constructor.
Value Translator::array_list(Ty to, const Expr& list) {
  Temporarily here(here_, list.place);
  Ty item = flat_element(to);
  int64_t n = flat_count(to), inner = n / to->count;
  std::vector<std::string> items;
  Base* base = nullptr; // of pointers
  for (auto& c : list.children) {
    if (to->element->is_array() && c->kind == Kind::List) {
      Value row = array_list(to->element, *c);
      points_into(base, row.base);
      items.push_back(row.text);
      continue;
    }
    if (to->element->is_array() && c->kind != Kind::List) {
      inner = 1; // braces left out
    }
    Value v = initial(item, *c);
    points_into(base, item->is_pointer() ? v.base : nullptr);
    items.push_back(v.text);
  }
  std::string zero = item->is_address() ? "0ul"
      : item->is_pointer()              ? null_offset
                                        : construct(item, {}).text;
  std::string text;
  int64_t have = 0;
  for (auto& s : items) {
    text += (text.empty() ? "" : ", ") + s;
    have += inner;
  }
  if (have > n || n > longest_list) {
    fail(
        have > n ? "the list has more items than the array."
                 : "a list for an array of more than 64 items is only "
                   "supported where an array is declared.");
  }
  for (; have < n; ++have) {
    text += (text.empty() ? "" : ", ") + zero;
  }
  Value v = plain_value(to, text);
  v.base = base;
  return v;
}

Value Translator::list_value(Ty to, const Expr& list) {
  Temporarily here(here_, list.place);
  if (to->is_array()) {
    Value v = array_list(to, list);
    v.text = glsl_name(to) + "[" + std::to_string(flat_count(to)) + "](" +
        v.text + ")";
    return v;
  }
  if (to->is_struct()) {
    return make_struct(to, items_of(list));
  }
  Values values;
  for (auto& c : list.children) {
    values.push_back(c->kind == Kind::List ? list_value(to, *c) : eval(*c));
  }
  if (to->is_vector() && !values.empty()) {
    int width = 0;
    for (auto& v : values) {
      width += v.type->is_vector() ? v.type->width : 1;
    }
    for (; width < to->width; ++width) { // the rest is zero
      values.push_back(literal(types_.scalar(to->scalar), int64_t(0)));
    }
  } else if (values.size() > 1 && !to->is_complex()) {
    fail("`{}` takes one value.", to);
  }
  return construct(to, std::move(values));
}

// An array by statements, for lists of any length.
void Translator::fill(const Value& to, const Expr& list) {
  Temporarily here(here_, list.place);
  int64_t n = flat_count(to.type);
  Ty item_type = flat_element(to.type);
  Value p = decayed(to);
  p.type = types_.pointer(item_type, p.type->space);
  size_t given = list.children.size();
  auto nested = std::any_of(
      list.children.begin(), list.children.end(), [](const ExprPtr& c) {
        return c->kind == Kind::List;
      });
  if (nested && item_type == to.type->element && !item_type->is_struct() &&
      !item_type->is_vector()) {
    fail("the list has more braces than the array dimensions.");
  }
  if (nested && to.type->element->is_array()) {
    for (size_t i = 0; i < given && int64_t(i) < to.type->count; ++i) {
      if (list.children[i]->kind != Kind::List) {
        fail("either all or none of these items stand in braces.");
      }
      Value row = item(to, integer(static_cast<int64_t>(i)));
      fill(row, *list.children[i]);
    }
    given = static_cast<size_t>(flat_count(to.type->element)) * given;
  } else {
    for (size_t i = 0; i < given; ++i) {
      Value x = initial(item_type, *list.children[i]);
      store(item(p, integer(static_cast<int64_t>(i))), x);
    }
  }
  if (static_cast<int64_t>(given) >= n) {
    return;
  }
  auto* i = variable("i", types_.scalar(Scalar::I32), Space::Thread);
  open_for(
      i,
      std::to_string(given) + "; " + mark(*i) + " < " + std::to_string(n) +
          "; ++" + mark(*i));
  Value zero = construct(item_type, {});
  store(item(p, load(of_variable(i))), zero);
  close();
}

// Children of `e`, from the first one on that is wanted.
std::vector<const Expr*> Translator::items_of(const Expr& e, size_t first) {
  std::vector<const Expr*> all;
  for (size_t i = first; i < e.children.size(); ++i) {
    all.push_back(e.children[i].get());
  }
  return all;
}

Values Translator::values_of(const std::vector<const Expr*>& items) {
  Values all;
  for (auto* e : items) {
    all.push_back(eval(*e));
  }
  return all;
}

Value Translator::initial(Ty to, const Expr& e) {
  Temporarily here(here_, e.place);
  if (e.kind == Kind::List) {
    return list_value(to, e);
  }
  return convert(eval(e), to);
}

Value Translator::lambda(const Expr& e) {
  auto& c = closures_.emplace_back();
  c.lambda = &e;
  c.scope = scope_;
  c.id = static_cast<int>(closures_.size());
  return plain_value(types_.closure(&c), "0");
}

} // namespace msl
