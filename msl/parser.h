// A recursive-descent parser of the C++ that Metal's kernels are written in,
// from tokens to ast.h. It keeps scopes of names, which decide whether `(a)-b`
// is a cast, `a * b;` a declaration, and `a < b` the arguments of a template.
// A name that no scope knows may be one of the kernel's arguments or a type
// that only the translator knows; what follows it decides.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "msl/names.h"
#include "msl/temporarily.h"
#include "msl/text.h"
#include "msl/tidy.h"

namespace msl {

struct NameScope {
  bool of_template = false; // holds a template's parameters alone
  std::unordered_map<std::string_view, Meaning> names;
};

// Names at file level: the header declares them, the body uses them.
struct FileNames {
  NameScope scope;
  std::unordered_set<std::string_view> namespaces{
      "metal",
      "std",
      "mlx",
      "steel"};
};

class Parser {
 public:
  Parser(Tidy text, FileNames& file) : text_(std::move(text)), file_(file) {}

  std::vector<Declaration> unit();
  StmtPtr body();
  ExprPtr condition_of_if(); // all of the text

 private:
  class Depth; // an Error where expressions or statements nest too deeply
  class InScope; // a scope while it exists

  // The specifiers before a declarator.
  struct Specifiers {
    Place place;
    Type type;
    bool is_static = false, is_constexpr = false;
    bool constructs = false; // no type: a constructor follows
  };

  // Tokens.
  const Token& token(size_t i) const;
  const Token& here() const {
    return token(at_);
  }
  bool is(std::string_view text, size_t ahead = 0) const {
    return token(at_ + ahead).is(text);
  }
  bool is_name(size_t i) const; // not a keyword
  bool done() const {
    return at_ >= text_.tokens.size();
  }
  const Token& next() {
    return token(at_++);
  }
  bool take(std::string_view text);
  void expect(std::string_view text);
  std::string take_name();
  // Reads from `open` to `close` items, each by one(), between commas.
  template <typename F>
  void bracketed(std::string_view open, std::string_view close, F one) {
    expect(open);
    Temporarily angles(in_angles_, close == ">");
    while (!is(close)) {
      one();
      if (!take(",")) {
        break;
      }
    }
    expect(close);
  }
  [[noreturn]] void unexpected(const std::string& wanted = "") const;
  template <typename... Parts>
  [[noreturn]] void fail(std::string_view form, const Parts&... parts) const {
    fail_at(here().place, form, parts...);
  }
  [[noreturn]] void refuse(std::string_view way) const;
  [[noreturn]] void refuse(const Place& place, std::string_view way) const;
  void skip_namespaces();
  size_t behind_namespaces(size_t i) const;

  // Classification of names and of the tokens from `i` on (parser_names.cpp).
  Meaning meaning(std::string_view name) const;
  void declare(std::string_view name, Meaning role);
  void declare_type(std::string_view name);
  bool points(size_t i) const; // * & &&
  size_t angle_end(size_t open, bool simple) const;
  size_t arguments_end(size_t i) const;
  size_t base_end(size_t i, bool qualified, bool& known) const;
  size_t type_end(size_t i) const;
  bool casts(size_t open) const;
  bool declares() const;
  bool calls_function() const;

  // Types and declarators (parser_types.cpp).
  Type type_id();
  void base(Type& out);
  void qualify(Type& out);
  Specifiers specifiers(std::vector<Declaration>* made);
  void declarator(Declarator& out, Meaning role = Meaning::Variable);
  Type specifiers_again(size_t begin);
  // Calls each() for declarators with commas between them, which share the
  // specifiers that begin at `begin`.
  template <typename F>
  void declarators(Type type, size_t begin, Meaning role, F each) {
    Declarator one;
    one.type = std::move(type);
    declarator(one, role);
    each(one);
    while (take(",")) {
      Declarator next;
      next.type = specifiers_again(begin);
      declarator(next, role);
      each(next);
    }
  }
  void extents(Declarator& out);
  void initializer(Declarator& out, bool in_function);
  std::vector<TemplateArgument> template_arguments();
  TemplateArgument template_argument();
  std::vector<Parameter> parameters();
  Parameter parameter(Meaning role = Meaning::Variable);

  // Expressions (parser_expressions.cpp).
  ExprPtr make(Expr::Kind kind, const Place& place) const;
  ExprPtr make(Expr::Kind kind) const {
    return make(kind, here().place);
  }
  // With children that are parsed already.
  template <typename... Children>
  ExprPtr make(
      Expr::Kind kind,
      const Place& place,
      std::string_view text,
      Children... children) {
    auto out = make(kind, place);
    out->text = text;
    (out->children.push_back(std::move(children)), ...);
    return grown(std::move(out));
  }
  ExprPtr grown(ExprPtr e); // call when it has its children
  void check_depth(int depth) const;
  ExprPtr expression(); // with commas
  ExprPtr assignment(); // without
  ExprPtr binary(int binds);
  std::string_view binary_operator() const;
  ExprPtr unary();
  ExprPtr cast();
  ExprPtr size_of();
  ExprPtr postfix();
  ExprPtr primary();
  ExprPtr literal();
  ExprPtr name();
  ExprPtr construct(Type type);
  ExprPtr call(ExprPtr callee);
  ExprPtr member(ExprPtr of);
  ExprPtr lambda();
  ExprPtr list();
  void items(std::string_view close, Expr& out);

  // Statements (parser_statements.cpp).
  StmtPtr make(Stmt::Kind kind) const;
  StmtPtr block();
  void statement(std::vector<StmtPtr>& out);
  StmtPtr one_statement();
  StmtPtr control();
  void variables(std::vector<StmtPtr>& out);
  void local(
      std::vector<Declaration> made,
      const Stmt& at,
      std::vector<StmtPtr>& out);
  ExprPtr condition();
  StmtPtr if_statement();
  StmtPtr for_statement();
  StmtPtr case_statement();

  // Declarations (parser_declarations.cpp).
  void declaration(std::vector<Declaration>& out);
  void namespace_definition(std::vector<Declaration>& out);
  void templated(std::vector<Declaration>& out);
  void
  constants(Specifiers before, size_t begin, std::vector<Declaration>& out);
  TemplateParameter template_parameter();
  void using_declaration(std::vector<Declaration>& out);
  void type_definition(std::vector<Declaration>& out);
  void aggregate(std::vector<Declaration>& out, Type& named);
  void fields(Declaration& out);
  void members(Declaration& out);
  void enumeration(std::vector<Declaration>& out, Type& named);
  Declaration enumerator(const std::string& scope, const std::string& before);
  Declaration static_assertion();
  bool function_follows() const;
  void function(Specifiers before, std::vector<Declaration>& out);
  void function_name(Declaration& out);
  void function_body(Declaration& out, bool& defaulted);

  Tidy text_;
  FileNames& file_;
  std::vector<NameScope*> scopes_;
  size_t at_ = 0;
  int depth_ = 0; // of recursion
  int deepest_ = 0; // end of a tree, seen in this lambda
  std::string_view declared_; // by the last declarator
  bool in_angles_ = false; // `>` ends the expression
  bool in_struct_ = false; // among its members
  bool in_condition_ = false; // the text is a condition of #if
  std::string_view struct_name_; // whose constructors may follow
};

// Limits the depth of recursion, here and in functions that walk the tree.
class Parser::Depth {
 public:
  explicit Depth(Parser& parser) : parser_(parser) {
    parser.check_depth(++parser.depth_);
  }
  ~Depth() {
    --parser_.depth_;
  }
  Depth(const Depth&) = delete;

 private:
  Parser& parser_;
};

class Parser::InScope {
 public:
  explicit InScope(Parser& parser, bool of_template = false)
      : parser_(parser), scope_{of_template, {}} {
    parser.scopes_.push_back(&scope_);
  }
  ~InScope() {
    parser_.scopes_.pop_back();
  }
  InScope(const InScope&) = delete;

 private:
  Parser& parser_;
  NameScope scope_;
};

} // namespace msl
