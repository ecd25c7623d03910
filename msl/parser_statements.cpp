#include <utility>

#include "msl/parse.h"
#include "msl/parser.h"

namespace msl {

using Kind = Stmt::Kind;

StmtPtr Parser::make(Kind kind) const {
  auto out = std::make_unique<Stmt>();
  out->kind = kind;
  out->place = here().place;
  auto found = text_.unroll.find(at_);
  out->unroll = found == text_.unroll.end() ? 0 : found->second;
  return out;
}

// The statements of a kernel, without braces.
StmtPtr Parser::body() {
  scopes_ = {&file_.scope};
  InScope scope(*this);
  auto out = make(Kind::Block);
  while (!done()) {
    statement(out->statements);
  }
  return out;
}

StmtPtr Parser::block() {
  InScope scope(*this);
  auto out = make(Kind::Block);
  expect("{");
  while (!is("}")) {
    statement(out->statements);
  }
  expect("}");
  return out;
}

// Reads one statement, which can become several: `typedef float T, U;`.
void Parser::statement(std::vector<StmtPtr>& out) {
  Depth depth(*this);
  if (done()) {
    unexpected();
  }
  if (is("template")) {
    fail(
        "A function or template cannot stand within a function; write it into "
        "the kernel's header.");
  }
  if (is("using") || is("typedef") || is("static_assert")) {
    std::vector<Declaration> made;
    auto as = make(Kind::Empty);
    declaration(made);
    local(std::move(made), *as, out);
  } else if (declares()) {
    variables(out);
  } else {
    out.push_back(control());
  }
}

// Reads the single statement after if, for or else.
StmtPtr Parser::one_statement() {
  std::vector<StmtPtr> several;
  auto block = make(Kind::Block);
  statement(several);
  if (several.size() == 1) {
    return std::move(several[0]);
  }
  block->unroll = 0;
  block->statements = std::move(several);
  return block;
}

// A local declaration that is no variable. `at`: its place.
void Parser::local(
    std::vector<Declaration> made,
    const Stmt& at,
    std::vector<StmtPtr>& out) {
  for (auto& one : made) {
    auto kind = one.kind;
    auto stmt = std::make_unique<Stmt>();
    stmt->place = at.place;
    stmt->kind = kind == Declaration::Kind::Struct ? Kind::Struct
        : kind == Declaration::Kind::Using         ? Kind::Using
        : kind == Declaration::Kind::StaticAssert  ? Kind::StaticAssert
                                                   : Kind::Declare;
    if (kind == Declaration::Kind::Constant) {
      stmt->is_constexpr = true;
      stmt->declarators.push_back(std::move(one.constant));
    } else if (kind == Declaration::Kind::StaticAssert) {
      stmt->expr = std::move(one.constant.value);
      stmt->text = one.name;
    } else {
      stmt->declared = std::make_unique<Declaration>(std::move(one));
    }
    out.push_back(std::move(stmt));
  }
}

// float a = 1, b(2), *c; with the structs that it defines.
void Parser::variables(std::vector<StmtPtr>& out) {
  auto stmt = make(Kind::Declare);
  size_t begin = at_;
  std::vector<Declaration> made;
  auto before = specifiers(&made);
  local(std::move(made), *stmt, out);
  stmt->is_static = before.is_static;
  stmt->is_constexpr = before.is_constexpr;
  if (take(";")) {
    return; // struct A {...};
  }
  auto variable = [&](Declarator& one) {
    if (one.name.empty()) {
      unexpected();
    }
    initializer(one, true);
    stmt->declarators.push_back(std::move(one));
  };
  declarators(std::move(before.type), begin, Meaning::Variable, variable);
  if (is(":")) {
    refuse(
        stmt->declarators.back().place,
        "`for` over a range: count with an index");
  }
  expect(";");
  out.push_back(std::move(stmt));
}

StmtPtr Parser::control() {
  if (is("{")) {
    return block();
  }
  if (is("if")) {
    return if_statement();
  }
  if (is("for")) {
    return for_statement();
  }
  if (is("case") || is("default")) {
    return case_statement();
  }
  if (is("while") || is("switch")) {
    auto out = make(is("while") ? Kind::While : Kind::Switch);
    ++at_;
    out->expr = condition();
    out->body = one_statement();
    return out;
  }
  if (is("do")) {
    auto out = make(Kind::DoWhile);
    expect("do");
    out->body = one_statement();
    expect("while");
    out->expr = condition();
    expect(";");
    return out;
  }
  if (is_name(at_) && is(":", 1)) {
    refuse("a label: write a loop with break and continue");
  }
  bool jumps = is("break") || is("continue");
  auto out = make(
      is("break")          ? Kind::Break
          : is("continue") ? Kind::Continue
          : is("return")   ? Kind::Return
          : is(";")        ? Kind::Empty
                           : Kind::Expression);
  at_ += out->kind != Kind::Expression && out->kind != Kind::Empty;
  if (!jumps && !is(";")) {
    out->expr = is("{") ? list() : expression();
  }
  expect(";");
  return out;
}

ExprPtr Parser::condition() {
  expect("(");
  if (declares()) {
    fail(
        "A declaration in a condition is not supported; declare the variable "
        "before.");
  }
  auto out = expression();
  expect(")");
  return out;
}

StmtPtr Parser::if_statement() {
  auto out = make(Kind::If);
  expect("if");
  out->is_constexpr = take("constexpr");
  out->expr = condition();
  out->body = one_statement();
  if (take("else")) {
    out->other = one_statement();
  }
  return out;
}

StmtPtr Parser::for_statement() {
  InScope scope(*this);
  auto out = make(Kind::For);
  expect("for");
  expect("(");
  if (declares()) {
    std::vector<StmtPtr> init;
    variables(init);
    if (init.size() != 1) {
      fail_at(out->place, "Define this struct before the loop.");
    }
    out->init = std::move(init[0]);
  } else if (!take(";")) {
    out->init = make(Kind::Expression);
    out->init->expr = expression();
    expect(";");
  }
  if (!is(";")) {
    out->expr = expression();
  }
  expect(";");
  if (!is(")")) {
    out->step = expression();
  }
  expect(")");
  out->body = one_statement();
  return out;
}

// Reads a case with the statements up to the next one.
StmtPtr Parser::case_statement() {
  auto out = make(Kind::Case);
  if (!take("default")) {
    expect("case");
    out->expr = expression();
  }
  expect(":");
  while (!is("case") && !is("default") && !is("}")) {
    statement(out->statements);
  }
  return out;
}

} // namespace msl
