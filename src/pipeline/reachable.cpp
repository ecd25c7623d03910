#include "pipeline/reachable.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <vector>

namespace mlx::core::vulkan {

namespace {

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// The token at `i`: a name, number, string, directive with its line break, or
// one character.
std::string_view token_at(std::string_view text, size_t i) {
  size_t end = i + 1;
  if (in_name(text[i])) {
    while (end < text.size() && in_name(text[end])) {
      ++end;
    }
  } else if (text[i] == '"' || text[i] == '#') {
    end = text.find(text[i] == '#' ? '\n' : '"', end);
    end = std::min(end, text.size() - 1) + 1;
  }
  return text.substr(i, end - i);
}

// A declaration at file scope, or a directive.
struct Item {
  std::string_view text;
  std::string_view function; // its name, if it may be left out
  bool kept = false;
};

std::vector<Item> items_of(std::string_view text) {
  std::vector<Item> items;
  std::string_view file, last, name, token;
  size_t begin = 0;
  int depth = 0;
  bool body = false; // of a function
  auto add = [&](size_t end) {
    bool other = body && file.ends_with(".glsl") && name != "main";
    items.push_back(
        {text.substr(begin, end - begin), other ? name : std::string_view()});
    begin = end;
    body = false;
  };
  for (size_t i = 0; i < text.size(); i += token.size()) {
    token = token_at(text, i);
    char c = token[0];
    if (std::isspace(static_cast<unsigned char>(c))) {
      continue;
    }
    if (c == '#') {
      if (token.starts_with("#line ") && token.ends_with("\"\n")) {
        file = token.substr(token.find('"') + 1);
        file.remove_suffix(2);
      }
      if (depth == 0) {
        add(i + token.size());
      }
      name = "main"; // keeps a function with a directive
      continue;
    }
    depth -= c == ')' || c == ']' || c == '}';
    if (depth == 0) {
      name = c == '(' ? last : name;
      body = c == '{' ? last == ")" : body;
      if (c == ';' || (c == '}' && body)) {
        add(i + 1);
      }
    }
    depth += c == '(' || c == '[' || c == '{';
    last = token;
  }
  body = false; // the parser refuses a function without an end
  add(text.size());
  return items;
}

} // namespace

std::string reachable_only(std::string_view text) {
  auto items = items_of(text);
  std::unordered_map<std::string_view, std::vector<Item*>> functions;
  std::vector<Item*> named;
  for (auto& item : items) {
    auto& list = item.function.empty() ? named : functions[item.function];
    list.push_back(&item);
  }
  while (!named.empty()) {
    auto& item = *named.back();
    named.pop_back();
    item.kept = true;
    for (size_t i = 0; i < item.text.size();) {
      auto token = token_at(item.text, i);
      if (auto found = functions.extract(token)) {
        named.insert(named.end(), found.mapped().begin(), found.mapped().end());
      }
      i += token.size();
    }
  }
  std::string out;
  for (auto& item : items) {
    if (item.kept) {
      out += item.text;
    } else {
      out.append(std::count(item.text.begin(), item.text.end(), '\n'), '\n');
    }
  }
  return out;
}

} // namespace mlx::core::vulkan
