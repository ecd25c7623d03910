// Compiles the kernel variants that plans choose on a device with its driver,
// which needs no hardware: RADV's null device or one of Mesa's drm shims.
// tools/driver_lab.py runs it and judges what it writes.
//
//   driver_compile snapshot          the device and the names of the variants
//                                    of its plans, a JSON object on stdout
//   driver_compile compile INDEX...  those variants, a JSON object a line
//   driver_compile table             the variants of each device of
//   tests/variants,
//                                    a JSON object; no driver is used
//
// The device is the only one that VK_DRIVER_FILES offers, or its first.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <span>
#include <thread>

#include <unistd.h>

#include "drivers/null_device.h"

using namespace mlx::core::vulkan;
using nlohmann::json;

namespace {

// A driver that crashes must not hide at which variant.
thread_local const char* current = "none";

void on_crash(int signal) {
  const char* parts[] = {
      "The driver crashed (", strsignal(signal), ") at ", current, "\n"};
  for (auto* part : parts) {
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) {
      break;
    }
  }
  _exit(1);
}

// What plans read of a device and tests/variants/devices.cpp has otherwise.
json differences(const Caps& c) {
  json found = json::array();
  for (auto& row : device_table()) {
    if (!c.name.starts_with(row.name) || c.software()) {
      continue;
    }
    auto compare = [&](const char* name, auto member) {
      if (c.*member != row.*member) {
        found.push_back(name);
      }
    };
    compare("vendor", &Caps::vendor_id);
    compare("device", &Caps::device_id);
    compare("type", &Caps::type);
    compare("subgroup size", &Caps::subgroup_size);
    compare("least subgroup", &Caps::min_subgroup_size);
    compare("largest subgroup", &Caps::max_subgroup_size);
    compare("shared memory", &Caps::shared_memory);
    compare("largest buffer", &Caps::max_buffer_size);
    compare("cores", &Caps::core_count);
    compare("float16", &Caps::shader_float16);
    compare("matrices of float16", &Caps::coopmat_f16);
    compare("matrices of bfloat16", &Caps::coopmat_bf16);
    compare("shape of float16 matrices", &Caps::shape_f16);
    compare("shape of bfloat16 matrices", &Caps::shape_bf16);
    compare("required subgroup size", &Caps::required_subgroup_size);
    compare("integer dot products", &Caps::integer_dot_product);
    compare("fast ones, signed", &Caps::fast_dot_signed);
    compare("fast ones, mixed", &Caps::fast_dot_mixed);
    return found;
  }
  found.push_back("no row");
  return found;
}

// Shapes of matrices that the driver lists, M x N x K, and those that kernels
// take.
json listed_matrices(const Caps& c) {
  json found = json::array();
  for (auto& s : c.listed_f16) {
    found.push_back("f16 " + s.text());
  }
  for (auto& s : c.listed_bf16) {
    found.push_back("bf16 " + s.text());
  }
  return found;
}

json used_matrices(const Caps& c) {
  json used = json::object();
  for (auto [name, type] :
       {std::pair("f16", Type::f16), {"bf16", Type::bf16}}) {
    if (auto units = c.matrices(type); units.lanes) {
      used[name] = {{"shape", units.shape.text()}, {"lanes", units.lanes}};
    }
  }
  return used;
}

json variant_names(const Caps& caps) {
  json names = json::array();
  VariantSet set = variants_of(caps);
  for (auto& v : set.all()) {
    names.push_back(log_name(v.file, v.defines));
  }
  return names;
}

json table() {
  json devices = json::object();
  for (auto& row : device_table()) {
    devices[row.name] = variant_names(row);
  }
  devices[least_device().name] = variant_names(least_device());
  return devices;
}

json snapshot(const Instance& instance) {
  auto& c = instance.caps[0];
  auto policy = policy_of(c);
  json memory = json::array();
  for (uint32_t i = 0; i < c.memory.memoryTypeCount; ++i) {
    auto& type = c.memory.memoryTypes[i];
    memory.push_back(
        {{"flags", type.propertyFlags},
         {"heap", type.heapIndex},
         {"bytes", c.memory.memoryHeaps[type.heapIndex].size}});
  }
  return {
      {"name", c.name},
      {"driver", c.driver},
      {"vendor", c.vendor_id},
      {"device", c.device_id},
      {"api", c.api_version},
      {"type", type_name(c.type)},
      {"subgroup", c.subgroup_size},
      {"min_subgroup", c.min_subgroup_size},
      {"max_subgroup", c.max_subgroup_size},
      {"required_subgroup", c.required_subgroup_size},
      {"full_subgroups", c.full_subgroups},
      {"max_workgroup", c.max_workgroup_size},
      {"shared_memory", c.shared_memory},
      {"push_constants", c.max_push_constants},
      {"max_buffer", c.max_buffer_size},
      {"float16", c.shader_float16},
      {"bfloat16", c.bfloat16},
      {"coopmat", c.cooperative_matrix},
      {"matrices", listed_matrices(c)},
      {"used", used_matrices(c)},
      {"halves", c.half_matrices(Type::bf16).lanes != 0},
      {"memory_model", c.vulkan_memory_model},
      {"core_count", c.core_count},
      {"registers", policy.registers},
      {"held_values", policy.held_values},
      {"lanes", policy.lanes},
      {"size_control", c.subgroup_size_control},
      {"integer_dot", c.integer_dot_product},
      {"memory", memory},
      {"differs", differences(c)},
      {"missing", missing_features(c)},
      {"variants", variant_names(c)}};
}

void compile(const NullDevice& device, std::span<char*> indices) {
  VariantSet set = variants_of(device.caps);
  auto& all = set.all();
  std::atomic<size_t> next{0};
  std::mutex mutex;
  auto work = [&] {
    for (size_t i; (i = next++) < indices.size();) {
      auto& variant = all.at(std::stoul(indices[i]));
      std::string name = log_name(variant.file, variant.defines);
      current = name.c_str();
      json line{{"name", name}};
      try {
        line["executables"] = device.compile(variant);
      } catch (const std::exception& e) {
        line["failed"] = e.what();
      }
      std::lock_guard lock(mutex);
      std::printf("%s\n", line.dump().c_str());
      std::fflush(stdout); // a crash must not take what others did
      current = "none";
    }
  };
  std::vector<std::thread> threads(
      std::clamp(std::thread::hardware_concurrency(), 1u, 8u));
  for (auto& t : threads) {
    t = std::thread(work);
  }
  for (auto& t : threads) {
    t.join();
  }
}

} // namespace

int main(int argc, char** argv) {
  std::string mode = argc > 1 ? argv[1] : "";
  bool alone = mode == "snapshot" || mode == "table";
  if (!(alone && argc == 2) && !(mode == "compile" && argc > 2)) {
    std::fputs(
        "usage: driver_compile snapshot | table | compile INDEX...\n", stderr);
    return 2;
  }
  for (int s : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) {
    std::signal(s, on_crash);
  }
  try {
    if (mode == "table") {
      std::printf("%s\n", table().dump().c_str());
      return 0;
    }
    auto instance = instance_of_driver();
    if (mode == "snapshot") {
      std::printf("%s\n", snapshot(*instance).dump().c_str());
    } else {
      NullDevice device(*instance, 0);
      compile(device, std::span(argv + 2, argv + argc));
    }
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
