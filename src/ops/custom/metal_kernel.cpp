// fast::metal_kernel() for Vulkan: MLX's own, which checks a call, writes the
// kernel's whole text and makes the primitive. MLX's file is compiled with that
// function and its question for Metal under other names (cmake/mlx.cmake).
#include <iostream>

#include "mlx/backend/gpu/device_info.h"
#include "mlx/fast.h"
#include "mlx/fast_primitives.h"

#include "ops/custom/custom.h"
#include "runtime/device.h"

namespace mlx::core {

namespace metal {

// Asked by MLX's metal_kernel() alone.
bool kernels_available() {
  return gpu::is_available();
}

} // namespace metal

namespace fast {

decltype(metal_kernel) metal_kernel_of_mlx;

CustomKernelFunction metal_kernel(
    const std::string& name,
    const std::vector<std::string>& input_names,
    const std::vector<std::string>& output_names,
    const std::string& source,
    const std::string& header,
    bool ensure_row_contiguous,
    bool atomic_outputs,
    const CompileOptions& compile_options) {
  auto kernel = metal_kernel_of_mlx(
      name,
      input_names,
      output_names,
      source,
      header,
      ensure_row_contiguous,
      atomic_outputs,
      compile_options);
  return [=](const std::vector<array>& inputs,
             const std::vector<Shape>& output_shapes,
             const std::vector<Dtype>& output_dtypes,
             std::tuple<int, int, int> grid,
             std::tuple<int, int, int> threadgroup,
             const std::vector<std::pair<std::string, TemplateArg>>& templates,
             std::optional<float> init_value,
             bool verbose,
             StreamOrDevice s) {
    auto outputs = kernel(
        inputs,
        output_shapes,
        output_dtypes,
        grid,
        threadgroup,
        templates,
        init_value,
        false,
        s);
    if (verbose && gpu::is_available()) { // else only exported
      auto& made = static_cast<const CustomKernel&>(outputs[0].primitive());
      auto arguments = vulkan::custom_kernel_arguments(
          inputs, std::get<4>(made.state()), outputs.size());
      std::cout << "Generated source code for `" << name << "`:\n```\n"
                << vulkan::custom_kernel_glsl(
                       made, arguments, vulkan::device().caps())
                << "\n```" << std::endl;
    }
    return outputs;
  };
}

} // namespace fast

} // namespace mlx::core
