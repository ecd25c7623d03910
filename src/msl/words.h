// Tokens with what is known of them, spelled so that a grammar without a table
// of names reads them rightly.
#pragma once

#include <span>
#include <unordered_map>

#include "msl/tokens.h"

namespace mlx::core::vulkan::msl {

enum class Meaning : uint8_t {
  None,
  Type,
  TypeTemplate,
  BuiltInTypeTemplate, // whose bare name is no type
  ValueTemplate, // functions and variables
  Variable,
};

// What Metal and MLX's headers give a name.
Meaning built_in_meaning(std::string_view name);

// Of a word that cannot be taken: why, and the nearest way. Else empty.
std::string refused_word(std::string_view name);

bool is_keyword(std::string_view name); // that the grammar is shown as it is
bool is_space(std::string_view name); // device, constant, threadgroup, thread
bool is_qualifier(std::string_view name); // those, const, constexpr, volatile

struct Word {
  Token token; // its text: what the user wrote
  enum class Role : uint8_t {
    Plain,
    Type, // the name of a type
    Qualifier,
    Angle, // < or > of a template
    Fixed, // has its spelling
  };
  Role role = Role::Plain;
  bool dropped = false;
  bool glued = false; // no space before it
  bool casts = false; // ) after the type of a cast
  bool controls = false; // ) of if, for, while and switch
  bool initializes = false; // { or } of a list
  bool makes_type = false; // the name of a template whose instances are types
  bool ends_lambda = false; // }
  bool postfix = false; // ++ or -- after what it changes
  std::string_view spelling;
  uint32_t unroll = 0; // before it
  std::vector<Attribute> attributes; // after it

  bool is(std::string_view what) const {
    return token.is(what);
  }
  bool is_name() const {
    return token.is_name();
  }
};

using Words = std::vector<Word>;

// Takes out what the tree has no place for (attributes, inline, metal::, using
// namespace), joins `unsigned int`, and refuses words. Brackets pair
// afterwards. Throws Error.
Words normalize(
    const Tokens& tokens,
    std::vector<std::string_view>& namespaces,
    Arena& arena);

struct NameScope {
  enum class Kind : uint8_t {
    File,
    Struct,
    Block,
    List,
    Template,
    Parameters, // of a function and what it does
  };
  Kind kind = Kind::File;
  size_t end = SIZE_MAX; // the index of its last word
  std::string_view name; // of a struct
  std::unordered_map<std::string_view, Meaning> names;
  // Of the statement that is being read: brackets open, and whether it
  // declares.
  int open = 0;
  bool declares = false;
};

// Sets roles and spellings. `scopes` begins with what is known and keeps what
// is declared at file level. `in_function`: the words are statements.
void classify(Words& words, NameScope& file, bool in_function);

// The index of each bracket's partner; SIZE_MAX where there is no bracket.
// Throws Error where they do not pair or nest too deeply.
std::vector<size_t> pairs(const Words& words);

} // namespace mlx::core::vulkan::msl
