#include "msl/tree_depth.h"

namespace mlx::core::vulkan::msl {

namespace {

Space space_of(std::string_view name) {
  return name == "device"     ? Space::Device
      : name == "constant"    ? Space::Constant
      : name == "threadgroup" ? Space::Threadgroup
      : name == "thread"      ? Space::Thread
                              : Space::None;
}

} // namespace

void Converter::qualify(const Word& word, Type& out) const {
  std::string_view text = word.token.text;
  if (is_space(text)) {
    out.space = space_of(text);
    if (out.space == Space::None) {
      throw Error(
          word.token.place,
          "The address space " + quoted(text) +
              " is not supported: use device, constant, threadgroup or "
              "thread.");
    }
  }
  out.is_const |= text == "const" || text == "constexpr";
  out.is_volatile |= text == "volatile";
}

// The type and qualifiers among the children of a declaration, a parameter or a
// type_descriptor; what belongs to one name is left to declarator().
Type Converter::type(const Node& node) {
  Type out;
  out.place = place(node);
  for (const auto& child : node.children()) {
    if (child.is("type_qualifier")) {
      qualify(word(child), out);
    }
  }
  Node what = node.field("type");
  if (!what) {
    refuse(node);
  }
  base(what, out);
  return out;
}

void Converter::base(const Node& node, Type& out) {
  Depth depth(*this, node);
  out.place = place(node);
  if (node.is("primitive_type") || node.is("type_identifier") ||
      node.is("identifier") || node.is("namespace_identifier")) {
    out.name = text(node);
  } else if (node.is("template_type")) {
    out.name = text(node.field("name"));
    out.arguments = arguments(node.field("arguments"));
  } else if (node.is("qualified_identifier")) {
    scoped(node, out);
  } else if (node.is("decltype")) {
    out.name = "decltype";
    auto children = node.named();
    if (children.size() != 1) {
      refuse(node);
    }
    out.of = expression(children[0]);
  } else if (
      node.is("struct_specifier") || node.is("class_specifier") ||
      node.is("enum_specifier")) {
    // Its body is declared before (declaration(), into()).
    if (!node.field("name")) {
      throw Error(out.place, "Give this struct a name.");
    }
    base(node.field("name"), out);
  } else {
    refuse(node);
  }
}

// A::B, Foo<T>::type.
void Converter::scoped(const Node& node, Type& out) {
  auto scope = std::make_unique<Type>();
  Node what = node.field("scope"), rest = node.field("name");
  if (!rest) {
    refuse(node);
  }
  if (what) {
    base(what, *scope);
  }
  // a::b::c is a::(b::c).
  while (rest.is("qualified_identifier")) {
    auto outer = std::move(scope);
    scope = std::make_unique<Type>();
    base(rest.field("scope"), *scope);
    scope->scope = std::move(outer);
    rest = rest.field("name");
    if (!rest) {
      refuse(node);
    }
  }
  base(rest, out);
  if (what) {
    out.scope = std::move(scope);
  }
}

std::vector<TemplateArgument> Converter::arguments(const Node& list) {
  std::vector<TemplateArgument> out;
  if (list) {
    for (const auto& child : list.named()) {
      out.push_back(argument(child));
    }
  }
  return out;
}

TemplateArgument Converter::argument(const Node& node) {
  TemplateArgument out;
  if (!node.is("type_descriptor")) {
    out.value = expression(node);
    if (node.is("identifier") || node.is("qualified_identifier")) {
      out.type = std::make_unique<Type>();
      base(node, *out.type);
    }
    return out;
  }
  out.type = std::make_unique<Type>(abstract(node));
  Node inner = node.field("type");
  bool bare = !node.field("declarator") && node.named().size() == 1;
  if (bare && word(inner).role != Word::Role::Type && !word(inner).makes_type &&
      (inner.is("type_identifier") || inner.is("qualified_identifier") ||
       inner.is("template_type"))) {
    out.value = name(inner);
  }
  return out;
}

Type Converter::abstract(const Node& descriptor) {
  Declarator out;
  out.type = type(descriptor);
  if (Node inner = descriptor.field("declarator")) {
    declarator(inner, out);
  }
  if (!out.extents.empty()) {
    throw Error(
        place(descriptor),
        "An array is not a type here; use array<T, N> or a struct.");
  }
  return std::move(out.type);
}

// Adds to `out` what * & [] around its name say.
void Converter::declarator(const Node& node, Declarator& out) {
  Depth depth(*this, node);
  auto inner = [&](std::string_view field) {
    Node found = node.field(field);
    if (!found) {
      auto named = node.named();
      std::erase_if(
          named, [](const Node& n) { return n.is("type_qualifier"); });
      if (!named.empty()) {
        found = named.back();
      } else {
        return;
      }
    }
    declarator(found, out);
  };
  if (node.is("identifier") || node.is("field_identifier") ||
      node.is("type_identifier")) {
    out.name = text(node);
    out.place = place(node);
  } else if (
      node.is("pointer_declarator") || node.is("abstract_pointer_declarator")) {
    ++out.type.pointers;
    inner("declarator");
  } else if (
      node.is("reference_declarator") ||
      node.is("abstract_reference_declarator")) {
    out.type.reference = true;
    inner("declarator");
  } else if (
      node.is("parenthesized_declarator") ||
      node.is("abstract_parenthesized_declarator")) {
    inner("");
  } else if (
      node.is("array_declarator") || node.is("abstract_array_declarator")) {
    if (Node of = node.field("declarator")) {
      declarator(of, out);
    }
    Node size = node.field("size");
    out.extents.push_back(size ? expression(size) : nullptr);
  } else if (node.is("init_declarator")) {
    declarator(node.field("declarator"), out);
    Node value = node.field("value");
    out.constructed = value.is("initializer_list") && word(value).is("(");
    out.value = expression(value);
  } else if (node.is("function_declarator")) {
    throw Error(
        place(node),
        "A function cannot be declared here; write it into the kernel's "
        "header.");
  } else {
    refuse(node);
  }
}

std::vector<Attribute> Converter::attributes(const Node& node) const {
  std::vector<Attribute> out;
  for (size_t i = index(node.begin());
       i < words_.size() && begins_[i] < node.end();
       ++i) {
    const auto& found = words_[i].attributes;
    out.insert(out.end(), found.begin(), found.end());
  }
  return out;
}

std::vector<Parameter> Converter::parameters(const Node& list) {
  std::vector<Parameter> out;
  for (const auto& child : list.named()) {
    out.push_back(parameter(child));
  }
  bool nothing = out.size() == 1 && out[0].what.name.empty() &&
      out[0].what.type.name == "void" && out[0].what.type.pointers == 0;
  if (nothing) {
    out.clear();
  }
  return out;
}

Parameter Converter::parameter(const Node& node) {
  if (!node.is("parameter_declaration") &&
      !node.is("optional_parameter_declaration")) {
    refuse(node);
  }
  Parameter out;
  out.what.place = place(node);
  out.what.type = type(node);
  if (Node inner = node.field("declarator")) {
    declarator(inner, out.what);
  }
  if (Node value = node.field("default_value")) {
    out.what.value = expression(value);
  }
  out.attributes = attributes(node);
  return out;
}

} // namespace mlx::core::vulkan::msl
