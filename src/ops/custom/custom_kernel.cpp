// Custom kernels: mx.fast.metal_kernel, whose Metal body is translated
// (msl/translate.h), and mlx_vulkan.fast.vulkan_kernel, whose body is GLSL.
// Both are MLX's CustomKernel with the text that MLX generated for the call.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "mlx/backend/gpu/copy.h"
#include "mlx/fast_primitives.h"

#include "backend/stream_encoder.h"
#include "ops/custom/custom.h"
#include "ops/custom/meaning.h"
#include "ops/layout.h"
#include "pipeline/compiler.h"
#include "pipeline/cut_loops.h"
#include "runtime/device.h"
#include "vk/config.h"

namespace mlx::core {

namespace vulkan {

namespace {

using Extent = std::array<uint32_t, 3>;

// Parameters of a kernel's translation, besides its text.
struct Form {
  Extent threads{}; // per workgroup
  bool aligned = false; // msl::Target's
  bool guarded = false; // with_guard()
  // extents of msl::Target, with MLX_VK_DEBUG=bounds
  std::vector<std::pair<int64_t, int64_t>> extents;
  bool operator==(const Form&) const = default;
};

// A text that MLX generated, and the kernels compiled from it.
struct Known {
  CustomSource source;
  std::optional<GatedDeltaKernel> gated_delta;
  std::optional<bool> independent; // is_independent()
  uint32_t number = 0; // from CutLoops::add_kernel()
  std::vector<std::pair<Form, const Kernel*>> kernels;
};

// Kernels by their whole text, since different kernels may share a name. The
// mutex is held for lookups only, not during translation and compilation.
class KnownKernels {
 public:
  // Valid for the life of the process.
  Known& get(
      const std::string& name,
      const std::string& text,
      bool fast_math,
      size_t arguments) {
    auto& by_text = by_text_[fast_math];
    {
      std::lock_guard lock(mutex_);
      if (auto it = by_text.find(text); it != by_text.end()) {
        return *it->second;
      }
    }
    auto made = std::make_unique<Known>();
    made->source = parse_custom_source(name, text, arguments);
    if (!made->source.glsl) {
      made->gated_delta = gated_delta_kernel(made->source.source);
    }
    if (fast_math) { // last, to keep line numbers
      made->source.source.header += "\n#define __FAST_MATH__ 1";
    }
    std::lock_guard lock(mutex_);
    return *by_text.try_emplace(text, std::move(made)).first->second;
  }
  const Kernel* find(const Known& known, const Form& wanted) {
    std::lock_guard lock(mutex_);
    for (auto& [form, kernel] : known.kernels) {
      if (form == wanted) {
        return kernel;
      }
    }
    return nullptr;
  }
  std::optional<bool> independent(const Known& known) {
    std::lock_guard lock(mutex_);
    return known.independent;
  }
  void set_independent(Known& known, bool independent) {
    std::lock_guard lock(mutex_);
    known.independent = independent;
  }
  uint32_t number(Known& known, CutLoops& loops) {
    std::lock_guard lock(mutex_);
    if (known.number == 0) {
      auto& source = known.source;
      known.number = loops.add_kernel(source.title(), loops_of(source));
    }
    return known.number;
  }
  void add(Known& known, const Form& form, const Kernel& kernel) {
    std::lock_guard lock(mutex_);
    known.kernels.emplace_back(form, &kernel);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<Known>> by_text_[2];
};

// MLX's option changes the macros of the source, not the arithmetic.
bool is_fast_math(const CompileOptions& options) {
  return options.math_mode == MathMode::Fast;
}

KnownKernels& known_kernels() {
  static auto* kernels = new KnownKernels; // leaked: exit runs in any order
  return *kernels;
}

std::string words(const Extent& e) {
  return std::to_string(e[0]) + " x " + std::to_string(e[1]) + " x " +
      std::to_string(e[2]);
}

// Advice for users whose model requested the kernel.
std::string what_else(const CustomSource& kernel) {
  return kernel.glsl
      ? ""
      : "\nIf it is a model's own, MLX_VK_METAL_KERNELS=0 has mlx-lm and mlx-vlm "
        "take MLX's operations instead.";
}

// The shader with the guard and the loop check that grid and device need.
std::string finished(
    const CustomSource& kernel,
    const Form& form,
    const Caps& caps,
    std::string glsl) {
  if (form.guarded) {
    glsl = with_guard(kernel, std::move(glsl));
  }
  bool shows = caps.software() && !loops_of(kernel).empty();
  return shows ? with_whole_loops(kernel, std::move(glsl)) : glsl;
}

// The kernel as GLSL, and the subgroup size to request; 0: any.
std::pair<std::string, uint32_t>
glsl_for(const CustomSource& kernel, const Form& form, const Caps& caps) {
  if (kernel.glsl) {
    uint32_t wanted = kernel.subgroup_size;
    if (wanted && sure_subgroup(caps, wanted) != wanted) {
      throw std::invalid_argument(
          kernel.title() + ": subgroup_size=" + std::to_string(wanted) +
          " cannot be had on " + caps.name + ", whose subgroups have " +
          std::to_string(caps.min_subgroup_size) +
          (caps.min_subgroup_size == caps.max_subgroup_size
               ? ""
               : " to " + std::to_string(caps.max_subgroup_size)) +
          " invocations" +
          (caps.required_subgroup_size ||
                   caps.min_subgroup_size == caps.max_subgroup_size
               ? "."
               : " as the driver likes."));
    }
    return {
        finished(kernel, form, caps, glsl_of(kernel, form.threads)), wanted};
  }
  constexpr uint32_t simd_width = 32;
  msl::Target target;
  target.threads = form.threads;
  target.aligned = form.aligned;
  target.subgroup = sure_subgroup(caps, simd_width);
  target.shared_bytes = caps.shared_memory;
  target.extents = form.extents;
  msl::Translation made;
  try {
    made = msl::translate(kernel.source, target);
  } catch (const std::runtime_error& e) {
    throw std::runtime_error(e.what() + what_else(kernel));
  }
  bool ask = made.collective && target.subgroup == simd_width;
  return {
      finished(kernel, form, caps, std::move(made.glsl)), ask ? simd_width : 0};
}

const Kernel&
build(StreamEncoder& enc, const CustomSource& kernel, const Form& form) {
  auto [text, subgroup] = glsl_for(kernel, form, enc.caps());
  std::vector<Define> defines;
  if (subgroup) {
    defines.emplace_back("SG", subgroup);
    // The pipeline needs the define, and the source may use the name.
    text = "#undef SG\n" + text;
  }
  try {
    return enc.raw().device().pipelines().get_source(
        kernel.source.name, text, defines);
  } catch (const CompileError& e) {
    throw std::runtime_error(
        kernel.title() +
        (kernel.glsl
             ? ": the source does not compile:\n"
             : ": its translation to GLSL does not compile. This is a bug of "
               "mlx-vulkan, not of the kernel:\n") +
        e.message.substr(0, e.message.find_last_not_of(" \n") + 1) +
        what_else(kernel));
  }
}

Extent extent_of(
    const CustomSource& kernel,
    const char* what,
    const std::tuple<int, int, int>& t,
    int least) {
  auto [x, y, z] = t;
  if (std::min({x, y, z}) < least) {
    throw std::invalid_argument(
        kernel.title() + ": the " + what + " (" + std::to_string(x) + ", " +
        std::to_string(y) + ", " + std::to_string(z) + ") has less than " +
        std::to_string(least) + " threads on an axis.");
  }
  return {uint32_t(x), uint32_t(y), uint32_t(z)};
}

struct Launch {
  Extent grid{}, threads{}; // threads: of a usual threadgroup
  bool guarded = false;
  std::vector<ExactDispatch> dispatches;
};

// The threadgroup of a call, clipped to the grid as MLX does.
Extent clipped(
    const CustomSource& kernel,
    const Extent& threadgroup,
    const Extent& grid,
    const Caps& caps) {
  Extent e;
  uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    e[i] = std::min(threadgroup[i], grid[i]);
    threads *= e[i];
  }
  if (threads > caps.max_workgroup_size) {
    throw std::invalid_argument(
        kernel.title() + ": a threadgroup of " + words(e) + " threads has " +
        std::to_string(threads) + "; " + caps.name + " allows " +
        std::to_string(caps.max_workgroup_size) +
        ". Pass a smaller threadgroup=." + what_else(kernel));
  }
  for (int i = 0; i < 3; ++i) {
    uint32_t most = caps.max_workgroup_axes[i];
    if (most && e[i] > most) {
      throw std::invalid_argument(
          kernel.title() + ": a threadgroup of " + words(e) + " threads; on " +
          caps.name + " its axis " + "xyz"[i] + " has at most " +
          std::to_string(most) + ". Pass another threadgroup=." +
          what_else(kernel));
    }
  }
  return e;
}

// Rejects grids that would occupy the GPU for minutes or need a very long list
// of dispatches.
void check_grid(
    const CustomSource& kernel,
    const Extent& grid,
    const Extent& threads) {
  constexpr double most_threads = uint64_t(1) << 44;
  constexpr double most_dispatches = 1 << 16;
  double all = 1, dispatches = 1;
  for (int i = 0; i < 3; ++i) {
    all *= grid[i];
    dispatches *= 1 + grid[i] / (uint64_t(threads[i]) * 65535);
  }
  if (all > most_threads || dispatches > most_dispatches) {
    throw std::invalid_argument(
        kernel.title() + ": a grid of " + words(grid) +
        " threads in threadgroups of " + words(threads) +
        " is more than one call may have: 2^44 threads, and 65536 dispatches of "
        "65535 threadgroups on an axis. Let a thread do more, or call the "
        "kernel for parts of the grid.");
  }
}

bool fits(const Extent& threads, const Caps& caps) {
  uint64_t all = 1;
  for (int i = 0; i < 3; ++i) {
    uint32_t most = caps.max_workgroup_axes[i];
    all *= threads[i];
    if ((most && threads[i] > most) || all > caps.max_workgroup_size) {
      return false;
    }
  }
  return true;
}

bool independent(Known& known, const Form& form, const Caps& caps) {
  auto& all = known_kernels();
  if (auto known_before = all.independent(known)) {
    return *known_before;
  }
  bool is =
      is_independent(known.source, glsl_for(known.source, form, caps).first);
  all.set_independent(known, is);
  return is;
}

// Splits the grid into exact dispatches. Kernels with independent threads are
// guarded instead: one workgroup size, and so one pipeline, suits all grids.
Launch launch_of(
    Known& known,
    const std::tuple<int, int, int>& grid,
    const std::tuple<int, int, int>& threadgroup,
    bool aligned,
    const Caps& caps) {
  Launch l;
  l.grid = extent_of(known.source, "grid", grid, 0);
  Extent whole = extent_of(known.source, "threadgroup", threadgroup, 1);
  l.threads = clipped(known.source, whole, l.grid, caps);
  if (std::min({l.grid[0], l.grid[1], l.grid[2]}) == 0) {
    return l;
  }
  l.guarded = independent(known, {l.threads, aligned}, caps);
  Extent covered = l.grid;
  if (l.guarded) {
    l.threads = fits(whole, caps) ? whole : l.threads;
    for (int i = 0; i < 3; ++i) {
      uint32_t n = l.threads[i];
      covered[i] = (covered[i] + n - 1) / n * n;
    }
  }
  check_grid(known.source, l.grid, l.threads);
  l.dispatches = exact_dispatches(covered, l.threads);
  return l;
}

const Kernel& kernel_for(StreamEncoder& enc, Known& known, const Form& form) {
  auto& all = known_kernels();
  if (auto* k = all.find(known, form)) {
    return *k;
  }
  auto& k = build(enc, known.source, form);
  all.add(known, form, k);
  return k;
}

// The shapes, strides and ndims that the body names, in one array.
class Infos {
 public:
  template <typename T>
  void add(const T* items, size_t count) {
    constexpr size_t align = 8;
    offsets_.push_back(bytes_.size());
    auto* p = reinterpret_cast<const char*>(items);
    bytes_.insert(bytes_.end(), p, p + count * sizeof(T));
    bytes_.resize((bytes_.size() + align - 1) / align * align);
  }
  // Returns a view for each add(), in order.
  std::vector<array> place(StreamEncoder& enc) const {
    std::vector<array> views;
    if (offsets_.empty()) {
      return views;
    }
    array all = enc.temporary({int(bytes_.size())}, uint8);
    std::memcpy(all.data<char>(), bytes_.data(), bytes_.size());
    for (size_t i = 0; i < offsets_.size(); ++i) {
      size_t end = i + 1 < offsets_.size() ? offsets_[i + 1] : bytes_.size();
      int n = int(end - offsets_[i]);
      array& v =
          views.emplace_back(Shape{n}, uint8, nullptr, std::vector<array>{});
      v.copy_shared_buffer(all, {1}, {true, true, true}, n, offsets_[i]);
    }
    return views;
  }

 private:
  std::vector<char> bytes_;
  std::vector<size_t> offsets_;
};

// Arrays that a kernel reads, in the order of its arguments: each input, copied
// if `copied(input)`, then its shape, strides and ndim if the body names them.
struct ReadArrays {
  template <typename F>
  ReadArrays(
      StreamEncoder& enc,
      const std::vector<array>& inputs,
      const std::vector<std::tuple<bool, bool, bool>>& shape_infos,
      F&& copied) {
    Infos infos;
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto& x = all.emplace_back(inputs[i]);
      if (copied(x)) {
        x = contiguous_copy_gpu(x, enc.stream());
        enc.add_temporary(x);
      }
      auto [shape, strides, ndim] = shape_infos[i];
      int dims = x.ndim();
      if (dims && shape) {
        infos.add(x.shape().data(), dims);
      }
      if (dims && strides) {
        infos.add(x.strides().data(), dims);
      }
      if (dims && ndim) {
        infos.add(&dims, 1);
      }
    }
    auto views = infos.place(enc);
    if (views.empty()) {
      return;
    }
    std::vector<array> ordered;
    auto view = views.begin();
    for (size_t i = 0; i < inputs.size(); ++i) {
      ordered.push_back(all[i]);
      auto [shape, strides, ndim] = shape_infos[i];
      for (int n = all[i].ndim() ? shape + strides + ndim : 0; n > 0; --n) {
        ordered.push_back(*view++);
      }
    }
    all = std::move(ordered);
  }
  std::vector<array> all;
};

// msl::Target::extents, if accesses are checked: for the arrays of ReadArrays,
// then for the outputs. `copied` arrays have no gaps.
template <typename Copied>
std::vector<std::pair<int64_t, int64_t>> extents_of(
    const CustomSource& kernel,
    const std::vector<array>& inputs,
    const std::vector<std::tuple<bool, bool, bool>>& shape_infos,
    const Copied& copied,
    const std::vector<array>& outputs) {
  std::vector<std::pair<int64_t, int64_t>> all;
  if (!config().debug_bounds || kernel.glsl) {
    return all;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto& x = inputs[i];
    int64_t item = x.itemsize(), n = x.ndim();
    if (copied(x) || x.size() == 0) {
      all.emplace_back(0, x.nbytes());
    } else {
      auto [low, high] = reach(x.shape(), x.strides());
      all.emplace_back(low * item, high * item);
    }
    auto [shape, strides, ndim] = shape_infos[i];
    if (n && shape) {
      all.emplace_back(0, n * 4);
    }
    if (n && strides) {
      all.emplace_back(0, n * 8);
    }
    if (n && ndim) {
      all.emplace_back(0, 4);
    }
  }
  for (auto& out : outputs) {
    all.emplace_back(0, out.nbytes());
  }
  return all;
}

struct CustomParams {
  Extent base, grid, threads;
};
struct CountedParams { // of with_whole_loops()
  CustomParams params;
  uint32_t kernel;
  uint64_t report;
};
static_assert(sizeof(CountedParams) == 48);

// The i-th dispatch of a call.
void dispatch(
    StreamEncoder& enc,
    Known& known,
    const Kernel& kernel,
    const Launch& launch,
    size_t i,
    const std::vector<Operand>& reads,
    const std::vector<Operand>& writes) {
  auto& d = launch.dispatches[i];
  CustomParams params{d.base, launch.grid, launch.threads};
  Grid count{d.count[0], d.count[1], d.count[2]};
  if (!kernel.shows_cut_loops) {
    return enc.dispatch(kernel, reads, writes, params, count);
  }
  auto& loops = enc.raw().device().cut_loops();
  CountedParams counted{
      params, known_kernels().number(known, loops), loops.address()};
  enc.dispatch(kernel, reads, writes, counted, count);
}

} // namespace

std::string custom_kernel_glsl(
    const fast::CustomKernel& primitive,
    size_t arguments,
    const Caps& caps) {
  auto state = primitive.state();
  auto& known = known_kernels().get(
      std::get<0>(state),
      std::get<1>(state),
      is_fast_math(CompileOptions(std::get<10>(state))),
      arguments);
  bool aligned = !known.source.glsl;
  auto launch =
      launch_of(known, std::get<2>(state), std::get<3>(state), aligned, caps);
  return launch.dispatches.empty()
      ? ""
      : glsl_for(
            known.source, {launch.threads, aligned, launch.guarded, {}}, caps)
            .first;
}

size_t custom_kernel_arguments(
    const std::vector<array>& inputs,
    const std::vector<std::tuple<bool, bool, bool>>& shape_infos,
    size_t outputs) {
  size_t count = inputs.size() + outputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto [shape, strides, ndim] = shape_infos[i];
    count += inputs[i].ndim() ? shape + strides + ndim : 0;
  }
  return count;
}

} // namespace vulkan

namespace fast {

void CustomKernel::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  using namespace vulkan;
  if (is_precompiled_) {
    throw std::runtime_error(
        "[precompiled_cuda_kernel] " + name_ +
        " is machine code for NVIDIA's CUDA, which Vulkan does not run.");
  }
  auto& enc = encoder(stream());
  auto& known = known_kernels().get(
      name_,
      source_,
      is_fast_math(CompileOptions(compile_options_)),
      custom_kernel_arguments(inputs, shape_infos_, outputs.size()));
  // Copies are aligned, as outputs are.
  auto copied = [this](const array& x) {
    return ensure_row_contiguous_ && !x.flags().row_contiguous;
  };
  if (!init_value_ &&
      run_as_gated_delta(
          known.gated_delta,
          {known.source.source, inputs, grid_, threadgroup_},
          outputs,
          enc)) {
    return;
  }
  bool aligned = !known.source.glsl;
  for (auto& x : inputs) {
    aligned = aligned && (copied(x) || x.offset() % 16 == 0);
  }
  // Everything that can throw precedes the first record.
  auto launch = launch_of(known, grid_, threadgroup_, aligned, enc.caps());
  auto extents =
      extents_of(known.source, inputs, shape_infos_, copied, outputs);
  std::vector<const Kernel*> kernels;
  for (auto& d : launch.dispatches) {
    Form form{d.threads, aligned, launch.guarded, extents};
    kernels.push_back(&kernel_for(enc, known, form));
  }

  for (auto& out : outputs) {
    if (init_value_) {
      array value(*init_value_, out.dtype());
      enc.add_temporary(value);
      fill_gpu(value, out, stream());
    } else {
      out.set_data(allocator::malloc(out.nbytes()));
    }
  }
  ReadArrays arrays(enc, inputs, shape_infos_, copied);
  // Arrays without items have no memory. Spare memory replaces them in case
  // that a kernel accesses one.
  std::optional<array> nobodys;
  auto operand = [&](const array& x) -> Operand {
    if (x.nbytes() || kernels.empty()) {
      return x;
    }
    if (!nobodys) {
      nobodys.emplace(Shape{4096}, uint8, nullptr, std::vector<array>{});
      fill_with_zeros(*nobodys, enc);
      enc.add_temporary(*nobodys);
    }
    return *nobodys;
  };
  std::vector<Operand> reads, writes;
  std::transform(
      arrays.all.begin(), arrays.all.end(), std::back_inserter(reads), operand);
  std::transform(
      outputs.begin(), outputs.end(), std::back_inserter(writes), operand);
  for (size_t i = 0; i < kernels.size(); ++i) {
    dispatch(enc, known, *kernels[i], launch, i, reads, writes);
  }
}

} // namespace fast

} // namespace mlx::core
