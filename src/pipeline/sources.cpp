#include "pipeline/sources.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "vk/config.h"

namespace mlx::core::vulkan {

namespace fs = std::filesystem;

namespace {

std::mutex path_mutex;
std::optional<std::string> path_override;

std::string kernel_path() {
  std::lock_guard lock(path_mutex);
  return path_override ? *path_override : config().kernel_path;
}

std::optional<std::string> read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return {};
  }
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// The name in a line `#include "name"`, else empty.
std::string_view included_name(std::string_view line) {
  auto skip = [&] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  };
  skip();
  if (!line.starts_with('#')) {
    return {};
  }
  line.remove_prefix(1);
  skip();
  if (!line.starts_with("include")) {
    return {};
  }
  auto first = line.find('"');
  if (first == line.npos) {
    return {};
  }
  line.remove_prefix(first + 1);
  auto last = line.find('"');
  return last == line.npos ? std::string_view{} : line.substr(0, last);
}

void collect_includes(std::string_view text, std::vector<IncludedSource>& out) {
  while (!text.empty()) {
    auto end = std::min(text.find('\n'), text.size());
    auto name = included_name(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    auto same = [&](const IncludedSource& s) { return s.name == name; };
    if (name.empty() || std::any_of(out.begin(), out.end(), same)) {
      continue;
    }
    auto body = read_source(name).value_or("");
    out.push_back({std::string(name), body});
    collect_includes(body, out);
  }
}

} // namespace

void set_kernel_path(std::string path) {
  std::lock_guard lock(path_mutex);
  path_override = std::move(path);
}

std::string source_name(std::string_view file) {
  return std::string(file) + (file.ends_with(".comp") ? "" : ".comp");
}

std::optional<std::string> read_source(std::string_view name) {
  // User-written GLSL may include only files of the dialect.
  if (name.starts_with('/') || name.find("..") != name.npos) {
    return {};
  }
  if (auto path = kernel_path(); !path.empty()) {
    if (auto text = read_file(fs::path(path) / name)) {
      return text;
    }
  }
  for (size_t i = 0; i < embedded_source_count; ++i) {
    if (name == embedded_sources[i].name) {
      return embedded_sources[i].text;
    }
  }
  auto& second = config().test.kernels;
  return second.empty() ? std::nullopt : read_file(fs::path(second) / name);
}

std::vector<IncludedSource> included_sources(std::string_view text) {
  std::vector<IncludedSource> out;
  collect_includes(text, out);
  return out;
}

std::string with_includes(std::string_view text) {
  std::string out(text);
  for (auto& [name, body] : included_sources(text)) {
    out += "\n//" + name + '\n' + body;
  }
  return out;
}

} // namespace mlx::core::vulkan
