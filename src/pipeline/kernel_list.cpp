#include "pipeline/kernel_list.h"

#include <algorithm>
#include <charconv>

namespace mlx::core::vulkan {

namespace {

constexpr std::string_view globals_word = "globals";

// Cuts `text` up to the first `end`, which is dropped; all of it without one.
std::string_view cut(std::string_view& text, char end) {
  auto part = text.substr(0, text.find(end));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

// "A=1 B=f32".
std::optional<NamedValues> values_in(std::string_view text) {
  NamedValues out;
  while (!text.empty()) {
    auto word = cut(text, ' ');
    auto equals = word.find('=');
    if (equals == 0 || equals == word.npos) {
      return {};
    }
    out.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return out;
}

std::string text_of(const NamedValues& values) {
  std::string out;
  for (auto& [name, value] : values) {
    out += (out.empty() ? "" : " ") + name + '=' + value;
  }
  return out;
}

bool is_word(std::string_view text) {
  return text.find_first_of(" {}\n") == text.npos;
}

bool can_be_listed(const ListedKernel& k) {
  auto words = [](auto& values) {
    return std::all_of(values.begin(), values.end(), [](auto& v) {
      return is_word(v.first) && is_word(v.second);
    });
  };
  return !k.file.empty() && k.file[0] != '*' && k.file[0] != '#' &&
      k.file != globals_word && is_word(k.file) && words(k.defines) &&
      words(k.globals);
}

// The kernel of a line; `rest` begins with its source.
std::optional<ListedKernel> kernel_in(
    std::string_view line,
    std::string_view& rest) {
  ListedKernel k;
  if (line.starts_with('*')) {
    k.args_in_memory = true;
    line.remove_prefix(1);
  }
  auto name = line.substr(0, line.find_first_of("{ "));
  k.file = name;
  line.remove_prefix(name.size());
  if (line.starts_with('{')) {
    auto close = line.find('}');
    auto values = close == line.npos ? std::nullopt
                                     : values_in(line.substr(1, close - 1));
    if (!values) {
      return {};
    }
    k.defines = std::move(*values);
    line.remove_prefix(close + 1);
  }
  if (line.starts_with(' ')) {
    size_t bytes = 0;
    auto* end = line.data() + line.size();
    auto [at, error] = std::from_chars(line.data() + 1, end, bytes);
    if (error != std::errc{} || at != end || bytes >= rest.size() ||
        rest[bytes] != '\n') {
      return {};
    }
    k.source = rest.substr(0, bytes);
    rest.remove_prefix(bytes + 1);
  } else if (!line.empty()) {
    return {};
  }
  return can_be_listed(k) ? std::optional(std::move(k)) : std::nullopt;
}

} // namespace

std::string text_of(std::span<const ListedKernel> kernels) {
  std::string out;
  NamedValues globals;
  for (auto& k : kernels) {
    if (!can_be_listed(k)) {
      continue;
    }
    if (k.globals != globals) {
      globals = k.globals;
      ((out += globals_word) += ' ') += text_of(globals) + '\n';
    }
    out += (k.args_in_memory ? "*" : "") + k.file;
    if (!k.defines.empty()) {
      out += '{' + text_of(k.defines) + '}';
    }
    if (!k.source.empty()) {
      out += ' ' + std::to_string(k.source.size()) + '\n' + k.source;
    }
    out += '\n';
  }
  return out;
}

std::optional<std::vector<ListedKernel>> kernels_in(std::string_view text) {
  std::vector<ListedKernel> out;
  NamedValues globals;
  while (!text.empty()) {
    auto line = cut(text, '\n');
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    if (line.starts_with(globals_word) &&
        line.substr(globals_word.size(), 1) == " ") {
      auto values = values_in(line.substr(globals_word.size() + 1));
      if (!values) {
        return {};
      }
      globals = std::move(*values);
      continue;
    }
    auto kernel = kernel_in(line, text);
    if (!kernel) {
      return {};
    }
    kernel->globals = globals;
    out.push_back(std::move(*kernel));
  }
  return out;
}

} // namespace mlx::core::vulkan
