// What plans choose for a model's step on a device, and what its compiler makes
// of it; needs no hardware. tools/cost/ runs it.
//
//   driver_cost [OPTION=VALUE...]
//     cases=model|validation    the models' steps (default), or what is timed
//     type=bf16|f16, group=64   items of x, weights per scale
//     plans=NAME                of this row of tests/variants/devices.cpp, not
//                               of the device that compiles
//     only=TEXT                 kernels whose name contains it
//
// Writes JSON objects, a line each: the device, then for each kernel its
// executables with their texts, and for each dispatch its work.
#include <algorithm>
#include <cstdio>
#include <map>

#include "drivers/cost_cases.h"
#include "drivers/null_device.h"

using namespace mlx::core::vulkan;
using nlohmann::json;

namespace {

void write(const json& line) {
  // Assembly may contain a name in another encoding.
  auto handler = json::error_handler_t::replace;
  std::printf("%s\n", line.dump(-1, ' ', false, handler).c_str());
  std::fflush(stdout);
}

const Caps& plans_of(const std::string& name, const Caps& own) {
  for (auto& row : device_table()) {
    if (row.name == name) {
      return row;
    }
  }
  if (!name.empty()) {
    throw std::runtime_error(
        name + " is no row of tests/variants/devices.cpp.");
  }
  return own;
}

json case_line(const CostCase& c, const std::string& kernel, uint32_t lanes) {
  Loops loops = c.loops(lanes);
  return {
      {"model", c.model},
      {"part", c.part},
      {"name", c.name},
      {"kernel", kernel},
      {"times", c.times},
      {"groups", c.groups},
      {"bytes", c.bytes},
      {"flops", c.flops},
      {"steps", loops.steps},
      {"passes", loops.passes},
      {"lane_macs", c.lane_macs},
      {"slices", c.slices},
      {"why", c.why}};
}

void run(std::map<std::string, std::string> options) {
  auto instance = instance_of_driver();
  NullDevice device(*instance, 0);
  auto& caps = plans_of(options["plans"], device.caps);
  CostFormat format;
  format.type = options["type"] == "f16" ? Type::f16 : Type::bf16;
  if (!options["group"].empty()) {
    format.group = std::stoi(options["group"]);
  }
  write(
      {{"device", device.caps.name},
       {"driver", device.caps.driver},
       {"plans", caps.name},
       {"cores", caps.cores()}});
  std::map<std::string, uint32_t> subgroups; // of kernels that are written
  auto cases = options["cases"] == "validation" ? validation_cases(caps, format)
                                                : cost_cases(caps, format);
  for (auto& c : cases) {
    auto kernel = log_name(c.variant.file, c.variant.defines);
    if (kernel.find(options["only"]) == std::string::npos) {
      continue;
    }
    if (!subgroups.contains(kernel)) {
      json line{{"compiled", kernel}};
      uint32_t& subgroup = subgroups[kernel] = 32;
      try {
        line["executables"] = device.compile(c.variant, true);
        subgroup = line["executables"].back().value("subgroup", 32u);
      } catch (const std::exception& e) {
        line["failed"] = e.what();
      }
      write(line);
    }
    write(case_line(c, kernel, subgroups[kernel]));
  }
}

} // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    auto at = word.find('=');
    auto name = word.substr(0, at);
    constexpr const char* names[] = {"cases", "type", "group", "plans", "only"};
    if (at == word.npos ||
        std::find(std::begin(names), std::end(names), name) ==
            std::end(names)) {
      std::fputs(
          "usage: driver_cost [cases=model|validation] [type=bf16|f16] "
          "[group=N] [plans=NAME] [only=TEXT]\n",
          stderr);
      return 2;
    }
    options[name] = word.substr(at + 1);
  }
  try {
    run(std::move(options));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
