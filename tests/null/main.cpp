#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

#include "null/fake_vulkan.h"

// The runtime reads its environment once: nothing of the caller's counts.
int main(int argc, char** argv) {
  for (auto* name :
       {"MLX_VK_DEVICE",
        "MLX_VK_MEMORY",
        "MLX_VK_PROFILE",
        "MLX_VK_DEBUG",
        "MLX_VK_DISABLE",
        "MLX_VK_KERNEL_PATH",
        "MLX_VK_MAX_MS_PER_SUBMISSION"}) {
    unsetenv(name);
  }
  setenv("MLX_VK_TEST", "assumed_rates,kernels=" MLXVK_EMULATION, 1);
  setenv("MLX_VK_CACHE", "off", 1);
  mlx::core::vulkan::set_loader_for_tests(fake::get_instance_proc_addr);
  return doctest::Context(argc, argv).run();
}
