// Replaces metal_kernel() and its is_available(): MLX checks calls too little.
//
// MLX's own function still writes the kernel's text and makes the primitive.
// Here names and shapes are checked before, with errors that name them, and
// `verbose` prints the GLSL that runs. The question for Metal in MLX's file
// becomes kernels_available().
//
// What MLX could offer: docs/dev/upstream.md, "Kernels in Metal's language".
#include <algorithm>
#include <iostream>
#include <sstream>

#include "mlx/backend/gpu/device_info.h"
#include "mlx/fast.h"
#include "mlx/fast_primitives.h"
#include "mlx/utils.h"

#include "ops/custom/custom.h"
#include "runtime/device.h"

namespace mlx::core {

namespace metal {

// Called by MLX's metal_kernel() only.
bool kernels_available() {
  return gpu::is_available();
}

} // namespace metal

namespace {

// "[metal_kernel] scale: "
std::string title(const std::string& name, const std::string& header) {
  return (header.starts_with(vulkan::glsl_marker) ? "[vulkan_kernel] "
                                                  : "[metal_kernel] ") +
      name + ": ";
}

// Rejects names that would break the text that MLX writes around the body.
void check_kernel_name(const std::string& name) {
  if (std::any_of(name.begin(), name.end(), [](unsigned char c) {
        return c < ' ' || c == '"' || c == '\\';
      })) {
    throw std::invalid_argument(
        "[metal_kernel] The name of a kernel must not have quotes, backslashes "
        "or line breaks in it.");
  }
}

void check_name(
    const std::string& title,
    const char* kind,
    const std::string& name) {
  auto letter = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  bool word = !name.empty() && !digit(name[0]) &&
      std::all_of(name.begin(), name.end(), [&](char c) {
        return letter(c) || digit(c);
      });
  if (!word) {
    throw std::invalid_argument(
        title + "the " + kind + " `" + name +
        "` needs a name of letters, digits and _, as the source has it.");
  }
}

void check_different(
    const std::string& title,
    const std::string& name,
    const std::string& other) {
  if (name == other) {
    throw std::invalid_argument(
        title + "the name `" + name +
        "` is given twice among inputs, outputs and template arguments.");
  }
}

void check_shapes(const std::string& title, const std::vector<Shape>& shapes) {
  for (auto& shape : shapes) {
    if (std::any_of(shape.begin(), shape.end(), [](int n) { return n < 0; })) {
      std::ostringstream msg;
      msg << title << "an output of the shape " << shape
          << " has a negative size.";
      throw std::invalid_argument(msg.str());
    }
  }
}

} // namespace

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
  check_kernel_name(name);
  std::string start = title(name, header);
  std::vector<std::string> names = input_names;
  names.insert(names.end(), output_names.begin(), output_names.end());
  for (size_t i = 0; i < names.size(); ++i) {
    check_name(start, i < input_names.size() ? "input" : "output", names[i]);
    for (size_t j = 0; j < i; ++j) {
      check_different(start, names[i], names[j]);
    }
  }
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
    for (size_t i = 0; i < templates.size(); ++i) {
      auto& argument = templates[i].first;
      check_name(start, "template argument", argument);
      for (auto& other : names) {
        check_different(start, argument, other);
      }
      for (size_t j = 0; j < i; ++j) {
        check_different(start, argument, templates[j].first);
      }
    }
    check_shapes(start, output_shapes);
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
