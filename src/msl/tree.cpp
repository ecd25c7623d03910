#include "msl/tree.h"

#include <algorithm>

#include "msl/parse.h"

namespace mlx::core::vulkan::msl {

std::vector<Node> Node::children() const {
  std::vector<Node> out;
  TSTreeCursor cursor = ts_tree_cursor_new(at);
  if (ts_tree_cursor_goto_first_child(&cursor)) {
    do {
      out.push_back({ts_tree_cursor_current_node(&cursor)});
    } while (ts_tree_cursor_goto_next_sibling(&cursor));
  }
  ts_tree_cursor_delete(&cursor);
  return out;
}

std::vector<Node> Node::named() const {
  auto out = children();
  std::erase_if(out, [](const Node& n) { return !ts_node_is_named(n.at); });
  return out;
}

std::vector<Node> Node::fields(std::string_view name) const {
  std::vector<Node> out;
  TSTreeCursor cursor = ts_tree_cursor_new(at);
  if (ts_tree_cursor_goto_first_child(&cursor)) {
    do {
      const char* field = ts_tree_cursor_current_field_name(&cursor);
      if (field && name == field) {
        out.push_back({ts_tree_cursor_current_node(&cursor)});
      }
    } while (ts_tree_cursor_goto_next_sibling(&cursor));
  }
  ts_tree_cursor_delete(&cursor);
  return out;
}

size_t Converter::index(uint32_t byte) const {
  auto found = std::upper_bound(begins_.begin(), begins_.end(), byte);
  // Of those that begin here the last is not a dropped one.
  size_t i = found - begins_.begin();
  return i == 0 ? 0 : i - 1;
}

const Word& Converter::word(const Node& node) const {
  return words_[index(node.begin())];
}

std::string Converter::text(const Node& node) const {
  const Token& token = word(node).token;
  // The grammar takes a keyword for a name where it cannot be the keyword.
  if (is_keyword(token.text) && node.type().ends_with("identifier")) {
    throw Error(token.place, quoted(token.text) + " is not expected here.");
  }
  return std::string(token.text);
}

std::string Converter::joined(const Node& node) const {
  std::string out;
  for (size_t i = index(node.begin());
       i < words_.size() && begins_[i] < node.end();
       ++i) {
    out += words_[i].dropped ? "" : words_[i].token.text;
  }
  return out;
}

Place Converter::place(const Node& node) const {
  return words_.empty() ? Place{} : word(node).token.place;
}

// What the grammar takes and the tree has no form for.
void Converter::refuse(const Node& node) const {
  static const std::pair<std::string_view, std::string_view> ways[] = {
      {"goto_statement", "`goto`: write a loop with break and continue"},
      {"labeled_statement", "a label: write a loop with break and continue"},
      {"for_range_loop", "`for` over a range: count with an index"},
      {"base_class_clause", "a struct that inherits: give it a field instead"},
      {"bitfield_clause", "a field of some bits: shift and mask an integer"},
      {"structured_binding_declarator", "`auto [a, b]`: name each value"},
      {"initializer_pair", "`.field = value`: list the values in order"},
      {"fold_expression", "a fold: write the operations out"},
      {"parameter_pack_expansion", "a parameter pack: write each parameter"},
      {"string_literal", "a text: kernels have none"},
      {"template_instantiation", "an explicit instantiation: leave it out"},
      {"operator_cast", "a conversion operator: write a method"},
      {"variadic_parameter", "`...`: write each parameter"},
      {"seh_try_statement", "`__try`: Metal has no exceptions"},
      {"friend_declaration", "`friend`: make the fields public"}};
  for (const auto& [kind, way] : ways) {
    if (node.is(kind)) {
      throw Error(place(node), "Not supported: " + std::string(way) + ".");
    }
  }
  throw Error(
      place(node),
      quoted(joined(node)) + " is not supported here (" +
          std::string(node.type()) +
          "); write it with plain statements and expressions.");
}

} // namespace mlx::core::vulkan::msl
