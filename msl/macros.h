// Macros with and without arguments, and their expansion.
#pragma once

#include <unordered_map>

#include "msl/tokens.h"

namespace msl {

struct Macro {
  bool takes_arguments = false, variadic = false;
  std::vector<std::string_view> parameters;
  Tokens body;
  bool active = false; // being expanded: its own name is not expanded again
};

class Macros {
 public:
  explicit Macros(Arena& arena);

  // The tokens after #define. Throws Error.
  void define(const Tokens& line, const Place& place);
  void undefine(std::string_view name) {
    macros_.erase(name);
  }
  bool defined(std::string_view name) const {
    return macros_.contains(name);
  }
  Tokens expand(const Tokens& in, int depth = 0);

 private:
  struct Frame;
  class Reader;
  using Arguments = std::vector<Tokens>;
  std::vector<Tokens>
  arguments(Reader& reader, const Macro& macro, const Token& name);
  Tokens replace(
      const Macro& macro,
      const Token& name,
      Arguments arguments,
      int depth);
  Token stringize(const Tokens& argument, const Place& place);
  Token paste(const Token& left, const Token& right, const Place& place);
  void count(size_t more, const Place& place);

  Arena& arena_;
  std::unordered_map<std::string_view, Macro> macros_;
  size_t made_ = 0; // tokens, of all expansions
};

} // namespace msl
