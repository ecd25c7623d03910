#include "msl/tree_depth.h"

namespace mlx::core::vulkan::msl {

using Kind = Stmt::Kind;

StmtPtr Converter::make(Kind kind, const Node& node) const {
  auto out = std::make_unique<Stmt>();
  out->kind = kind;
  out->place = place(node);
  out->unroll = words_.empty() ? 0 : word(node).unroll;
  return out;
}

StmtPtr Converter::body(const Node& root) {
  for (const auto& child : root.named()) {
    if (child.is("function_definition")) {
      return statement(child.field("body"));
    }
  }
  refuse(root);
}

void Converter::block(const Node& node, std::vector<StmtPtr>& out) {
  for (const auto& child : node.named()) {
    into(child, out);
  }
}

// A statement, which can be several of ours: `typedef float T, U;`.
void Converter::into(const Node& node, std::vector<StmtPtr>& out) {
  bool declares = node.is("type_definition") || node.is("alias_declaration") ||
      node.is("struct_specifier") || node.is("class_specifier") ||
      node.is("enum_specifier") || node.is("static_assert_declaration") ||
      node.is("template_declaration") || node.is("function_definition");
  Node type = node.field("type");
  if (node.is("declaration") && type && type.field("body")) {
    into(type, out); // struct A {...} x;
  }
  if (!declares) {
    out.push_back(statement(node));
    return;
  }
  if (node.is("template_declaration") || node.is("function_definition")) {
    throw Error(
        place(node),
        "A function or template cannot stand within a function; write it into "
        "the kernel's header.");
  }
  std::vector<Declaration> made;
  declaration(node, made);
  for (auto& one : made) {
    auto kind = one.kind;
    auto stmt = make(
        kind == Declaration::Kind::Struct             ? Kind::Struct
            : kind == Declaration::Kind::Using        ? Kind::Using
            : kind == Declaration::Kind::StaticAssert ? Kind::StaticAssert
                                                      : Kind::Declare,
        node);
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

StmtPtr Converter::statement(const Node& node) {
  Depth depth(*this, node);
  auto kind = node.type();
  if (kind == "compound_statement") {
    auto out = make(Kind::Block, node);
    block(node, out->statements);
    return out;
  }
  if (kind == "expression_statement") {
    auto children = node.named();
    if (children.empty()) {
      return make(Kind::Empty, node);
    }
    auto out = make(Kind::Expression, node);
    out->expr = expression(children[0]);
    return out;
  }
  if (kind == "declaration") {
    return declare(node);
  }
  if (kind == "if_statement") {
    return if_statement(node);
  }
  if (kind == "for_statement") {
    return for_statement(node);
  }
  if (kind == "while_statement" || kind == "do_statement") {
    return loop(node);
  }
  if (kind == "switch_statement") {
    return switch_statement(node);
  }
  if (kind == "case_statement") {
    auto out = make(Kind::Case, node);
    Node value = node.field("value");
    for (const auto& child : node.named()) {
      if (value && child.begin() == value.begin()) {
        out->expr = expression(value);
      } else {
        into(child, out->statements);
      }
    }
    return out;
  }
  if (kind == "break_statement") {
    return make(Kind::Break, node);
  }
  if (kind == "continue_statement") {
    return make(Kind::Continue, node);
  }
  if (kind == "return_statement") {
    auto out = make(Kind::Return, node);
    auto children = node.named();
    if (!children.empty()) {
      out->expr = expression(children[0]);
    }
    return out;
  }
  // A declaration where one statement stands: `if (x) using T = int;`.
  std::vector<StmtPtr> several;
  static constexpr std::string_view declarations[] = {
      "type_definition",
      "alias_declaration",
      "struct_specifier",
      "enum_specifier",
      "static_assert_declaration",
      "template_declaration",
      "function_definition",
      "class_specifier"};
  for (auto name : declarations) {
    if (kind == name) {
      into(node, several);
      auto out = make(Kind::Block, node);
      out->statements = std::move(several);
      return out;
    }
  }
  refuse(node);
}

StmtPtr Converter::declare(const Node& node) {
  auto out = make(Kind::Declare, node);
  for (const auto& child : node.children()) {
    if (child.is("storage_class_specifier")) {
      out->is_static |= word(child).is("static");
    } else if (child.is("type_qualifier")) {
      out->is_constexpr |= word(child).is("constexpr");
    }
  }
  for (const auto& child : node.fields("declarator")) {
    Declarator one;
    one.type = type(node);
    declarator(child, one);
    out->declarators.push_back(std::move(one));
  }
  if (out->declarators.empty()) {
    refuse(node);
  }
  return out;
}

ExprPtr Converter::condition(const Node& clause) {
  if (!clause || clause.field("initializer")) {
    throw Error(
        clause ? place(clause) : Place{},
        "A declaration in a condition is not supported; declare the variable "
        "before.");
  }
  Node value = clause.field("value");
  if (!value) {
    value = inside(clause);
  }
  if (value.is("declaration")) {
    throw Error(
        place(value),
        "A declaration in a condition is not supported; declare the variable "
        "before.");
  }
  return expression(value);
}

StmtPtr Converter::if_statement(const Node& node) {
  auto out = make(Kind::If, node);
  for (const auto& child : node.children()) {
    out->is_constexpr |= child.is("constexpr");
  }
  out->expr = condition(node.field("condition"));
  out->body = statement(node.field("consequence"));
  if (Node other = node.field("alternative")) {
    out->other = statement(inside(other));
  }
  return out;
}

StmtPtr Converter::for_statement(const Node& node) {
  auto out = make(Kind::For, node);
  if (Node init = node.field("initializer")) {
    if (init.is("declaration")) {
      out->init = declare(init);
    } else {
      out->init = make(Kind::Expression, init);
      out->init->expr = expression(init);
    }
  }
  if (Node condition = node.field("condition")) {
    out->expr = expression(condition);
  }
  if (Node step = node.field("update")) {
    out->step = expression(step);
  }
  out->body = statement(node.field("body"));
  return out;
}

StmtPtr Converter::loop(const Node& node) {
  auto out = make(node.is("do_statement") ? Kind::DoWhile : Kind::While, node);
  out->expr = condition(node.field("condition"));
  out->body = statement(node.field("body"));
  return out;
}

StmtPtr Converter::switch_statement(const Node& node) {
  auto out = make(Kind::Switch, node);
  out->expr = condition(node.field("condition"));
  out->body = statement(node.field("body"));
  return out;
}

} // namespace mlx::core::vulkan::msl
