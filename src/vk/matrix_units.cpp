#include "vk/matrix_units.h"

#include <charconv>
#include <tuple>

namespace mlx::core::vulkan {

namespace {

bool fits(const MatrixShape& s) {
  auto side = [](uint32_t n) { return n == 8 || n == 16; };
  return side(s.m) && side(s.n) && side(s.k);
}

auto rank(const MatrixShape& s) {
  return std::tuple(s.m * s.n * s.k, s.k, s.n);
}

} // namespace

std::string MatrixShape::text() const {
  return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
}

std::optional<MatrixShape> parse_matrix_shape(std::string_view text) {
  MatrixShape s;
  const char *at = text.data(), *end = at + text.size();
  for (uint32_t* side : {&s.m, &s.n, &s.k}) {
    if (side != &s.m) {
      if (at == end || *at != 'x') {
        return {};
      }
      ++at;
    }
    auto [next, error] = std::from_chars(at, end, *side);
    if (error != std::errc() || *side == 0) {
      return {};
    }
    at = next;
  }
  return at == end ? std::optional(s) : std::nullopt;
}

MatrixChoice choose_matrix(std::span<const MatrixShape> listed) {
  MatrixChoice choice;
  for (auto& s : listed) {
    if (fits(s) && (!choice.shape || rank(s) > rank(*choice.shape))) {
      choice.shape = s;
    }
  }
  if (!choice.shape) {
    choice.why = "the device lists none with float32 sums for a subgroup";
    for (size_t i = 0; i < listed.size(); ++i) {
      choice.why =
          (i ? choice.why + ", " : std::string("of ")) + listed[i].text();
    }
    if (!listed.empty()) {
      choice.why += " none has sides of 8 or 16";
    }
  }
  return choice;
}

} // namespace mlx::core::vulkan
