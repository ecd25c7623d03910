#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "null/devices.h"
#include "pipeline/key.h"
#include "vk/core_counts.h"
#include "vk/features.h"
#include "vk/instance.h"

using namespace mlx::core::vulkan;

namespace {

int choose(const std::vector<Caps>& d, const char* wanted = "") {
  std::string why;
  int i = choose_device(d, wanted, why);
  CHECK(why.empty() == (i >= 0));
  return i;
}

bool enables(const Caps& c, const char* extension) {
  auto names = extensions_to_enable(c);
  return std::any_of(names.begin(), names.end(), [&](auto* n) {
    return std::strcmp(n, extension) == 0;
  });
}

} // namespace

TEST_CASE("caps: why there is no GPU") {
  auto why = [](const std::vector<Caps>& devices) {
    std::string text;
    CHECK(choose_device(devices, "", text) == -1);
    return text;
  };
  CHECK(why({}).find("lists no device") != std::string::npos);
  Caps software = usable_gpu("llvmpipe");
  software.type = VK_PHYSICAL_DEVICE_TYPE_CPU;
  CHECK(
      why({software}).find("llvmpipe, a software device") != std::string::npos);
  Caps old = usable_gpu("an old GPU");
  old.timeline_semaphore = false;
  CHECK(
      why({software, old}) ==
      "an old GPU lacks timelineSemaphore, which this backend needs");
}

TEST_CASE("caps: a render node that may not be opened is named") {
  namespace fs = std::filesystem;
  auto folder =
      fs::temp_directory_path() / ("dri-" + std::to_string(::getpid()));
  CHECK(closed_render_node(folder.string()).empty());
  fs::create_directories(folder);
  std::ofstream(folder / "card0") << "";
  fs::permissions(folder / "card0", fs::perms::none);
  CHECK(closed_render_node(folder.string()).empty());
  std::ofstream(folder / "renderD128") << "";
  CHECK(closed_render_node(folder.string()).empty());
  fs::permissions(folder / "renderD128", fs::perms::none);
  bool root = ::geteuid() == 0; // may open all
  if (root) {
    REQUIRE(::seteuid(65534) == 0);
  }
  auto closed = closed_render_node(folder.string());
  if (root) {
    REQUIRE(::seteuid(0) == 0);
  }
  fs::remove_all(folder);
  CHECK(closed.find("renderD128 cannot be opened") != std::string::npos);
}

TEST_CASE("caps: RADV's word for bf16 matrices") {
  CHECK_FALSE(
      radv_bfloat16([](const char*) -> const char* { return nullptr; }));
  CHECK_FALSE(radv_bfloat16([](const char*) { return "sparse"; }));
  auto asked = [](const char* name) {
    return std::strcmp(name, "RADV_EXPERIMENTAL") ? nullptr : "sparse,bfloat16";
  };
  CHECK(radv_bfloat16(asked));
}

TEST_CASE("caps: each required feature is missed by name") {
  CHECK(missing_features(usable_gpu("a")).empty());
  auto without = [](auto change) {
    Caps c = usable_gpu("a");
    change(c);
    auto m = missing_features(c);
    return m.size() == 1 ? m[0] : std::to_string(m.size()) + " missing";
  };
  CHECK(without([](Caps& c) {
          c.api_version = VK_API_VERSION_1_1;
        }) == "Vulkan 1.2");
  CHECK(without([](Caps& c) {
          c.buffer_device_address = false;
        }) == "bufferDeviceAddress");
  CHECK(without([](Caps& c) {
          c.timeline_semaphore = false;
        }) == "timelineSemaphore");
  CHECK(without([](Caps& c) {
          c.scalar_block_layout = false;
        }) == "scalarBlockLayout");
  CHECK(without([](Caps& c) { c.shader_int64 = false; }) == "shaderInt64");
  CHECK(without([](Caps& c) { c.shader_int8 = false; }) == "shaderInt8");
  CHECK(without([](Caps& c) {
          c.storage_16bit = false;
        }).find("16") != std::string::npos);
  CHECK(without([](Caps& c) {
          c.storage_8bit = false;
        }).find("8") != std::string::npos);
  CHECK(without([](Caps& c) {
          c.subgroup_operations = VK_SUBGROUP_FEATURE_BASIC_BIT;
        }).find("subgroup") != std::string::npos);
  CHECK(without([](Caps& c) {
          c.min_subgroup_size = 1;
        }).find("subgroup") != std::string::npos);
  CHECK(without([](Caps& c) {
          c.compute_queue_family = -1;
        }).find("queue") != std::string::npos);
  // Optional ones are.
  Caps plain = usable_gpu("a");
  plain.shader_float16 = plain.cooperative_matrix = plain.bfloat16 = false;
  CHECK(missing_features(plain).empty());
}

TEST_CASE("caps: the best GPU is chosen, software only when asked for") {
  auto discrete = usable_gpu("RTX");
  auto integrated = usable_gpu("UHD", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU);
  auto software = usable_gpu("llvmpipe", VK_PHYSICAL_DEVICE_TYPE_CPU);
  auto unusable = usable_gpu("Old");
  unusable.timeline_semaphore = false;
  CHECK(choose({software, integrated, discrete}) == 2);
  CHECK(choose({software, integrated}) == 1);
  CHECK(choose({unusable, integrated}) == 1);
  CHECK(choose({software}) == -1);
  CHECK(choose({}) == -1);
  CHECK(choose({unusable}) == -1);
  CHECK(choose({discrete, software}, "cpu") == 1);
  CHECK(choose({discrete}, "cpu") == -1);
}

TEST_CASE("caps: a device by index, name or UUID") {
  auto a = usable_gpu("NVIDIA H200"), b = usable_gpu("AMD Radeon");
  b.uuid = "ffeeddccbbaa99887766554433221100";
  CHECK(choose({a, b}, "1") == 1);
  CHECK(choose({a, b}, "radeon") == 1);
  CHECK(choose({a, b}, "h200") == 0);
  CHECK(choose({a, b}, "ffeeddccbbaa99887766554433221100") == 1);
  CHECK(choose({a, b}, "FFEEDDCC-BBAA-9988-7766-554433221100") == 1);
  CHECK(choose({a, b}, "2") == -1);
  CHECK(choose({a, b}, "Intel") == -1);
  std::string why;
  choose_device({a, b}, "Intel", why);
  CHECK(why.find("Intel") != std::string::npos);
  b.shader_int8 = false;
  CHECK(choose({a, b}, "1") == -1);
  auto list = list_devices({a, b});
  CHECK(list.find("NVIDIA H200") != std::string::npos);
  CHECK(list.find("shaderInt8") != std::string::npos);
}

TEST_CASE("caps: only what is used is enabled") {
  Caps c = usable_gpu("a");
  CHECK(extensions_to_enable(c).empty());
  c.memory_budget = true;
  CHECK(enables(c, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME));
  c.cooperative_matrix = true;
  CHECK_FALSE(enables(c, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME));
  c.coopmat_f16 = true;
  CHECK(enables(c, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME));
}

TEST_CASE("caps: matrix kernels need one subgroup size, or may name 32") {
  Caps c;
  c.cooperative_matrix = c.coopmat_f16 = true;
  c.subgroup_size = c.min_subgroup_size = c.max_subgroup_size = 32;
  CHECK(c.coopmat(Type::f16));
  CHECK_FALSE(c.coopmat(Type::bf16));
  CHECK_FALSE(c.coopmat(Type::f32));
  c.subgroup_size = c.max_subgroup_size = 64; // RDNA
  CHECK_FALSE(c.coopmat(Type::f16));
  c.required_subgroup_size = true;
  CHECK(c.coopmat(Type::f16));
  CHECK(c.matrix_subgroup() == 32);
  c.min_subgroup_size = 8;
  c.max_subgroup_size = 16;
  CHECK_FALSE(c.coopmat(Type::f16));
}

TEST_CASE("caps: what Vulkan does not tell comes from tables") {
  Caps c = usable_gpu("Intel(R) Arc(tm) A770M Graphics (DG2)");
  c.vendor_id = 0x8086;
  c.device_id = 0x5690;
  c.subgroup_size = c.max_subgroup_size = 32;
  c.min_subgroup_size = 8;
  count_cores(c);
  CHECK(policy_of(c).cores == 32);
  CHECK(policy_of(c).lanes == 16);
  CHECK(policy_of(c).few_registers());
  c.core_count = 5; // what an extension told holds
  count_cores(c);
  CHECK(policy_of(c).cores == 5);
  // Before Xe-HPG dual subslices.
  CHECK(cores_by_table(0x8086, 0x468b, "") == 1);
  CHECK(cores_by_table(0x8086, 0x46d1, "") == 2);
  CHECK(cores_by_table(0x8086, 0x4905, "") == 6);
  CHECK(cores_by_table(0x8086, 0x64a0, "") == 8);
  // A mesa driver for Apple's GPUs has Mesa's vendor ID, as llvmpipe has.
  Caps apple = usable_gpu("Apple M2 Pro (G14S B1)");
  apple.vendor_id = 0x10005;
  count_cores(apple);
  CHECK(policy_of(apple).cores == 19);
  CHECK(policy_of(apple).registers == 128);
  Caps software = usable_gpu(
      "llvmpipe (LLVM 15.0.6, 256 bits)", VK_PHYSICAL_DEVICE_TYPE_CPU);
  software.vendor_id = 0x10005;
  count_cores(software);
  CHECK_FALSE(policy_of(software).few_registers());
  // A GPU that no table has: a middling count, never 0.
  Caps unknown = usable_gpu("Mali-G715");
  unknown.vendor_id = 0x13b5;
  count_cores(unknown);
  CHECK(unknown.core_count == 0);
  CHECK(policy_of(unknown).cores == 32);
  CHECK(policy_of(unknown).few_registers());
  CHECK(policy_of(unknown).lanes == unknown.subgroup_size);
}

TEST_CASE("caps: every device of the table has cores and a class") {
  for (auto& caps : device_table()) {
    CAPTURE(caps.name);
    CHECK(policy_of(caps).cores > 0);
    CHECK(policy_of(caps).registers > 0);
    CHECK((caps.software() || caps.core_count > 0));
  }
}

TEST_CASE("caps: which queue takes the work") {
  constexpr uint32_t amd = 0x1002, nvidia = 0x10de;
  constexpr VkQueueFlags all = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
  auto choose = [](std::vector<VkQueueFlags> flags,
                   uint32_t vendor,
                   QueueKind kind = QueueKind::Automatic,
                   VkPhysicalDeviceType type =
                       VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU) {
    std::vector<VkQueueFamilyProperties> families;
    for (auto f : flags) {
      families.push_back({f, 1, 64, {1, 1, 1}});
    }
    return choose_queue_family(families, vendor, type, kind);
  };
  std::vector<VkQueueFlags> usual{
      all, VK_QUEUE_TRANSFER_BIT, VK_QUEUE_COMPUTE_BIT};
  CHECK(choose(usual, nvidia) == 2);
  CHECK(choose(usual, amd) == 0);
  CHECK(choose(usual, nvidia, QueueKind::Graphics) == 0);
  CHECK(choose(usual, amd, QueueKind::Compute) == 2);
  constexpr auto integrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  CHECK(choose(usual, amd, QueueKind::Automatic, integrated) == 2);
  CHECK(choose(usual, amd, QueueKind::Graphics, integrated) == 0);
  CHECK(choose(usual, 0x8086, QueueKind::Automatic, integrated) == 0);
  // Else what there is.
  CHECK(choose({VK_QUEUE_TRANSFER_BIT, all}, nvidia) == 1);
  CHECK(choose({VK_QUEUE_COMPUTE_BIT}, amd) == 0);
  CHECK(choose({VK_QUEUE_COMPUTE_BIT, all}, amd) == 1);
  CHECK(choose({VK_QUEUE_TRANSFER_BIT}, nvidia) == -1);
  CHECK(choose({}, nvidia) == -1);
}
