// Plans by name: what a device can run for a problem beside a plan's choice.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mlx::core::vulkan {

// What distinguishes a plan from the others of its problem, in words that hold
// for any size: "tall {} x {}", with a number for each pair of braces.
struct PlanName {
  std::string_view text; // a literal
  std::array<uint32_t, 4> numbers{};

  bool operator==(const PlanName&) const = default;
  std::string str() const {
    std::string name(text);
    size_t at = 0;
    for (uint32_t number : numbers) {
      at = name.find("{}", at);
      if (at == name.npos) {
        break;
      }
      name.replace(at, 2, std::to_string(number));
    }
    return name;
  }
};

template <typename Plan>
struct Named {
  PlanName name;
  Plan plan;
};

// Collects the plans of a problem, or only the one of a name.
template <typename Plan>
class Candidates {
 public:
  explicit Candidates(const PlanName* wanted) : wanted_(wanted) {}

  template <typename Make>
  void add(const PlanName& name, Make make) {
    if (!wanted_ || *wanted_ == name) {
      found.push_back({name, make()});
    }
  }
  std::vector<Named<Plan>> found;

 private:
  const PlanName* wanted_;
};

} // namespace mlx::core::vulkan
