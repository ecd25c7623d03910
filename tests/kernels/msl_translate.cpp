// The translator over kernels that extract.py writes, without a device.
//
//   msl_translate FILE [--subgroup N] [--float16] [--only TEXT] [--glsl]
//
// Each line of FILE is a kernel with instances. For each instance whose
// kernel's name has TEXT in it, a line of JSON: "kernel" (the line of FILE,
// from 0), "instance", and "error": null, or why it does not translate or,
// which is our bug, why glslang refuses the result ("refused": true). With
// --glsl the GLSL itself, and nothing is compiled.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "msl/translate.h"
#include "pipeline/library.h"

using namespace mlx::core::vulkan;
using nlohmann::json;

namespace {

struct Options {
  const char* file = nullptr;
  std::string only;
  msl::Target target;
  bool float16 = false; // as on devices that compute with it
  bool glsl = false;
};

msl::Source source_of(const json& kernel, const json& instance) {
  msl::Source source;
  source.name = kernel["name"];
  source.header = kernel["header"];
  source.body = kernel["source"];
  for (auto& a : instance["arguments"]) {
    auto& argument = source.arguments.emplace_back();
    argument.name = a["name"];
    argument.type = a["type"];
    argument.output = a["output"];
    argument.constant = a["constant"];
    argument.reference = a["reference"];
    argument.atomic = a["atomic"];
  }
  for (auto& t : instance["templates"]) {
    auto& value = source.templates.emplace_back();
    value.name = t["name"];
    if (t["value"].is_boolean()) {
      value.value = t["value"].get<bool>();
    } else if (t["value"].is_number()) {
      value.value = t["value"].get<int64_t>();
    } else {
      value.value = t["value"].get<std::string>();
    }
  }
  return source;
}

json run(const Options& options, const json& kernel, const json& instance) {
  json result = {{"error", nullptr}, {"refused", false}};
  try {
    auto made = msl::translate(source_of(kernel, instance), options.target);
    auto threads = instance["threads"].get<std::array<uint32_t, 3>>();
    std::string glsl = msl::with_threads(made.glsl, threads);
    if (options.glsl) {
      result["glsl"] = glsl;
      return result;
    }
    NamedValues global;
    if (options.float16) {
      global.emplace_back("NATIVE_F16", "1");
    }
    result["refused"] = true; // until it is compiled
    auto source = kernel_source(
        kernel["name"].get<std::string>(), {}, false, global, &glsl);
    load_or_compile(source, nullptr);
    result["refused"] = false;
  } catch (const std::exception& e) {
    result["error"] = e.what();
  }
  return result;
}

int usage() {
  std::fprintf(
      stderr,
      "usage: msl_translate FILE [--subgroup N] [--float16] [--only TEXT] "
      "[--glsl]\n");
  return 2;
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg == "--subgroup" && i + 1 < argc) {
      options.target.subgroup = std::atoi(argv[++i]);
    } else if (arg == "--float16") {
      options.float16 = true;
    } else if (arg == "--only" && i + 1 < argc) {
      options.only = argv[++i];
    } else if (arg == "--glsl") {
      options.glsl = true;
    } else if (!options.file && arg[0] != '-') {
      options.file = argv[i];
    } else {
      return usage();
    }
  }
  if (!options.file) {
    return usage();
  }
  std::vector<json> kernels;
  std::ifstream file(options.file);
  for (std::string line; std::getline(file, line);) {
    kernels.push_back(json::parse(line));
  }
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  auto work = [&] {
    for (size_t i; (i = next++) < kernels.size();) {
      auto& kernel = kernels[i];
      std::string name = kernel.value("name", "");
      if (!kernel.contains("instances") ||
          name.find(options.only) == name.npos) {
        continue;
      }
      for (size_t k = 0; k < kernel["instances"].size(); ++k) {
        json result = run(options, kernel, kernel["instances"][k]);
        result["kernel"] = i;
        result["instance"] = k;
        std::lock_guard lock(mutex);
        if (options.glsl && result.contains("glsl")) {
          std::printf("%s\n", result["glsl"].get<std::string>().c_str());
        } else {
          std::printf("%s\n", result.dump().c_str());
        }
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) {
    threads.emplace_back(work);
  }
  work();
  for (auto& thread : threads) {
    thread.join();
  }
  return 0;
}
