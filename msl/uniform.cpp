// Finds loops with collectives that all invocations iterate equally often.
#include <algorithm>

#include "msl/translator.h"
#include "msl/walk.h"

namespace msl {

namespace {
using Kind = Stmt::Kind;
}

// Names of constants and of what all invocations share.
bool Translator::is_uniform(const Expr& e) {
  switch (e.kind) {
    case Expr::Kind::Number:
      return true;
    case Expr::Kind::Name: {
      Symbol* s = e.type ? nullptr : find(e.text);
      if (!s) {
        return false;
      }
      if (s->kind == Symbol::Kind::Lazy) {
        symbol_value(*s, e.text);
      }
      for (auto& a : source_.arguments) {
        if (a.name == e.text && a.reference &&
            (s->kind == Symbol::Kind::Argument ||
             (s->value.variable && s->value.variable->function == 1 &&
              s->value.variable->wish == a.name && s->argument))) {
          return true;
        }
      }
      return s->kind == Symbol::Kind::Value && s->value.constant.has_value();
    }
    case Expr::Kind::Binary:
    case Expr::Kind::Unary:
    case Expr::Kind::Cast:
    case Expr::Kind::Construct: {
      bool effect =
          e.text == "++" || e.text == "--" || e.text == "&" || e.text == "*";
      return !(effect && e.kind == Expr::Kind::Unary) &&
          std::all_of(
              e.children.begin(), e.children.end(), [&](const ExprPtr& c) {
                return c && is_uniform(*c);
              });
    }
    default:
      return false;
  }
}

// for (int i = a; i < b; i += c), the same for all invocations, keeps its form.
bool Translator::masked_uniform_loop(const Stmt& s) {
  using EK = Expr::Kind;
  bool form = s.kind == Kind::For && s.init && s.expr && s.step &&
      s.init->kind == Kind::Declare && s.init->declarators.size() == 1 &&
      s.expr->kind == EK::Binary && s.expr->children.size() == 2;
  if (!form) {
    return false;
  }
  auto& d = s.init->declarators[0];
  auto& test = *s.expr;
  auto& step = *s.step;
  bool simple = d.value && d.extents.empty() && d.type.pointers == 0 &&
      !d.type.reference && is_uniform(*d.value) && test.children[0] &&
      test.children[1] && test.children[0]->kind == EK::Name &&
      test.children[0]->text == d.name && is_uniform(*test.children[1]) &&
      test.text.size() <= 2 && (test.text[0] == '<' || test.text[0] == '>') &&
      test.text != "<<" && test.text != ">>" && assigns(step, d.name) &&
      (step.children.size() < 2 ||
       (step.children[1] && is_uniform(*step.children[1])));
  bool kept = simple && !escapes(*s.body, false, false) &&
      !any_expression(s.body.get(), [&](const Expr& x) {
                return assigns(x, d.name) || x.kind == EK::Lambda;
              });
  if (!kept) {
    return false;
  }
  auto& w = *writing_;
  Temporarily inner(scope_, new_scope(scope_));
  std::string guard = std::exchange(w.guard, "");
  auto init = captured([&] { plain(*s.init); });
  Value c;
  auto tests = captured([&] { c = condition(test); });
  auto steps = captured([&] { discard(step); });
  bool head = init.size() == 1 && tests.empty() && steps.size() == 1 &&
      init[0].declares && init[0].before.empty();
  if (!head) {
    w.guard = guard;
    return false;
  }
  std::string by = steps[0].text.substr(0, steps[0].text.size() - 1);
  init[0].before = "for (";
  init[0].text += " " + c.text + "; " + by + ") {";
  w.lines.push_back(init[0]);
  ++w.indent;
  update_guard();
  scoped(*s.body);
  --w.indent;
  emit_everywhere("}");
  return true;
}

} // namespace msl
