// Pointers into threadgroup and thread memory that move between arrays. A
// pointer is an index into an array that is known when translating; arrays that
// one pointer may point into become parts of one. That is found out on the way,
// so the translation then begins again.
#pragma once

#include <map>
#include <string>

#include "msl/ast.h"

namespace msl {

// The key of a declared name, by its position.
std::string key_of(const Declarator& d);

// Which variables are parts of one array, by where they are declared. Other
// kernels, which have none, keep their code.
class Together {
 public:
  // The name of the group that `key` belongs to; empty without one.
  std::string group(const std::string& key) const {
    auto it = parent_.find(key);
    if (it == parent_.end()) {
      return "";
    }
    return it->second == key ? key : group(it->second);
  }
  // False if they were together.
  bool join(const std::string& a, const std::string& b) {
    for (auto& key : {a, b}) {
      parent_.try_emplace(key, key);
    }
    std::string first = group(a), second = group(b);
    parent_[second] = first;
    return first != second;
  }

 private:
  std::map<std::string, std::string> parent_;
};

// Thrown where a pointer would point into two variables.
struct Moves {
  std::string one, other;
};

} // namespace msl
