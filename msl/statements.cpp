// Statements, as GLSL has them. Those that need masks are in masks.cpp.
#include "msl/translator.h"

namespace msl {

namespace {

using Kind = Stmt::Kind;

// "a = b;" and "++i;" as one expression for the head of a loop.
std::optional<std::string> joined(const std::vector<Line>& lines) {
  std::string all;
  for (auto& l : lines) {
    bool simple = !l.declares && l.text.ends_with(";") &&
        !l.text.starts_with("store") && l.text.find('{') == l.text.npos &&
        !l.text.starts_with("msl_");
    if (!simple) {
      return {};
    }
    all += (all.empty() ? "" : ", ") + l.text.substr(0, l.text.size() - 1);
  }
  return all;
}

} // namespace

void Translator::statement(const Stmt& s) {
  auto level = deeper();
  Temporarily here(here_, s.place);
  auto& w = *writing_;
  if (!w.masked || w.plain > 0) {
    return plain(s);
  }
  update_guard();
  if (needs_mask(s)) {
    return masked(s);
  }
  ++w.plain;
  plain(s);
  --w.plain;
}

void Translator::block(const std::vector<StmtPtr>& statements) {
  for (auto& s : statements) {
    statement(*s);
  }
}

// A body in its own scope, without braces.
void Translator::scoped(const Stmt& s) {
  Temporarily inner(scope_, new_scope(scope_));
  if (s.kind == Kind::Block) {
    block(s.statements);
  } else {
    statement(s);
  }
}

void Translator::plain(const Stmt& s) {
  switch (s.kind) {
    case Kind::Block:
      open("{");
      scoped(s);
      return close();
    case Kind::Declare:
      return declaration(s);
    case Kind::Expression:
      return discard(*s.expr);
    case Kind::If:
      return if_statement(s);
    case Kind::For:
      return for_statement(s);
    case Kind::While:
      return while_statement(s);
    case Kind::DoWhile:
      return do_statement(s);
    case Kind::Switch:
      return switch_statement(s);
    case Kind::Case:
      fail("a case stands outside of its switch.");
    case Kind::Break:
    case Kind::Continue:
      if (writing_->loops.empty()) {
        fail(
            "there is no loop or switch to leave here; `return` ends a "
            "function.");
      }
      return emit(s.kind == Kind::Break ? "break;" : "continue;");
    case Kind::Return:
      return return_statement(s);
    case Kind::Struct:
    case Kind::Using:
    case Kind::StaticAssert:
      return local_declaration(s);
    case Kind::Empty:
      return;
  }
}

void Translator::if_statement(const Stmt& s) {
  Temporarily inner(scope_, new_scope(scope_));
  Value c = condition(*s.expr);
  if (c.constant) { // the other branch may not even have a meaning
    if (auto* taken = c.integer() != 0 ? s.body.get() : s.other.get()) {
      open("{");
      scoped(*taken);
      close();
    }
    return;
  }
  if (s.is_constexpr) {
    fail("the condition of `if constexpr` is not constant.");
  }
  open("if (" + c.text + ") {");
  scoped(*s.body);
  if (s.other && s.other->kind != Kind::Empty) {
    open_else();
    scoped(*s.other);
  }
  close();
}

void Translator::for_statement(const Stmt& s) {
  auto& w = *writing_;
  Temporarily inner(scope_, new_scope(scope_));
  std::vector<Line> init;
  if (s.init) {
    init = captured([&] { plain(*s.init); });
  }
  bool head = init.size() == 1 && init[0].declares && init[0].text != ";" &&
      init[0].before.empty();
  Value c;
  auto test = captured_inside([&] {
    if (s.expr) {
      c = condition(*s.expr);
    }
  });
  auto step = captured_inside([&] {
    if (s.step) {
      discard(*s.step);
    }
  });
  auto steps = joined(step);
  std::string unroll = s.unroll == 1 ? "[[unroll]] " : "";
  if (test.empty() && steps) {
    std::string rest = " " + c.text + "; " + *steps + ") {";
    if (head) {
      init[0].before = unroll + "for (";
      init[0].text += rest;
      w.lines.push_back(init[0]);
      ++w.indent;
      w.guard_depth += !w.guard.empty();
    } else {
      append(init);
      open(unroll + "for (;" + rest);
    }
  } else {
    append(init);
    for (auto& l : step) {
      ++l.indent;
    }
    open_stepping([&] { append(step); });
    append(test);
    if (s.expr) {
      break_unless(c);
    }
  }
  w.loops.push_back({});
  scoped(*s.body);
  w.loops.pop_back();
  close();
}

void Translator::while_statement(const Stmt& s) {
  Value c;
  auto test = captured_inside([&] { c = condition(*s.expr); });
  open(test.empty() ? "while (" + c.text + ") {" : "while (true) {");
  if (!test.empty()) {
    append(test);
    break_unless(c);
  }
  writing_->loops.push_back({});
  scoped(*s.body);
  writing_->loops.pop_back();
  close();
}

void Translator::do_statement(const Stmt& s) {
  auto& w = *writing_;
  w.loops.push_back({});
  auto body = captured_inside([&] { scoped(*s.body); });
  Value c;
  auto test = captured_inside([&] { c = condition(*s.expr); });
  w.loops.pop_back();
  if (test.empty()) {
    open("do {");
    append(body);
    return close("} while (" + c.text + ");");
  }
  open_stepping([&] {
    append(test);
    break_unless(c);
  });
  append(body);
  close();
}

void Translator::switch_statement(const Stmt& s) {
  Value v = rvalue(*s.expr);
  if (!v.type->is_scalar() || !v.type->is_integer()) {
    fail("switch takes an integer; convert the value with int(...).");
  }
  Ty t = promoted(v.type);
  v = convert(v, t);
  if (size_of(t) == 8) {
    t = types_.scalar(Scalar::I32);
    v = convert(v, t, true);
  }
  open("switch (" + v.text + ") {");
  writing_->loops.push_back({true, false, "", nullptr});
  Temporarily inner(scope_, new_scope(scope_));
  for (auto& c : s.body->statements) {
    if (c->kind != Kind::Case) {
      fail_at(c->place, "statements in a switch stand behind a case.");
    }
    if (c->expr) {
      Value label = initial(t, *c->expr);
      if (!label.constant) {
        fail_at(c->place, "a case needs a constant.");
      }
      emit("case " + label.text + ":");
    } else {
      emit("default:");
    }
    if (!c->statements.empty()) {
      open("{");
      block(c->statements);
      close();
    }
  }
  emit("break;"); // GLSL asks for something behind the last label
  writing_->loops.pop_back();
  close();
}

void Translator::note_result(const Value& v) {
  auto& w = *writing_;
  if (!w.result) {
    w.result = v.type;
  }
  if (w.result->is_void() && !v.type->is_void()) {
    fail(
        "this function returns no value; assign the value to a variable or "
        "output.");
  }
  if (v.type->is_pointer() && !v.type->is_address() && v.base) {
    points_into(w.result_base, v.base);
  }
}

void Translator::return_statement(const Stmt& s) {
  auto& w = *writing_;
  w.returns = true;
  if (w.constructs) {
    return emit("return " + mark(*w.result_variable) + ";");
  }
  if (!s.expr) {
    if (!w.result) {
      w.result = types_.nothing();
    }
    return emit("return;");
  }
  Value v;
  if (w.result && s.expr->kind == Expr::Kind::List) {
    v = list_value(w.result, *s.expr);
  } else {
    v = decayed(load(eval(*s.expr)));
    note_result(v);
    if (w.result->is_void()) {
      return emit("return;");
    }
    v = convert(v, w.result);
  }
  emit("return " + v.text + ";");
}

} // namespace msl
