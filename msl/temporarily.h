// Gives a variable another value until the end of a block.
#pragma once

#include <type_traits>
#include <utility>

namespace msl {

template <typename T>
class Temporarily {
 public:
  Temporarily(T& variable, std::type_identity_t<T> value)
      : variable_(variable), before_(std::exchange(variable, value)) {}
  ~Temporarily() {
    variable_ = before_;
  }
  Temporarily(const Temporarily&) = delete;

 private:
  T& variable_;
  T before_;
};

} // namespace msl
