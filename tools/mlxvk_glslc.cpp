// mlxvk-glslc: compiles kernels exactly as the library does.
//   mlxvk-glslc [--spv out.spv] FILE[.comp] NAME=VALUE ...   one variant
//   mlxvk-glslc --all [TEXT]     all that plans choose (tests/variants) whose
//                                name has TEXT in it, such as softmax{T=f32
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "pipeline/capabilities.h"
#include "pipeline/compiler.h"
#include "pipeline/sources.h"
#include "variants/compile.h"
#include "variants/variants.h"

using namespace mlx::core::vulkan;
namespace fs = std::filesystem;

namespace {

// Reads the tree the file lies in, else ./src/kernels, else what is embedded.
std::string find_kernel(std::string file) {
  auto at = file.rfind("src/kernels/");
  if (at != file.npos && fs::exists(source_name(file))) {
    set_kernel_path(file.substr(0, at + 11));
  } else if (!std::getenv("MLX_VK_KERNEL_PATH") && fs::exists("src/kernels")) {
    set_kernel_path("src/kernels");
  }
  return at == file.npos ? file : file.substr(at + 12);
}

std::string strip(std::string file) {
  return file.ends_with(".comp") ? file.substr(0, file.size() - 5) : file;
}

bool compile(
    const std::string& file,
    std::span<const Define> defines,
    bool verbose,
    const char* output) {
  try {
    auto code = compile_kernel(strip(file), defines);
    auto& r = code.reflection;
    if (verbose) {
      std::printf(
          "%s: %zu bytes, local size %u %u %u, arguments %u bytes%s, shared %u\n ",
          code.name.c_str(),
          code.spirv.size() * 4,
          r.local_size[0],
          r.local_size[1],
          r.local_size[2],
          r.args_size,
          code.args_in_memory ? " (in memory)" : "",
          r.shared_size);
      for (auto c : r.capabilities) {
        std::printf(" %s", capability_name(c).c_str());
      }
      std::printf("\n");
    }
    if (output) {
      std::ofstream(output, std::ios::binary)
          .write(
              reinterpret_cast<const char*>(code.spirv.data()),
              code.spirv.size() * 4);
    }
    return true;
  } catch (const std::exception& e) {
    static std::set<std::string> seen; // one report of equal errors
    auto* compile_error = dynamic_cast<const CompileError*>(&e);
    if (!compile_error || seen.insert(compile_error->message).second) {
      std::fprintf(stderr, "%s\n", e.what());
    }
    return false;
  }
}

} // namespace

int main(int argc, char** argv) {
  setenv("MLX_VK_TEST", "kernels=" MLXVK_EMULATION, 0);
  const char* output = nullptr;
  std::string file;
  NamedValues values;
  bool all = false;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg == "--all") {
      all = true;
    } else if (arg == "--spv" && i + 1 < argc) {
      output = argv[++i];
    } else if (auto eq = arg.find('='); eq != arg.npos && !all) {
      values.emplace_back(arg.substr(0, eq), arg.substr(eq + 1));
    } else {
      file = arg;
    }
  }
  if (all) {
    find_kernel("");
    size_t variants = 0, failed = 0;
    for (auto& v : all_variants().all()) {
      if (log_name(v.file, v.defines).find(file) != std::string::npos) {
        ++variants;
        failed += !compile(v.file, v.defines, !file.empty(), nullptr);
      }
    }
    std::printf("%zu variants, %zu failed\n", variants, failed);
    if (!variants) {
      std::fprintf(
          stderr,
          "No variant that tests/variants enumerates has \"%s\" in its name.\n",
          file.c_str());
    }
    return failed || !variants;
  }
  if (file.empty() || file.starts_with('-')) {
    std::fprintf(
        stderr,
        "usage: mlxvk-glslc [--spv FILE] KERNEL [NAME=VALUE ...]\n"
        "       mlxvk-glslc --all [TEXT]\n");
    return 2;
  }
  file = find_kernel(file);
  if (compile(file, to_defines(values), true, output)) {
    return 0;
  }
  // What the kernel expects may be what was missing.
  for (auto& v : all_variants().all()) {
    if (v.file == strip(file)) {
      std::string example = log_name(v.file, v.defines);
      std::fprintf(stderr, "A variant of it is %s.\n", example.c_str());
      break;
    }
  }
  return 1;
}
