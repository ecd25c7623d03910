#include "pipeline/variants.h"

#include <charconv>

namespace mlx::core::vulkan {

namespace {

// Cuts the part before `separator` off the front of `s`.
std::string_view take(std::string_view& s, char separator) {
  auto end = s.find(separator);
  auto part = s.substr(0, end);
  s = end == s.npos ? std::string_view{} : s.substr(end + 1);
  return part;
}

void add_group(std::string_view group, std::vector<NamedValues>& out) {
  std::vector<NamedValues> product = {{}};
  while (!group.empty()) {
    auto word = take(group, ' ');
    if (word.empty()) {
      continue;
    }
    std::string name(take(word, '='));
    std::vector<NamedValues> next;
    for (auto& partial : product) {
      auto values = word;
      do {
        next.push_back(partial);
        next.back().emplace_back(name, take(values, ','));
      } while (!values.empty());
    }
    product = std::move(next);
  }
  out.insert(out.end(), product.begin(), product.end());
}

} // namespace

std::vector<NamedValues> parse_variants(std::string_view source) {
  auto line = source.substr(0, source.find('\n'));
  constexpr std::string_view head = "// variants:";
  if (!line.starts_with(head)) {
    return {};
  }
  line.remove_prefix(head.size());
  while (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  std::vector<NamedValues> out;
  do {
    add_group(take(line, ';'), out);
  } while (!line.empty());
  return out;
}

std::vector<Define> to_defines(const NamedValues& values) {
  std::vector<Define> out;
  for (auto& [name, text] : values) {
    int64_t n = 0;
    auto* end = text.data() + text.size();
    auto [rest, error] = std::from_chars(text.data(), end, n);
    if (auto type = type_named(text)) {
      out.emplace_back(name, *type);
    } else if (error == std::errc{} && rest == end && !text.empty()) {
      out.emplace_back(name, n);
    } else {
      out.emplace_back(name, std::string_view(text));
    }
  }
  return out;
}

} // namespace mlx::core::vulkan
