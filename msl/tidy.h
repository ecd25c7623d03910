// Tokens as the parser reads them.
#pragma once

#include <unordered_map>

#include "msl/tokens.h"

namespace msl {

struct Tidy {
  Tokens tokens;
  // The index of each bracket's partner; SIZE_MAX for other tokens.
  std::vector<size_t> pairs;
  // The attributes behind a token, by its index.
  std::unordered_map<size_t, std::vector<Attribute>> attributes;
  // The unrolling that a pragma requests for a loop, by the loop's token.
  std::unordered_map<size_t, uint32_t> unroll;
};

// Removes words that the tree does not represent (attributes, inline,
// restrict), makes `unsigned int` one name and `>>` two tokens (no space before
// the second), and pairs brackets. `arena` owns new names. Throws Error for
// words that are never supported, and for brackets that do not pair or nest too
// deeply.
Tidy tidy(const Tokens& tokens, Arena& arena);

} // namespace msl
