// SIMD-groups wider than a subgroup are emulated through shared memory with
// barriers, so every invocation of the workgroup must reach each collective
// operation. Control flow around one therefore becomes masks: `if (mask)`
// around other statements, loops that run until no invocation is left, and a
// mask as the first argument of the collective.
#include <algorithm>

#include "msl/names.h"
#include "msl/translator.h"
#include "msl/walk.h"

namespace msl {

namespace {

using Kind = Stmt::Kind;

bool is_barrier_or_simd(const std::string& name) {
  return name.starts_with("simd_") || name.starts_with("quad_") ||
      name == "threadgroup_barrier" || name == "simdgroup_barrier";
}

} // namespace

bool Translator::names_collective(const Expr& e) const {
  if (e.kind == Expr::Kind::Name) { // a function or lambda
    return collective_names_.contains(last_name(e.text));
  }
  if (e.kind == Expr::Kind::Member) {
    return collective_names_.contains(e.text);
  }
  return e.kind == Expr::Kind::Call &&
      is_barrier_or_simd(last_name(e.children[0]->text));
}

bool Translator::is_collective(const Expr& e) {
  return any_expression(&e, [&](const Expr& x) { return names_collective(x); });
}

bool Translator::is_collective(const Stmt& s) {
  return any_expression(&s, [&](const Expr& x) { return names_collective(x); });
}

// Decided by name: all functions of that name count.
void Translator::find_collectives(const Unit& unit) {
  std::vector<std::pair<std::string, const Stmt*>> bodies;
  auto add = [&](const Declaration& d, auto&& self) -> void {
    if (d.body) {
      bodies.push_back({d.name, d.body.get()});
    }
    for (auto& m : d.methods) {
      self(m, self);
    }
    for (auto& t : d.types) {
      self(t, self);
    }
  };
  for (auto& d : unit.declarations) {
    add(d, add);
  }
  auto lambdas = [&](const Stmt* s, auto&& self) -> void {
    if (!s) {
      return;
    }
    for (auto& d : s->declarators) {
      if (d.value && d.value->kind == Expr::Kind::Lambda) {
        bodies.push_back({d.name, d.value->body.get()});
      }
    }
    for (auto& inner : s->statements) {
      self(inner.get(), self);
    }
    self(s->body.get(), self);
    self(s->other.get(), self);
  };
  auto functions = bodies;
  for (auto& [name, body] : functions) {
    lambdas(body, lambdas);
  }
  lambdas(unit.body.get(), lambdas);
  for (bool found = true; found;) {
    found = false;
    for (auto& [name, body] : bodies) {
      if (body && !collective_names_.contains(name) && is_collective(*body)) {
        found = collective_names_.insert(name).second;
      }
    }
  }
}

bool Translator::escapes(const Stmt& s, bool in_loop, bool in_switch) {
  bool loop =
      s.kind == Kind::For || s.kind == Kind::While || s.kind == Kind::DoWhile;
  in_loop = in_loop || loop;
  in_switch = in_switch || s.kind == Kind::Switch;
  if (s.kind == Kind::Return) {
    return true;
  }
  if (s.kind == Kind::Break) {
    return !in_loop && !in_switch;
  }
  if (s.kind == Kind::Continue) {
    return !in_loop;
  }
  auto within_ = [&](const StmtPtr& x) {
    return x && escapes(*x, in_loop, in_switch);
  };
  return within_(s.body) || within_(s.other) ||
      std::any_of(s.statements.begin(), s.statements.end(), within_);
}

bool Translator::needs_mask(const Stmt& s) {
  return is_collective(s) || escapes(s, false, false);
}

void Translator::update_guard() {
  auto& w = *writing_;
  w.guard = !w.mask || w.mask->full ? "" : w.mask->name;
}

// Declares a function's mask of invocations still in it, and its result.
void Translator::begin_masks() {
  auto& w = *writing_;
  if (!w.mask) {
    w.live = &masks_.emplace_back(Mask{new_mask("true"), true});
    w.mask = w.live;
  }
  if (!w.is_main && !w.result) {
    fail_at(
        Place{},
        "a function with SIMD-group functions or barriers must say what it "
        "returns, not `auto`, on a device with narrow subgroups.");
  }
  if (!w.is_main && !w.result->is_void()) {
    w.result_variable = variable("result", w.result, Space::Thread);
    w.lines.push_back({1, "", ";", w.result_variable, ""});
  }
  update_guard();
}

std::string Translator::mask_text() {
  auto* m = writing_->mask;
  return !m || m->full ? "true" : m->name;
}

std::string Translator::new_mask(const std::string& value) {
  auto* v = variable("lanes", types_.scalar(Scalar::Bool), Space::Thread);
  declare_everywhere(v, value);
  return mark(*v);
}

Mask& Translator::part_mask(const std::string& value) {
  return masks_.emplace_back(Mask{new_mask(value), false});
}

void Translator::with_mask(Mask& m, const std::function<void()>& body) {
  auto& w = *writing_;
  Mask* before = std::exchange(w.mask, &m);
  update_guard();
  body();
  w.mask = before;
  update_guard();
}

void Translator::masked(const Stmt& s) {
  switch (s.kind) {
    case Kind::Block:
      return scoped(s);
    case Kind::If:
      return masked_if(s);
    case Kind::For:
    case Kind::While:
    case Kind::DoWhile:
      return masked_loop(s);
    case Kind::Switch:
      return masked_switch(s);
    case Kind::Break:
    case Kind::Continue:
      return masked_leave(s);
    case Kind::Return:
      return masked_return(s);
    default:
      return plain(s);
  }
}

void Translator::masked_if(const Stmt& s) {
  Temporarily inner(scope_, new_scope(scope_));
  Value c = condition(*s.expr);
  if (c.constant) {
    if (auto* taken = c.integer() != 0 ? s.body.get() : s.other.get()) {
      scoped(*taken);
    }
    return;
  }
  Mask& outer = *writing_->mask;
  bool leaves = escapes(*s.body, false, false) ||
      (s.other && escapes(*s.other, false, false));
  std::string both = outer.full ? "" : outer.name + " && ";
  std::string value = outer.full ? c.text : both + within(c, Prec::Equality);
  auto& yes = part_mask(value);
  auto& no = masks_.emplace_back(Mask{"", false});
  if (leaves || s.other) {
    no.name = new_mask(both + "!" + yes.name);
  }
  with_mask(yes, [&] { scoped(*s.body); });
  if (s.other) {
    with_mask(no, [&] { scoped(*s.other); });
  }
  if (leaves) {
    emit_everywhere(outer.name + " = " + yes.name + " || " + no.name + ";");
    outer.full = false;
  }
  update_guard();
}

void Translator::masked_loop(const Stmt& s) {
  if (masked_uniform_loop(s)) {
    return;
  }
  auto& w = *writing_;
  Temporarily inner(scope_, new_scope(scope_));
  if (s.init) {
    statement(*s.init);
    update_guard();
  }
  Mask& outer = *w.mask;
  auto& turn = part_mask(outer.full ? "true" : outer.name);
  auto test = [&] {
    with_mask(turn, [&] {
      Value c = condition(*s.expr);
      emit_everywhere(
          turn.name + " = " + turn.name + " && " + within(c, Prec::Equality) +
          ";");
    });
  };
  auto leave_if_none = [&] {
    emit_everywhere("if (!msl_any_in_threadgroup(" + turn.name + ")) {");
    emit_everywhere("  break;");
    emit_everywhere("}");
  };
  emit_everywhere("while (true) {");
  ++w.indent;
  if (s.kind != Kind::DoWhile) {
    if (s.expr) {
      test();
    }
    leave_if_none();
  }
  auto& body = part_mask(turn.name);
  w.loops.push_back({false, true, turn.name, &body});
  with_mask(body, [&] { scoped(*s.body); });
  w.loops.pop_back();
  if (s.step) {
    with_mask(turn, [&] { discard(*s.step); });
  }
  if (s.kind == Kind::DoWhile) {
    test();
    leave_if_none();
  }
  --w.indent;
  emit_everywhere("}");
  after_leaving(outer, escapes(*s.body, true, true));
}

// Takes lanes that left the function, or the loop around a switch, out of the
// mask behind a statement.
void Translator::after_leaving(Mask& outer, bool leaves) {
  std::string live = writing_->live->name;
  if (leaves && outer.name != live) {
    emit_everywhere(outer.name + " = " + outer.name + " && " + live + ";");
  }
  outer.full = outer.full && !leaves;
  update_guard();
}

// Cases in order; a lane that reached one runs into the next until a break.
void Translator::masked_switch(const Stmt& s) {
  auto& w = *writing_;
  Value v = rvalue(*s.expr);
  v = temporary(convert(v, promoted(v.type)), "selected");
  Temporarily inner(scope_, new_scope(scope_));
  Mask& outer = *w.mask;
  std::string all = outer.full ? "true" : outer.name;
  std::string any_label = "false";
  for (auto& c : s.body->statements) {
    if (c->kind == Kind::Case && c->expr) {
      Value label = initial(v.type, *c->expr);
      any_label += " || " + v.text + " == " + label.text;
    }
  }
  // Lanes that have not left the switch, and those that reached a case.
  std::string left = new_mask(all), come = new_mask("false");
  for (auto& c : s.body->statements) {
    if (c->kind != Kind::Case) {
      fail("statements in a switch stand behind a case.");
    }
    std::string here = c->expr
        ? v.text + " == " + initial(v.type, *c->expr).text
        : "!(" + any_label + ")";
    emit_everywhere(come + " = " + come + " || (" + all + " && " + here + ");");
    auto& body = part_mask(left + " && " + come);
    w.loops.push_back({true, true, left, &body});
    with_mask(body, [&] { block(c->statements); });
    w.loops.pop_back();
    // Lanes that continue or return must not reach the next case.
    emit_everywhere(come + " = " + come + " && " + left + ";");
  }
  after_leaving(outer, escapes(*s.body, false, true));
}

void Translator::leave_lanes(const std::string& lanes) {
  auto& m = *writing_->mask;
  if (lanes != m.name) {
    emit_everywhere(
        lanes + " = " + (m.full ? "false" : lanes + " && !" + m.name) + ";");
  }
}

void Translator::masked_leave(const Stmt& s) {
  auto& w = *writing_;
  bool to_loop = s.kind == Kind::Continue;
  size_t i = w.loops.size();
  while (i > 0 && to_loop && w.loops[i - 1].is_switch) {
    leave_lanes(w.loops[--i].lanes);
  }
  if (i == 0) {
    fail("there is no loop or switch to leave here; `return` ends a function.");
  }
  if (to_loop && i < w.loops.size()) {
    fail(
        "`continue` within a switch that holds SIMD-group functions or "
        "barriers is not supported on a device with narrow subgroups.");
  }
  if (!to_loop) {
    leave_lanes(w.loops[i - 1].lanes);
  }
  emit_everywhere(w.mask->name + " = false;");
  w.mask->full = false;
  update_guard();
}

void Translator::masked_return(const Stmt& s) {
  auto& w = *writing_;
  w.returns = true;
  if (s.expr) {
    Value v;
    if (s.expr->kind == Expr::Kind::List) {
      v = list_value(w.result, *s.expr);
    } else {
      v = decayed(load(eval(*s.expr)));
      note_result(v);
    }
    if (w.result_variable) {
      v = convert(v, w.result);
      emit(mark(*w.result_variable) + " = " + v.text + ";");
    }
  }
  for (auto& l : w.loops) {
    leave_lanes(l.lanes);
  }
  leave_lanes(w.live->name);
  emit_everywhere(w.mask->name + " = false;");
  w.mask->full = false;
  update_guard();
}

// a && b, a || b, a ? b : c with a collective behind the condition.
Value Translator::masked_choice(const Expr& e, const Value& condition_) {
  auto& w = *writing_;
  bool ternary = e.kind == Expr::Kind::Conditional;
  Ty type = types_.scalar(Scalar::Bool);
  if (ternary) {
    Ty a = type_without_effects(*e.children[1]);
    Ty b = type_without_effects(*e.children[2]);
    type = a == b ? a : common_type(a, b);
  }
  auto* r = variable("chosen", type, Space::Thread);
  declare_variable(r, ternary ? "" : condition_.text);
  Mask& outer = *w.mask;
  std::string both = outer.full ? "" : outer.name + " && ";
  std::string c = within(condition_, Prec::Equality);
  bool or_else = e.text == "||" && !ternary;
  auto& yes = masks_.emplace_back(Mask{
      new_mask(
          both +
          (or_else       ? "!" + mark(*r)
               : ternary ? c
                         : mark(*r))),
      false});
  auto side = [&](Mask& m, const Expr& x) {
    with_mask(m, [&] {
      Value v = convert(rvalue(x), type);
      points_into(r->points_to, type->is_pointer() ? v.base : nullptr);
      emit(mark(*r) + " = " + v.text + ";");
    });
  };
  side(yes, *e.children[1]);
  if (ternary) {
    auto& no = part_mask(both + "!" + yes.name);
    side(no, *e.children[2]);
  }
  return load(of_variable(r));
}

} // namespace msl
