// Questions about the expressions in a part of the tree.
#pragma once

#include <string>

#include "msl/ast.h"

namespace msl {

// Whether anything in `s` satisfies `test`.
template <typename Test>
bool any_expression(const Expr* e, const Test& test);

template <typename Test>
bool any_expression(const Stmt* s, const Test& test) {
  if (!s) {
    return false;
  }
  for (auto& d : s->declarators) {
    if (any_expression(d.value.get(), test)) {
      return true;
    }
  }
  for (auto& inner : s->statements) {
    if (any_expression(inner.get(), test)) {
      return true;
    }
  }
  return any_expression(s->expr.get(), test) ||
      any_expression(s->step.get(), test) ||
      any_expression(s->init.get(), test) ||
      any_expression(s->body.get(), test) ||
      any_expression(s->other.get(), test);
}

template <typename Test>
bool any_expression(const Expr* e, const Test& test) {
  if (!e) {
    return false;
  }
  if (test(*e)) {
    return true;
  }
  for (auto& c : e->children) {
    if (any_expression(c.get(), test)) {
      return true;
    }
  }
  return any_expression(e->body.get(), test);
}

inline bool assigns(const Expr& e, const std::string& name) {
  bool changes = e.kind == Expr::Kind::Assign ||
      e.kind == Expr::Kind::Postfix ||
      (e.kind == Expr::Kind::Unary &&
       (e.text == "++" || e.text == "--" || e.text == "&"));
  return changes && e.children[0]->kind == Expr::Kind::Name &&
      e.children[0]->text == name;
}

} // namespace msl
