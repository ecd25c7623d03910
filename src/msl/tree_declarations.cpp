#include "msl/tree_depth.h"

namespace mlx::core::vulkan::msl {

using Kind = Declaration::Kind;

std::vector<Declaration> Converter::unit(const Node& root) {
  std::vector<Declaration> out;
  for (const auto& child : root.named()) {
    declaration(child, out);
  }
  return out;
}

void Converter::declaration(const Node& node, std::vector<Declaration>& out) {
  Depth depth(*this, node);
  if (node.is("namespace_definition")) {
    for (const auto& child : node.field("body").named()) {
      declaration(child, out);
    }
  } else if (node.is("template_declaration")) {
    templated(node, out);
  } else if (node.is("function_definition")) {
    out.push_back(function(node));
  } else if (node.is("struct_specifier") || node.is("class_specifier")) {
    aggregate(node, out);
  } else if (node.is("enum_specifier")) {
    enumeration(node, out);
  } else if (node.is("alias_declaration") || node.is("type_definition")) {
    aliases(node, out);
  } else if (node.is("static_assert_declaration")) {
    out.push_back(static_assertion(node));
  } else if (node.is("declaration")) {
    Node type = node.field("type");
    if (type && type.field("body")) {
      declaration(type, out);
    }
    Node what = node.field("declarator");
    if (what && is_function(what)) {
      out.push_back(function(node));
    } else {
      variables(node, out);
    }
  } else if (node.is("expression_statement") && node.named().empty()) {
    // A semicolon.
  } else {
    refuse(node);
  }
}

bool Converter::is_function(const Node& declarator) const {
  if (declarator.is("function_declarator")) {
    return true;
  }
  if (declarator.is("pointer_declarator") ||
      declarator.is("reference_declarator")) {
    auto children = declarator.named();
    return !children.empty() && is_function(children.back());
  }
  return false;
}

void Converter::templated(const Node& node, std::vector<Declaration>& out) {
  std::vector<TemplateParameter> parameters;
  for (const auto& child : node.field("parameters").named()) {
    parameters.push_back(template_parameter(child));
  }
  std::vector<Declaration> made;
  declaration(node.named().back(), made);
  for (auto& one : made) {
    if (!one.parameters.empty() && !parameters.empty()) {
      throw Error(
          place(node),
          "A template within a template's template is not supported.");
    }
    one.specialization |= parameters.empty();
    if (&one == &made.back()) {
      one.parameters = std::move(parameters);
    }
    out.push_back(std::move(one));
  }
}

TemplateParameter Converter::template_parameter(const Node& node) {
  TemplateParameter out;
  if (node.is("type_parameter_declaration")) {
    out.is_type = true;
    auto children = node.named();
    out.name = children.empty() ? "" : text(children[0]);
  } else if (node.is("optional_type_parameter_declaration")) {
    out.is_type = true;
    Node name = node.field("name");
    out.name = name ? text(name) : "";
    Node value = node.field("default_type");
    out.default_type = std::make_unique<Type>();
    if (value.is("type_descriptor")) {
      *out.default_type = abstract(value);
    } else {
      base(value, *out.default_type);
    }
  } else if (
      node.is("parameter_declaration") ||
      node.is("optional_parameter_declaration")) {
    auto as = parameter(node);
    out.type = std::move(as.what.type);
    out.name = std::move(as.what.name);
    out.default_value = std::move(as.what.value);
    if (node.field("type").is("type_identifier") && out.name.empty()) {
      refuse(node);
    }
  } else {
    refuse(node);
  }
  return out;
}

void Converter::aggregate(const Node& node, std::vector<Declaration>& out) {
  Declaration made;
  made.kind = Kind::Struct;
  made.place = place(node);
  for (const auto& child : node.named()) {
    if (child.is("base_class_clause")) {
      refuse(child);
    }
  }
  Node name = node.field("name"), body = node.field("body");
  if (!name) {
    throw Error(made.place, "Give this struct a name.");
  }
  if (!body) {
    return; // only declared
  }
  if (name.is("template_type")) {
    made.name = text(name.field("name"));
    made.specialized = arguments(name.field("arguments"));
    made.specialization = true;
  } else {
    made.name = text(name);
  }
  fields(body, made);
  out.push_back(std::move(made));
}

void Converter::fields(const Node& list, Declaration& out) {
  for (const auto& child : list.named()) {
    if (child.is("field_declaration") || child.is("declaration")) {
      field(child, out);
    } else if (child.is("function_definition")) {
      bool defaulted = false;
      for (const auto& part : child.named()) {
        defaulted |=
            part.is("default_method_clause") || part.is("delete_method_clause");
      }
      if (!defaulted) {
        out.methods.push_back(function(child));
      }
    } else if (child.is("template_declaration")) {
      templated(child, out.methods);
    } else if (!child.is("access_specifier")) {
      declaration(child, out.types);
    }
  }
}

void Converter::field(const Node& node, Declaration& out) {
  Node what = node.field("declarator");
  if (what && is_function(what)) {
    if (node.is("declaration") || !node.field("default_value")) {
      out.methods.push_back(function(node));
    }
    return;
  }
  bool is_static = false;
  for (const auto& child : node.named()) {
    if (child.is("bitfield_clause")) {
      refuse(child);
    }
    is_static |=
        child.is("storage_class_specifier") && word(child).is("static");
  }
  Node inner = node.field("type");
  if (inner && inner.field("body")) {
    declaration(inner, out.types);
    if (!what) {
      return;
    }
  }
  auto values = node.fields("default_value");
  auto names = node.fields("declarator");
  for (const auto& name : names) {
    Declarator one;
    one.is_static = is_static;
    one.type = type(node);
    declarator(name, one);
    // The value between this name and the next.
    for (const auto& value : values) {
      bool before_next =
          &name == &names.back() || value.begin() < (&name + 1)->begin();
      if (value.begin() >= name.end() && before_next) {
        one.value = expression(value);
      }
    }
    out.fields.push_back(std::move(one));
  }
}

// Functions, methods and constructors; with a body or without.
Declaration Converter::function(const Node& node) {
  Declaration out;
  out.kind = Kind::Function;
  out.place = place(node);
  Declarator result;
  result.place = out.place;
  bool has_type = bool(node.field("type"));
  if (has_type) {
    result.type = type(node);
  }
  for (const auto& child : node.named()) {
    if (child.is("storage_class_specifier")) {
      out.is_static |= word(child).is("static");
    } else if (child.is("type_qualifier")) {
      out.is_constexpr |= word(child).is("constexpr");
    } else if (child.is("field_initializer_list")) {
      for (const auto& one : child.named()) {
        auto parts = one.named();
        if (parts.size() != 2) {
          refuse(one);
        }
        out.initializers.emplace_back(text(parts[0]), list(parts[1]));
      }
    }
  }
  Node what = node.field("declarator");
  while (what && !what.is("function_declarator")) {
    if (what.is("pointer_declarator")) {
      ++result.type.pointers;
    } else if (what.is("reference_declarator")) {
      result.type.reference = true;
    } else {
      refuse(what);
    }
    what = what.named().back();
  }
  if (!what) {
    refuse(node);
  }
  Node name = what.field("declarator");
  if (name.is("template_function")) {
    out.name = text(name.field("name"));
    out.specialized = arguments(name.field("arguments"));
  } else if (
      name.is("identifier") || name.is("field_identifier") ||
      name.is("operator_name")) {
    out.name = joined(name);
  } else if (name.is("qualified_identifier")) {
    throw Error(
        place(name), "Write the method into the struct, not behind it.");
  } else {
    refuse(name);
  }
  out.place = place(name);
  out.takes = parameters(what.field("parameters"));
  for (const auto& child : what.named()) {
    if (child.is("type_qualifier")) {
      out.is_const |= word(child).is("const");
    } else if (child.is("trailing_return_type")) {
      result.type = abstract(inside(child));
    }
  }
  out.result = std::move(result.type);
  if (Node body = node.field("body")) {
    out.body = statement(body);
  }
  return out;
}

void Converter::variables(const Node& node, std::vector<Declaration>& out) {
  for (const auto& child : node.fields("declarator")) {
    Declaration made;
    made.kind = Kind::Constant;
    made.place = place(node);
    made.constant.type = type(node);
    declarator(child, made.constant);
    made.name = made.constant.name;
    for (const auto& part : node.named()) {
      made.is_static |=
          part.is("storage_class_specifier") && word(part).is("static");
      made.is_constexpr |=
          part.is("type_qualifier") && word(part).is("constexpr");
    }
    out.push_back(std::move(made));
  }
}

void Converter::aliases(const Node& node, std::vector<Declaration>& out) {
  auto alias = [&](std::string name, Type type) {
    Declaration made;
    made.kind = Kind::Using;
    made.place = place(node);
    made.name = std::move(name);
    made.result = std::move(type);
    out.push_back(std::move(made));
  };
  if (node.is("alias_declaration")) {
    alias(text(node.field("name")), abstract(node.field("type")));
    return;
  }
  Node type_node = node.field("type");
  if (type_node && type_node.field("body")) {
    declaration(type_node, out); // typedef struct A {...} B;
  }
  for (const auto& child : node.fields("declarator")) {
    Declarator one;
    one.type = type(node);
    declarator(child, one);
    if (!one.extents.empty()) {
      throw Error(
          place(child),
          "A type that is an array is not supported; use array<T, N> or a "
          "struct.");
    }
    alias(one.name, std::move(one.type));
  }
}

// Each enumerator a constant, the one before plus 1 where no value is written.
void Converter::enumeration(const Node& node, std::vector<Declaration>& out) {
  Node name = node.field("name"), underlying = node.field("base");
  bool scoped = word(node).is("enum") && [&] {
    auto children = node.children();
    return children.size() > 1 &&
        (children[1].is("class") || children[1].is("struct"));
  }();
  Type as;
  as.place = place(node);
  as.name = "int";
  if (underlying) {
    base(underlying, as);
  }
  if (name) {
    Declaration made;
    made.kind = Kind::Using;
    made.place = place(node);
    made.name = text(name);
    made.result.name = as.name;
    made.result.place = as.place;
    out.push_back(std::move(made));
  }
  Node list = node.field("body");
  if (!list) {
    return;
  }
  std::string before;
  for (const auto& child : list.named()) {
    if (!child.is("enumerator")) {
      refuse(child);
    }
    Declaration made;
    made.kind = Kind::Constant;
    made.place = place(child);
    made.is_constexpr = true;
    made.name = text(child.field("name"));
    if (scoped && name) {
      made.name = text(name) + "::" + made.name;
    }
    made.constant.name = made.name;
    made.constant.place = made.place;
    made.constant.type.name = as.name;
    made.constant.type.place = as.place;
    made.constant.type.is_const = true;
    auto number = [&](std::string text) {
      auto value = make(Expr::Kind::Number, child);
      value->text = std::move(text);
      return value;
    };
    if (Node value = child.field("value")) {
      made.constant.value = expression(value);
    } else if (before.empty()) {
      made.constant.value = number("0");
    } else {
      auto sum = make(Expr::Kind::Binary, child);
      sum->text = "+";
      sum->children.push_back(make(Expr::Kind::Name, child));
      sum->children[0]->text = before;
      sum->children.push_back(number("1"));
      made.constant.value = std::move(sum);
    }
    before = made.name;
    out.push_back(std::move(made));
  }
}

Declaration Converter::static_assertion(const Node& node) {
  Declaration out;
  out.kind = Kind::StaticAssert;
  out.place = place(node);
  out.constant.place = out.place;
  out.constant.value = expression(node.field("condition"));
  if (Node message = node.field("message")) {
    std::string text = joined(message);
    out.name = text.size() > 2 ? text.substr(1, text.size() - 2) : "";
  }
  return out;
}

} // namespace mlx::core::vulkan::msl
