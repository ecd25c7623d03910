// What tests ask of messages.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace {

// What f() throws; empty if nothing.
[[maybe_unused]] std::string message(auto f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

[[maybe_unused]] bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

} // namespace
