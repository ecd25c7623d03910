// A module as the disk cache may hold it: reflected, or refused by an
// exception.
#include <algorithm>
#include <cstring>
#include <exception>
#include <vector>

#include "fuzz/fuzz.h"
#include "pipeline/capabilities.h"
#include "pipeline/reflect.h"

using namespace mlx::core::vulkan;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint32_t> words(size / 4);
  if (!words.empty()) {
    std::memcpy(words.data(), data, words.size() * 4);
  }
  for (bool in_memory : {false, true}) {
    try {
      auto r = reflect(words, in_memory);
      FUZZ_CHECK(is_spirv(words));
      auto& all = r.capabilities;
      FUZZ_CHECK(
          std::adjacent_find(all.begin(), all.end(), std::greater_equal<>()) ==
          all.end());
      for (auto c : all) {
        FUZZ_CHECK(std::binary_search(
            r.capabilities.begin(), r.capabilities.end(), c));
        FUZZ_CHECK(!capability_name(c).empty());
      }
    } catch (const std::exception& e) {
      FUZZ_CHECK(std::strlen(e.what()) > 10);
    }
  }
  return 0;
}
