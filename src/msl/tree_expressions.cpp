#include "msl/tree_depth.h"

namespace mlx::core::vulkan::msl {

using Kind = Expr::Kind;

ExprPtr Converter::make(Kind kind, const Node& node) const {
  auto out = std::make_unique<Expr>();
  out->kind = kind;
  out->place = place(node);
  return out;
}

ExprPtr Converter::expression(const Node& node) {
  Depth depth(*this, node);
  auto kind = node.type();
  if (kind == "identifier" || kind == "type_identifier" ||
      kind == "field_identifier" || kind == "qualified_identifier" ||
      kind == "template_function" || kind == "template_type" ||
      kind == "this") {
    return name(node);
  }
  if (kind == "number_literal" || kind == "true" || kind == "false") {
    auto out = make(Kind::Number, node);
    out->text = text(node);
    if (word(node).token.kind != Token::Kind::Char) {
      return out;
    }
    if (out->text.size() != 3) {
      throw Error(out->place, "Write this character as a number.");
    }
    auto cast = make(Kind::Cast, node);
    out->text = std::to_string(int(out->text[1]));
    cast->type = std::make_unique<Type>();
    cast->type->name = "char";
    cast->type->place = cast->place;
    cast->children.push_back(std::move(out));
    return cast;
  }
  if (kind == "parenthesized_expression") {
    return expression(inside(node));
  }
  if (kind == "call_expression") {
    return call(node);
  }
  if (kind == "field_expression") {
    return member(node);
  }
  if (kind == "lambda_expression") {
    return lambda(node);
  }
  if (kind == "compound_literal_expression") {
    return construct(node);
  }
  if (kind == "initializer_list" || kind == "argument_list") {
    return list(node);
  }
  return operation(node);
}

// The one child.
Node Converter::inside(const Node& parenthesized) const {
  auto children = parenthesized.named();
  if (children.size() != 1) {
    refuse(parenthesized);
  }
  return children[0];
}

ExprPtr Converter::name(const Node& node) {
  auto out = make(Kind::Name, node);
  if (node.is("template_function") || node.is("template_type")) {
    out->text = text(node.field("name"));
    out->arguments = arguments(node.field("arguments"));
    return out;
  }
  if (!node.is("qualified_identifier")) {
    out->text = text(node);
    return out;
  }
  // Flat, unless an instance of a template stands before.
  std::unique_ptr<Type> scope;
  Node rest = node;
  while (rest.is("qualified_identifier")) {
    Node what = rest.field("scope");
    if (what && (what.is("template_type") || scope)) {
      auto next = std::make_unique<Type>();
      base(what, *next);
      next->scope = std::move(scope);
      scope = std::move(next);
    } else if (what) {
      out->text += text(what) + "::";
    }
    rest = rest.field("name");
    if (!rest) {
      refuse(node);
    }
  }
  auto last = name(rest);
  if (scope && !out->text.empty()) {
    refuse(node);
  }
  out->text += last->text;
  out->arguments = std::move(last->arguments);
  out->type = std::move(scope);
  return out;
}

ExprPtr Converter::operation(const Node& node) {
  auto kind = node.type();
  auto with = [&](Kind what, std::initializer_list<std::string_view> fields) {
    auto out = make(what, node);
    for (auto field : fields) {
      Node child = node.field(field);
      if (!child) {
        refuse(node);
      }
      out->children.push_back(expression(child));
    }
    if (Node op = node.field("operator")) {
      out->text = text(op);
      out->place = place(op);
    }
    return out;
  };
  if (kind == "binary_expression") {
    auto out = with(Kind::Binary, {"left", "right"});
    if (out->text == "<=>") {
      throw Error(out->place, "`<=>` is not supported; compare with < and ==.");
    }
    return out;
  }
  if (kind == "assignment_expression") {
    auto out = with(Kind::Assign, {"left", "right"});
    // `a ? b : c = d` assigns to c; to the grammar, to all of the left.
    Node left = node.field("left");
    if (!left.is("conditional_expression")) {
      return out;
    }
    auto whole = std::move(out->children[0]);
    ExprPtr* last = &whole->children[2];
    while (left.field("alternative").is("conditional_expression")) {
      left = left.field("alternative");
      last = &(*last)->children[2];
    }
    out->children[0] = std::move(*last);
    *last = std::move(out);
    return whole;
  }
  if (kind == "comma_expression") {
    auto out = with(Kind::Binary, {"left", "right"});
    out->text = ",";
    return out;
  }
  if (kind == "unary_expression" || kind == "pointer_expression" ||
      kind == "update_expression") {
    return with(Kind::Unary, {"argument"});
  }
  if (kind == "conditional_expression") {
    return with(Kind::Conditional, {"condition", "consequence", "alternative"});
  }
  if (kind == "subscript_expression") {
    auto out = with(Kind::Index, {"argument"});
    out->children.push_back(expression(inside(node.field("indices"))));
    return out;
  }
  if (kind == "cast_expression") {
    auto out = with(Kind::Cast, {"value"});
    out->type = std::make_unique<Type>(abstract(node.field("type")));
    return out;
  }
  if (kind == "sizeof_expression") {
    if (Node what = node.field("type")) {
      auto out = make(Kind::Sizeof, node);
      out->type = std::make_unique<Type>(abstract(what));
      return out;
    }
    return with(Kind::Sizeof, {"value"});
  }
  refuse(node);
}

void Converter::list(const Node& node, Expr& out) {
  for (const auto& child : node.named()) {
    out.children.push_back(expression(child));
  }
}

ExprPtr Converter::list(const Node& node) {
  auto out = make(Kind::List, node);
  list(node, *out);
  return out;
}

ExprPtr Converter::call(const Node& node) {
  Node what = node.field("function"), with = node.field("arguments");
  if (!what || !with || !with.is("argument_list")) {
    refuse(node);
  }
  bool type = what.is("primitive_type") ||
      (what.is("template_function") && word(what).makes_type);
  if (type) {
    auto out = make(Kind::Construct, node);
    out->type = std::make_unique<Type>();
    out->type->place = out->place;
    out->type->name = text(what);
    out->type->arguments = arguments(what.field("arguments"));
    list(with, *out);
    return out;
  }
  auto callee = expression(what);
  bool casts = callee->kind == Kind::Name &&
      (callee->text == "static_cast" || callee->text == "reinterpret_cast" ||
       callee->text == "const_cast");
  if (!casts) {
    auto out = make(Kind::Call, node);
    out->children.push_back(std::move(callee));
    list(with, *out);
    return out;
  }
  auto out = make(Kind::Cast, node);
  out->text = callee->text;
  list(with, *out);
  if (callee->arguments.size() != 1 || !callee->arguments[0].type ||
      out->children.size() != 1) {
    throw Error(out->place, out->text + " needs one type and one value.");
  }
  out->type = std::move(callee->arguments[0].type);
  return out;
}

ExprPtr Converter::member(const Node& node) {
  auto out = make(Kind::Member, node);
  out->children.push_back(expression(node.field("argument")));
  const Word& op = word(node.field("operator"));
  if (op.postfix) {
    out->kind = Kind::Postfix;
    out->place = op.token.place;
    out->text = op.token.text;
    return out;
  }
  out->arrow = op.is("->");
  if (!out->arrow && !op.is(".")) {
    refuse(node);
  }
  Node what = node.field("field");
  if (what.is("dependent_name")) {
    what = inside(what);
  }
  out->place = place(what);
  if (what.is("template_method")) {
    out->text = text(what.field("name"));
    out->arguments = arguments(what.field("arguments"));
  } else if (what.is("field_identifier")) {
    out->text = text(what);
  } else {
    refuse(what);
  }
  return out;
}

ExprPtr Converter::lambda(const Node& node) {
  auto out = make(Kind::Lambda, node);
  if (Node takes = node.field("declarator")) {
    if (Node list = takes.field("parameters")) {
      out->parameters = parameters(list);
    }
    for (const auto& child : takes.named()) {
      if (child.is("trailing_return_type")) {
        out->type = std::make_unique<Type>(abstract(inside(child)));
      }
    }
  }
  if (node.field("template_parameters")) {
    throw Error(out->place, "A lambda cannot be a template; use auto.");
  }
  out->body = statement(node.field("body"));
  return out;
}

ExprPtr Converter::construct(const Node& node) {
  auto out = make(Kind::Construct, node);
  out->type = std::make_unique<Type>();
  Node what = node.field("type");
  if (what.is("type_descriptor")) {
    *out->type = abstract(what);
  } else {
    base(what, *out->type);
  }
  list(node.field("value"), *out);
  return out;
}

} // namespace mlx::core::vulkan::msl
