// MLX_RANK and the file of MLX_HOSTFILE, which is JSON: a rank or a sentence.
// Input: a line for the rank, then the file.
#include "fuzz/fuzz.h"
#include "vk/launcher.h"

using namespace mlx::core::vulkan;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto all = fuzz::text(data, size);
  auto line = all.find('\n');
  std::string rank(all.substr(0, line));
  auto file = line == all.npos ? "" : std::string(all.substr(line + 1));
  auto found = find_launch(
      [&](const char* name) -> const char* {
        std::string_view n = name;
        return n == "MLX_RANK"    ? rank.c_str()
            : n == "MLX_HOSTFILE" ? "/hosts"
                                  : nullptr;
      },
      [&](const std::string&) -> std::optional<std::string> { return file; });
  bool none = rank.c_str()[0] == 0;
  FUZZ_CHECK(!found.local_rank || found.why.empty());
  FUZZ_CHECK(none || found.local_rank || found.why.size() > 20);
  return 0;
}
