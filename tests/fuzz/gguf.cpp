// mx.load of a GGUF file: arrays and metadata, or a sentence.
#include <cstring>
#include <exception>

#include "fuzz/fuzz.h"
#include "mlx/array.h"
#include "mlx/io.h"

using namespace mlx::core;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::File file;
  file.write(data, size);
  try {
    auto [arrays, metadata] = load_gguf(file.path());
    for (auto& [name, a] : arrays) {
      // Read where it lies: the sanitizer knows how long it is.
      auto* p = a.data<uint8_t>();
      for (size_t i = 0; i < a.nbytes(); i += 64) {
        static volatile uint8_t sink;
        sink = p[i];
      }
      FUZZ_CHECK(a.nbytes() <= 2 * size);
    }
  } catch (const std::exception& e) {
    FUZZ_CHECK(std::string_view(e.what()).starts_with("[load_gguf] "));
    FUZZ_CHECK(std::strlen(e.what()) < 2000);
  }
  return 0;
}
