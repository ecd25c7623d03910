// Pointers into threadgroup and thread memory that move between arrays. A
// pointer is an index into an array that must be known at translation, so
// arrays that one pointer may point into become parts of one array. They are
// found during translation, which is then repeated.
#pragma once

#include <map>
#include <string>

#include "msl/ast.h"

namespace msl {

// The key of a declared name, by its position.
std::string key_of(const Declarator& d);

// Groups of variables that become parts of one array, by where they are
// declared; none in kernels without such pointers.
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
  // False if they were in one group already.
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
