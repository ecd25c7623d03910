// How classify() (words.h) works: one pass, with the scopes of C++.
#pragma once

#include <unordered_set>

#include "msl/words.h"

namespace mlx::core::vulkan::msl {

class Classifier {
 public:
  Classifier(Words& words, NameScope& file, bool in_function);
  void run();

 private:
  // What a bracket opens, where that is known before it is reached.
  enum class BraceKind : uint8_t { Unknown, Struct, Block, List, Capture };

  // What is known of names.
  Meaning meaning(std::string_view name) const;
  void declare(std::string_view name, Meaning what);
  void push(NameScope::Kind kind, size_t end, std::string_view name = {});
  bool in_template() const;
  const NameScope* around() const;

  // What words from here on are.
  bool ends_operand(size_t i) const;
  bool is_capture(size_t open) const;
  size_t angle_end(size_t open, bool simple) const;
  size_t arguments_end(size_t i) const;
  size_t type_end(size_t i, size_t limit) const;
  bool is_type(size_t begin, size_t end) const;
  bool is_chain(size_t begin, size_t end) const;
  bool applies(size_t open) const;
  bool opens_namespace() const;

  // Names.
  void word_name(size_t i);
  void mark_angles(size_t open, size_t end);
  bool shadows(size_t i, Meaning what) const;
  bool follows_qualifier(size_t i) const;
  bool casts_to(size_t i) const;
  bool is_constructor(size_t i) const;
  void construct(size_t i);

  // Keywords that declare (classify_declarations.cpp).
  void keyword(size_t i);
  void template_parameters(size_t i);
  void templated_name(size_t i, size_t end);
  size_t declaration_end(size_t i) const;
  void aggregate(size_t i);
  void type_definition(size_t i);
  void operator_name(size_t i);

  // Punctuation.
  void punctuation(size_t i);
  size_t body_of(size_t i);
  void bracket(size_t i);
  void brace(size_t i);

  Words& words_;
  std::vector<size_t> pairs_;
  std::vector<BraceKind> kinds_;
  std::vector<std::string_view> aggregates_;
  std::unordered_map<size_t, std::string_view> struct_names_; // of a {
  std::unordered_set<size_t> names_; // that are being declared
  std::deque<NameScope> owned_;
  std::vector<NameScope*> scopes_;
  size_t last_ = SIZE_MAX; // the word before, of those not dropped
};

} // namespace mlx::core::vulkan::msl
