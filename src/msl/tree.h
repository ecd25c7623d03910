// tree-sitter's tree to ours (ast.h), one text at a time.
#pragma once

#include <tree_sitter/api.h>

#include "msl/words.h"

namespace mlx::core::vulkan::msl {

// A node with what is used of tree-sitter's functions.
struct Node {
  TSNode at;

  std::string_view type() const {
    return ts_node_type(at);
  }
  bool is(std::string_view what) const {
    return type() == what;
  }
  explicit operator bool() const {
    return !ts_node_is_null(at);
  }
  Node field(std::string_view name) const {
    return {ts_node_child_by_field_name(at, name.data(), name.size())};
  }
  std::vector<Node> children() const; // also words: `;`, `struct`
  std::vector<Node> named() const;
  std::vector<Node> fields(std::string_view name) const;
  uint32_t begin() const {
    return ts_node_start_byte(at);
  }
  uint32_t end() const {
    return ts_node_end_byte(at);
  }
};

class Converter {
 public:
  // `begins`: of each word, where it begins in the text that was parsed;
  // SIZE_MAX bytes of it if it was dropped.
  Converter(const Words& words, const std::vector<uint32_t>& begins)
      : words_(words), begins_(begins) {}

  std::vector<Declaration> unit(const Node& root);
  // Of the one function in `root`.
  StmtPtr body(const Node& root);

 private:
  class Depth; // an Error where the tree is too deep

  // Words of nodes.
  size_t index(uint32_t byte) const; // of the word that begins there
  const Word& word(const Node& node) const;
  std::string text(const Node& node) const;
  std::string joined(const Node& node) const; // of all its words
  Place place(const Node& node) const;
  [[noreturn]] void refuse(const Node& node) const;

  // Types (tree_types.cpp).
  Type type(const Node& node); // of anything that has qualifiers and a type
  void base(const Node& node, Type& out);
  void qualify(const Word& word, Type& out) const;
  void scoped(const Node& node, Type& out);
  std::vector<TemplateArgument> arguments(const Node& list);
  TemplateArgument argument(const Node& node);
  void declarator(const Node& node, Declarator& out);
  Type abstract(const Node& descriptor); // type_descriptor
  std::vector<Parameter> parameters(const Node& list);
  Parameter parameter(const Node& node);
  std::vector<Attribute> attributes(const Node& node) const;

  // Expressions (tree_expressions.cpp).
  ExprPtr expression(const Node& node);
  ExprPtr make(Expr::Kind kind, const Node& node) const;
  ExprPtr name(const Node& node);
  ExprPtr operation(const Node& node);
  ExprPtr call(const Node& node);
  ExprPtr member(const Node& node);
  ExprPtr lambda(const Node& node);
  ExprPtr construct(const Node& node);
  void list(const Node& node, Expr& out);
  ExprPtr list(const Node& node);
  Node inside(const Node& parenthesized) const;

  // Statements (tree_statements.cpp).
  StmtPtr statement(const Node& node);
  StmtPtr make(Stmt::Kind kind, const Node& node) const;
  void block(const Node& node, std::vector<StmtPtr>& out);
  void into(const Node& node, std::vector<StmtPtr>& out);
  StmtPtr declare(const Node& node);
  StmtPtr if_statement(const Node& node);
  StmtPtr for_statement(const Node& node);
  StmtPtr loop(const Node& node);
  StmtPtr switch_statement(const Node& node);
  ExprPtr condition(const Node& clause);

  // Declarations (tree_declarations.cpp).
  void declaration(const Node& node, std::vector<Declaration>& out);
  void templated(const Node& node, std::vector<Declaration>& out);
  TemplateParameter template_parameter(const Node& node);
  void aggregate(const Node& node, std::vector<Declaration>& out);
  void enumeration(const Node& node, std::vector<Declaration>& out);
  void fields(const Node& list, Declaration& out);
  void field(const Node& node, Declaration& out);
  Declaration function(const Node& node);
  bool is_function(const Node& declarator) const;
  void variables(const Node& node, std::vector<Declaration>& out);
  void aliases(const Node& node, std::vector<Declaration>& out);
  Declaration static_assertion(const Node& node);

  const Words& words_;
  const std::vector<uint32_t>& begins_;
  int depth_ = 0;
};

} // namespace mlx::core::vulkan::msl
