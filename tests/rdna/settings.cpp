#include "settings.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace rdna {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Settings read() {
  Settings s;
  s.processor = variable("RDNA_PROCESSOR");
  // "gfx" major minor stepping; the last two are one digit each.
  if (s.processor.size() > 5 && s.processor.starts_with("gfx")) {
    s.gfx = std::atoi(s.processor.substr(3, s.processor.size() - 5).c_str());
  } else {
    std::fputs("RDNA_PROCESSOR has to name a chip, such as gfx1100.\n", stderr);
    std::abort();
  }
  auto seed = variable("RDNA_SEED");
  s.seed = seed.empty() ? 1 : std::strtoull(seed.c_str(), nullptr, 0);
  s.report = variable("RDNA_REPORT");
  s.counts = variable("RDNA_COUNTS");
  return s;
}

} // namespace

const Settings& settings() {
  static const auto* s = new Settings(read());
  return *s;
}

void report(const std::string& fault) {
  std::string text = "rdna: " + fault + "\n";
  std::fputs(text.c_str(), stderr);
  if (auto& folder = settings().report; !folder.empty()) {
    auto file = folder + "/" + std::to_string(getpid());
    if (FILE* out = std::fopen(file.c_str(), "a")) {
      std::fputs(text.c_str(), out);
      std::fclose(out);
    }
  }
}

} // namespace rdna
