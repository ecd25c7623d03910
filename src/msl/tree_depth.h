#pragma once

#include "msl/parse.h"
#include "msl/tree.h"

namespace mlx::core::vulkan::msl {

// What walks the tree, here and in the translator, calls itself.
class Converter::Depth {
 public:
  Depth(Converter& converter, const Node& node) : depth_(converter.depth_) {
    constexpr int deepest = 500;
    if (++depth_ > deepest) {
      --depth_;
      throw Error(
          converter.place(node),
          "Expressions or statements are nested more than " +
              std::to_string(deepest) +
              " deep; move a part into a variable or a function.");
    }
  }
  ~Depth() {
    --depth_;
  }
  Depth(const Depth&) = delete;

 private:
  int& depth_;
};

} // namespace mlx::core::vulkan::msl
