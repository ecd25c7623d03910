#include "ops/tuned/choices.h"

#include <nlohmann/json.hpp>

#include "vk/gpu_class.h"

namespace mlx::core::vulkan {

std::optional<std::vector<Choice>> choices_in(const std::string& text) {
  std::vector<Choice> found;
  try {
    auto table = nlohmann::json::parse(text.empty() ? "{}" : text);
    if (table.value("plans", 0u) != plans_version) {
      return {};
    }
    auto hash = [](const nlohmann::json& j) {
      return std::stoull(j.get<std::string>(), nullptr, 16);
    };
    for (auto& j : table.at("choices")) {
      found.push_back(
          {hash(j.at("class")),
           j.at("view").get<std::string>(),
           hash(j.at("plan")),
           j.at("sizes").get<Sizes>()});
    }
  } catch (const std::exception&) {
    return {};
  }
  return found;
}

bool holds(const Views& views, uint32_t view, const Choice& c, Planned p) {
  auto plan = plan_of(views, view, with_sizes(std::move(p), c.sizes));
  return plan.plan == c.plan && plan.fits;
}

std::vector<std::string> rows_of(
    const Caps& device,
    std::span<const EmbeddedSource> rows) {
  auto& row =
      gpu_class(device.vendor_id, device.name, device.min_subgroup_size);
  std::vector<std::string> found;
  for (std::string_view name; auto& file : rows) {
    name = file.name;
    auto slash = name.find('/');
    auto chip = name.substr(slash + 1, name.rfind(".json") - slash - 1);
    if (name.substr(0, slash) == row.name &&
        device.name.find(chip) != device.name.npos) {
      found.push_back(file.text);
    }
  }
  return found;
}

} // namespace mlx::core::vulkan
