// ship_kernels OUTPUT LIST CACHE: compiles the kernels of a list
// (pipeline/kernel_list.h) into the table that the library carries
// (pipeline/shipped.h). CACHE is a folder of what earlier runs compiled.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>

#include "pipeline/disk_cache.h"
#include "pipeline/kernel_list.h"
#include "pipeline/library.h"
#include "pipeline/shipped.h"

using namespace mlx::core::vulkan;

namespace {

std::vector<ListedKernel> read(const char* path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  auto kernels = kernels_in(text);
  if (!in || !kernels) {
    throw std::runtime_error(std::string(path) + " is not a list of kernels.");
  }
  return *kernels;
}

KernelCode compile(const ListedKernel& k, DiskCache& cache) {
  auto source = kernel_source(
      k.file,
      to_defines(k.defines),
      k.args_in_memory,
      k.globals,
      k.source.empty() ? nullptr : &k.source);
  auto code = load_or_compile(source, &cache);
  store_code(cache, code);
  return code;
}

} // namespace

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::fprintf(stderr, "usage: ship_kernels OUTPUT LIST CACHE\n");
    return 2;
  }
  DiskCache cache(argv[3]);
  std::map<std::string, std::vector<std::byte>> entries;
  for (auto& kernel : read(argv[2])) {
    auto code = compile(kernel, cache);
    entries[code.cache_key] = entry_of(code);
  }
  auto table = table_of(entries);
  std::ofstream out(argv[1], std::ios::binary);
  out.write(reinterpret_cast<const char*>(table.data()), table.size());
  out.close();
  std::printf("%zu kernels, %zu bytes\n", entries.size(), table.size());
  return out ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(
      stderr,
      "%s\ntools/record_kernels.py makes src/pipeline/shipped.list again.\n",
      e.what());
  return 1;
}
