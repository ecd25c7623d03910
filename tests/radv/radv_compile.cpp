// Compiles every kernel variant with RADV, Mesa's driver for AMD, on its null
// device: no hardware, RADV_FORCE_FAMILY names the chip. Lists the registers of
// each variant in the file argv[1], and fails where a variant does not compile
// or a decode kernel spills. tools/run_tests.py radv runs it; argv[2] keeps the
// kernels that have it in their names.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "pipeline/library.h"
#include "pipeline/pipeline.h"
#include "variants/variants.h"
#include "vk/features.h"
#include "vk/instance.h"

using namespace mlx::core::vulkan;

namespace {

// What a decode step runs once a token: a spill there costs on each.
constexpr std::string_view decode_kernels[] = {
    "quant/qmv",
    "quant/qvm",
    "attention/decode",
    "attention/merge",
    "gemm/gemv",
    "gemm/gemv_axpy",
    "norm",
    "rope",
    "copy",
    "copy_flat",
    "unary",
    "binary",
    "ternary",
    "softmax"};

// Spilling variants that no plan takes on AMD (Caps::few_registers();
// tests/null/product_plan_test.cpp and quant_plan_test.cpp hold the plans to
// it): parts of their names.
struct NotTaken {
  std::string_view kernel, tile;
};
constexpr NotTaken not_taken[] = {
    {"quant/qmv{", "ROWS=8 OUTS=2"},
    {"quant/qmv{", "OUTS=16"}}; // software devices

bool is_decode(const std::string& variant) {
  auto file = std::string_view(variant).substr(0, variant.find('{'));
  return std::find(
             std::begin(decode_kernels), std::end(decode_kernels), file) !=
      std::end(decode_kernels) ||
      // Eight lanes a row are for prompts.
      (file == "gated_delta" && variant.find("LANES=32") != variant.npos);
}

// What plans choose on AMD, but for those.
bool is_taken(const std::string& variant) {
  static const std::set<std::string> chosen = [] {
    std::set<std::string> names;
    for (auto& caps : device_table()) {
      if (caps.few_registers()) {
        VariantSet set = variants_of(caps);
        for (auto& v : set.all()) {
          names.insert(log_name(v.file, v.defines));
        }
      }
    }
    return names;
  }();
  return chosen.contains(variant) &&
      std::none_of(std::begin(not_taken), std::end(not_taken), [&](auto& n) {
           return variant.find(n.kernel) != variant.npos &&
               variant.find(n.tile) != variant.npos;
         });
}

enum class State : uint8_t { Compiled, Failed, NotCompiled };

struct Compiled {
  AnyVariant variant;
  std::string name;
  State state = State::Failed;
  std::string text; // what is wrong, or which feature is missing
  std::map<std::string, uint64_t> statistics;

  uint64_t statistic(const char* key) const {
    auto found = statistics.find(key);
    return found == statistics.end() ? 0 : found->second;
  }
  bool spills() const {
    return statistic("Spilled SGPRs") + statistic("Spilled VGPRs") +
        statistic("Scratch size");
  }
  std::string registers() const {
    std::string line = "SGPRs " + std::to_string(statistic("SGPRs")) +
        ", VGPRs " + std::to_string(statistic("VGPRs")) + ", LDS " +
        std::to_string(statistic("LDS size")) + ", code " +
        std::to_string(statistic("Code size"));
    for (auto* key : {"Spilled SGPRs", "Spilled VGPRs", "Scratch size"}) {
      if (auto value = statistic(key)) {
        line += std::string(", ") + key + " " + std::to_string(value);
      }
    }
    return line;
  }
};

// A driver that crashes must not hide at which variant.
thread_local const char* current = "none";

void on_crash(int signal) {
  const char* parts[] = {
      "The driver crashed (", strsignal(signal), ") at ", current, "\n"};
  for (auto* part : parts) {
    if (write(STDOUT_FILENO, part, std::strlen(part)) < 0) {
      break;
    }
  }
  _exit(1);
}

class NullDevice {
 public:
  // Everything that the device offers is enabled, but robustness.
  NullDevice(const Instance& instance, size_t index)
      : caps(instance.caps[index]), vk_(instance.vk) {
    auto physical = instance.physical[index];
    DeviceFeatures f(
        {.matrices = caps.cooperative_matrix,
         .bf16 = caps.bfloat16,
         .dot = false,
         .sizes = true});
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
    f.append(statistics);
    vk_.vkGetPhysicalDeviceFeatures2(physical, &f.all);
    f.all.features.robustBufferAccess = VK_FALSE;
    device_ = create_device(
        vk_,
        physical,
        caps,
        f,
        {VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME});
    std::string why;
    if (!vk_.load_device(device_, why)) {
      throw std::runtime_error(why);
    }
    get_statistics_ =
        reinterpret_cast<PFN_vkGetPipelineExecutableStatisticsKHR>(
            vk_.vkGetDeviceProcAddr(
                device_, "vkGetPipelineExecutableStatisticsKHR"));

    layout_ = create_layout(vk_, device_);

    // As on real hardware (runtime/device.cpp); AMD rounds float16 as asked.
    for (auto [has, name] :
         {std::pair(caps.preserve_nan_f32, "FLOAT_CONTROLS"),
          std::pair(caps.preserve_denorm_f32, "DENORM_PRESERVE_F32"),
          std::pair(caps.shader_float16, "NATIVE_F16")}) {
      if (has) {
        globals_.emplace_back(name, "1");
      }
    }
  }

  ~NullDevice() {
    if (device_) {
      vk_.vkDestroyPipelineLayout(device_, layout_, nullptr);
      vk_.vkDestroyDevice(device_, nullptr);
    }
  }
  NullDevice(const NullDevice&) = delete;
  NullDevice& operator=(const NullDevice&) = delete;

  void compile(Compiled& v) const {
    auto code =
        compile_kernel(v.variant.file, v.variant.defines, false, globals_);
    v.text = missing(code.reflection);
    if (!v.text.empty()) {
      v.state = State::NotCompiled;
      return;
    }
    VkComputePipelineCreateInfo info{};
    info.flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
    info.layout = layout_;
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
    for (auto& d : v.variant.defines) {
      if (d.name == "SG") { // the kernel is written for this size
        size.requiredSubgroupSize = static_cast<uint32_t>(d.value);
        info.stage.pNext = &size;
      }
    }
    VkPipeline pipeline =
        create_pipeline(vk_, device_, VK_NULL_HANDLE, info, code.spirv, "");
    read_statistics(pipeline, v);
    vk_.vkDestroyPipeline(device_, pipeline, nullptr);
    v.state = State::Compiled;
  }

  const Caps caps;

 private:
  // Only cooperative matrices and bf16 types may be absent; all other
  // capabilities are the driver's to refuse.
  std::string missing(const Reflection& r) const {
    bool matrices = caps.coopmat_f16 || caps.coopmat_bf16;
    std::string text;
    for (auto [capability, has] :
         {std::pair(5116u, caps.bfloat16),
          std::pair(5118u, caps.coopmat_bf16),
          std::pair(6022u, matrices)}) {
      if (r.has_capability(capability) && !has) {
        text += (text.empty() ? "" : ", ") + capability_name(capability);
      }
    }
    return text;
  }

  void read_statistics(VkPipeline pipeline, Compiled& v) const {
    VkPipelineExecutableInfoKHR which{
        VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
    which.pipeline = pipeline;
    uint32_t n = 0;
    vk_check(
        get_statistics_(device_, &which, &n, nullptr),
        "vkGetPipelineExecutableStatisticsKHR");
    std::vector<VkPipelineExecutableStatisticKHR> all(
        n, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
    vk_check(
        get_statistics_(device_, &which, &n, all.data()),
        "vkGetPipelineExecutableStatisticsKHR");
    for (auto& s : all) {
      v.statistics[s.name] = s.value.u64;
    }
    for (auto* key : {"Spilled SGPRs", "Spilled VGPRs", "Scratch size"}) {
      if (!v.statistics.count(key)) {
        throw std::runtime_error(
            std::string("The driver does not report \"") + key + "\".");
      }
    }
  }

  Vk vk_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  PFN_vkGetPipelineExecutableStatisticsKHR get_statistics_ = nullptr;
  NamedValues globals_;
};

std::vector<Compiled> chosen_variants(std::string_view part) {
  std::vector<Compiled> chosen;
  for (auto& v : all_variants().all()) {
    if (v.file.find(part) != v.file.npos) {
      chosen.push_back({v, log_name(v.file, v.defines)});
    }
  }
  return chosen;
}

void compile_all(const NullDevice& device, std::vector<Compiled>& variants) {
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next++) < variants.size();) {
      current = variants[i].name.c_str();
      try {
        device.compile(variants[i]);
      } catch (const std::exception& e) {
        variants[i].text = e.what();
      }
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

// True if nothing failed.
bool report(const std::vector<Compiled>& variants, const char* list) {
  std::FILE* table = list ? std::fopen(list, "w") : nullptr;
  if (list && !table) {
    throw std::runtime_error(std::string(list) + " cannot be written.");
  }
  size_t passed = 0, failed = 0, not_compiled = 0, spilling = 0, known = 0;
  for (auto& v : variants) {
    std::string line = v.name + ": ";
    if (v.state == State::NotCompiled) {
      ++not_compiled;
      line += "not compiled, the device lacks " + v.text;
    } else if (v.state == State::Failed) {
      ++failed;
      line += "FAILED: " + v.text;
    } else {
      line += v.registers();
      spilling += v.spills();
      if (!v.spills() || !is_decode(v.name)) {
        ++passed;
      } else if (!is_taken(v.name)) {
        ++known;
        line += " (no plan takes it on AMD)";
      } else {
        ++failed;
        line += " FAILED: a decode kernel spills";
      }
    }
    if (table) {
      std::fprintf(table, "%s\n", line.c_str());
    }
    if (v.state != State::Compiled || v.spills()) {
      std::printf("%s\n", line.c_str());
    }
  }
  if (table) {
    std::fclose(table);
  }
  std::printf(
      "%zu variants: %zu spill, %zu of them in decode kernels, which no plan "
      "takes on AMD; %zu not "
      "compiled for want of a feature\n"
      "%zu passed, %zu failed, %zu skipped\n",
      variants.size(),
      spilling,
      known,
      not_compiled,
      passed,
      failed,
      not_compiled + known);
  return failed == 0;
}

} // namespace

int main(int argc, char** argv) {
  try {
    for (int s : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) {
      std::signal(s, on_crash);
    }
    std::string why;
    auto instance = Instance::create(false, why);
    size_t index = 0;
    for (; instance && index < instance->caps.size(); ++index) {
      auto& name = instance->caps[index].name;
      if (name.find("RADV") != name.npos && name.find("Null") != name.npos) {
        break;
      }
    }
    if (!instance || index == instance->caps.size()) {
      throw std::runtime_error(
          "There is no null device of RADV: name its ICD file in "
          "VK_DRIVER_FILES and a chip, such as navi21, in RADV_FORCE_FAMILY. " +
          why);
    }
    NullDevice device(*instance, index);
    std::printf(
        "%s, %s\n", device.caps.name.c_str(), device.caps.driver.c_str());
    auto variants = chosen_variants(argc > 2 ? argv[2] : "");
    compile_all(device, variants);
    const char* list = argc > 1 ? argv[1] : nullptr;
    return report(variants, list) ? 0 : 1;
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
