// Replaces precompiled_cuda_kernel(): the door from Python to traced steps.
//
// The stock Python package has no function to which this backend could give
// arrays for a traced step (ops/traced/traced_step.h).
// precompiled_cuda_kernel() takes a name, arrays and numbers, and without CUDA
// it has no other use. Names that begin with "mlx_vulkan." are of
// python/mlx_vulkan/traced; others get MLX's answer.
//
// What MLX could offer: docs/dev/upstream.md, "Traced steps".
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "backend/stream.h"
#include "mlx/fast.h"
#include "mlx/transforms.h"
#include "mlx/transforms_impl.h"
#include "mlx/utils.h"
#include "ops/traced/late.h"
#include "ops/traced/traced_step.h"

namespace mlx::core {

namespace vulkan {

namespace {

// The steps that Python holds, by number.
class Steps {
 public:
  int add(std::shared_ptr<TracedStep> step) {
    std::lock_guard lock(mutex_);
    steps_.emplace(++last_, std::move(step));
    return last_;
  }
  std::shared_ptr<TracedStep> find(int number) {
    std::lock_guard lock(mutex_);
    auto found = steps_.find(number);
    return found == steps_.end() ? nullptr : found->second;
  }
  void remove(int number) {
    std::shared_ptr<TracedStep> removed; // its arrays end without the lock
    std::lock_guard lock(mutex_);
    if (auto found = steps_.find(number); found != steps_.end()) {
      removed = std::move(found->second);
      steps_.erase(found);
    }
  }

 private:
  std::mutex mutex_;
  std::map<int, std::shared_ptr<TracedStep>> steps_;
  int last_ = 0;
};

Steps& steps() {
  static auto* all = new Steps; // leaked: arrays may outlive the device
  return *all;
}

// Python's objects, of two int32 each.
std::vector<const void*> addresses(const Scalars& scalars, size_t first) {
  std::vector<const void*> found;
  for (size_t i = first; i + 1 < scalars.size(); i += 2) {
    auto half = [&](size_t j) {
      return uint64_t(static_cast<uint32_t>(std::get<int>(scalars[j])));
    };
    found.push_back(reinterpret_cast<void*>(half(i) | half(i + 1) << 32));
  }
  return found;
}

// Begins to evaluate what the layer that makes `keys` reads, up to the norm
// before them: while Python builds the rest of a prompt's graph, the GPU works.
void begin(const array& keys, Stream stream) {
  constexpr size_t most = 64; // arrays between keys and their layer's norm
  if (stream.device != mlx::core::Device::gpu || detail::in_tracing() ||
      detail::retain_graph()) {
    return;
  }
  std::vector<array> found{keys};
  for (size_t i = 0; i < found.size() && i < most; ++i) {
    array a = found[i];
    if (a.status() != array::Status::unscheduled || !a.has_primitive() ||
        a.is_tracer() || a.primitive().stream() != stream) {
      continue;
    }
    if (behind_seam(a.primitive(), a)) {
      async_eval({a.inputs()[0]});
      return;
    }
    found.insert(found.end(), a.inputs().begin(), a.inputs().end());
  }
}

// Beside what late() makes:
//   begin   (keys) [] -> nothing
//   record  (outputs) [number of inputs] -> the number of the new step
//   watch   (arrays) [step, size, addresses...] -> whether TracedStep::watch()
//           can; the addresses are of the arrays' objects
//   run     (inputs) [step, positions...] -> its outputs, none if the step does
//           not hold
//   forget  () [step] -> nothing
std::vector<array> call(
    const std::string& call,
    const std::vector<array>& inputs,
    const std::vector<Shape>& shapes,
    const std::vector<Dtype>& types,
    const Scalars& scalars,
    Stream stream) {
  auto integer = [&](size_t i) { return std::get<int>(scalars.at(i)); };
  if (call == "run") {
    auto step = steps().find(integer(0));
    Positions at;
    for (size_t i = 1; i < scalars.size(); ++i) {
      at.push_back(integer(i));
    }
    return step ? step->run(inputs, at, stream) : std::vector<array>{};
  }
  if (call == "record") {
    if (stream.device != mlx::core::Device::gpu) {
      throw std::invalid_argument("[traced step] The stream is not a GPU's.");
    }
    auto step = std::make_shared<TracedStep>(inputs, integer(0), stream);
    return {array(steps().add(std::move(step)), int32)};
  }
  if (call == "watch") {
    auto step = steps().find(integer(0));
    auto objects = addresses(scalars, 2);
    bool can = step && objects.size() == inputs.size() &&
        step->watch(inputs, objects.data(), integer(1));
    return {array(can)};
  }
  if (call == "begin") {
    begin(inputs.at(0), stream);
    return {};
  }
  if (call == "forget") {
    steps().remove(integer(0));
    return {};
  }
  auto shape = shapes.empty() ? Shape{} : shapes[0];
  auto type = types.empty() ? int32 : types[0];
  return {late(call, inputs, scalars, shape, type, stream)};
}

} // namespace

} // namespace vulkan

namespace fast {

decltype(precompiled_cuda_kernel) precompiled_cuda_kernel_of_mlx;

std::vector<array> precompiled_cuda_kernel(
    const std::string& name,
    const std::string& compiled_source,
    const std::vector<array>& inputs,
    const std::vector<Shape>& output_shapes,
    const std::vector<Dtype>& output_dtypes,
    const std::vector<ScalarArg>& scalars,
    std::tuple<int, int, int> grid,
    std::tuple<int, int, int> threadgroup,
    int shared_memory,
    std::optional<float> init_value,
    bool ensure_row_contiguous,
    StreamOrDevice s) {
  constexpr std::string_view ours = "mlx_vulkan.";
  if (!name.starts_with(ours)) {
    return precompiled_cuda_kernel_of_mlx(
        name,
        compiled_source,
        inputs,
        output_shapes,
        output_dtypes,
        scalars,
        grid,
        threadgroup,
        shared_memory,
        init_value,
        ensure_row_contiguous,
        s);
  }
  return vulkan::call(
      name.substr(ours.size()),
      inputs,
      output_shapes,
      output_dtypes,
      scalars,
      to_stream(s));
}

} // namespace fast

} // namespace mlx::core
