// A product of matrices on the GPU, compared with the CPU's.
#include <cstdio>
#include <string>
#include <variant>

#include "mlx/mlx.h"

namespace mx = mlx::core;

int main() try {
  auto a = mx::random::normal({64, 256});
  auto b = mx::random::normal({256, 32});
  auto on_gpu = mx::matmul(a, b, mx::Device::gpu);
  auto on_cpu = mx::matmul(a, b, mx::Device::cpu);
  on_gpu.eval(); // throws the reason where there is no GPU to use
  auto& info = mx::device_info(mx::Device::gpu);
  std::printf(
      "MLX %s on %s\n",
      mx::version(),
      std::get<std::string>(info.at("device_name")).c_str());
  bool same = mx::allclose(on_gpu, on_cpu, 1e-4, 1e-4).item<bool>();
  std::puts(same ? "The product is the CPU's." : "The product is wrong.");
  return same ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
