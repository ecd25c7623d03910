// msl BODY [--header FILE] [--in NAME:TYPE]... [--out NAME:TYPE]...
//     [--template NAME=VALUE]... [--threads X[,Y,Z]] [--subgroup N]
//
// Prints the GLSL of the kernel whose body is in the file BODY (-: standard
// input), as mx.fast.metal_kernel would translate it. TYPE is one of MSL's:
// float, half, uint8_t. VALUE is a type, a number, true or false. Ends with 1
// and the error where the kernel is refused.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "msl/translate.h"

namespace {

int usage() {
  std::cerr << "usage: msl BODY [--header FILE] [--in NAME:TYPE]... "
               "[--out NAME:TYPE]...\n           [--template NAME=VALUE]... "
               "[--threads X[,Y,Z]] [--subgroup N]\n";
  return 2;
}

bool read(const std::string& path, std::string& out) {
  std::ifstream file;
  std::istream* in = &std::cin;
  if (path != "-") {
    file.open(path);
    in = &file;
  }
  out.assign(std::istreambuf_iterator<char>(*in), {});
  if (!*in && !in->eof()) {
    std::cerr << "msl: " << path << " cannot be read.\n";
    return false;
  }
  return true;
}

msl::TemplateValue template_value(const std::string& text, size_t at) {
  std::string name = text.substr(0, at), value = text.substr(at + 1);
  if (value == "true" || value == "false") {
    return {name, value == "true"};
  }
  char* end = nullptr;
  long long number = std::strtoll(value.c_str(), &end, 0);
  if (!value.empty() && *end == '\0') {
    return {name, int64_t(number)};
  }
  return {name, value};
}

// Whether `option` takes `value`.
bool take(
    const std::string& option,
    const std::string& value,
    msl::Source& source,
    msl::Target& target,
    std::array<uint32_t, 3>& threads) {
  if (option == "--header") {
    return read(value, source.header);
  }
  if (option == "--subgroup") {
    target.subgroup = std::strtoul(value.c_str(), nullptr, 10);
    return target.subgroup > 0;
  }
  if (option == "--threads") {
    auto& t = threads;
    return std::sscanf(value.c_str(), "%u,%u,%u", &t[0], &t[1], &t[2]) > 0;
  }
  bool input = option == "--in";
  size_t at = value.find(option == "--template" ? '=' : ':');
  if (at == value.npos || at == 0) {
    return false;
  }
  if (option == "--template") {
    source.templates.push_back(template_value(value, at));
  } else if (input || option == "--out") {
    auto& argument = source.arguments.emplace_back();
    argument.name = value.substr(0, at);
    argument.type = value.substr(at + 1);
    argument.output = !input;
  } else {
    return false;
  }
  return true;
}

} // namespace

int main(int argc, char** argv) {
  msl::Source source;
  msl::Target target;
  std::array<uint32_t, 3> threads{1, 1, 1};
  source.name = "kernel";
  if (argc < 2 || argc % 2 != 0 || !read(argv[1], source.body)) {
    return usage();
  }
  for (int i = 2; i < argc; i += 2) {
    if (!take(argv[i], argv[i + 1], source, target, threads)) {
      std::cerr << "msl: " << argv[i] << " " << argv[i + 1]
                << " is not understood.\n";
      return usage();
    }
  }
  try {
    auto made = msl::translate(source, target);
    std::cout << msl::with_threads(made.glsl, threads);
    return 0;
  } catch (const msl::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
