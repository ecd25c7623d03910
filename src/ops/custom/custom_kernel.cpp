// Custom kernels: mx.fast.metal_kernel, whose Metal body is translated
// (msl/translate.h), and mlx_vulkan.fast.vulkan_kernel, whose body is GLSL.
// Both are MLX's CustomKernel with the text that MLX generated for the call.
#include <algorithm>
#include <cstring>
#include <deque>
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
#include "pipeline/library.h"
#include "runtime/device.h"
#include "vk/config.h"

namespace mlx::core {

namespace vulkan {

namespace {

using Extent = std::array<uint32_t, 3>;

using ShapeInfos = std::vector<std::tuple<bool, bool, bool>>;

constexpr uint32_t simd_width = 32;

// A translation, and the kernels compiled from it by their threads.
struct Translated {
  msl::Target target;
  msl::Translation made;
  uint32_t subgroup; // to request; 0: any
  std::vector<std::pair<Extent, const Kernel*>> kernels;
};

// A text that MLX generated, and its translations.
struct Known {
  CustomSource source;
  std::optional<GatedDeltaKernel> gated_delta;
  std::string loops; // loops_of()
  uint32_t number = 0; // from CutLoops::add_kernel()
  std::deque<Translated> translated;
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
    made->loops = loops_of(made->source);
    if (!made->source.glsl) {
      made->gated_delta = gated_delta_kernel(made->source.source);
    }
    if (fast_math) { // last, to keep line numbers
      made->source.source.header += "\n#define __FAST_MATH__ 1";
    }
    std::lock_guard lock(mutex_);
    return *by_text.try_emplace(text, std::move(made)).first->second;
  }
  Translated* find(Known& known, const msl::Target& target) {
    std::lock_guard lock(mutex_);
    for (auto& t : known.translated) {
      if (t.target == target) {
        return &t;
      }
    }
    return nullptr;
  }
  Translated& add(Known& known, Translated&& made) {
    std::lock_guard lock(mutex_);
    return known.translated.emplace_back(std::move(made));
  }
  const Kernel* find(const Translated& code, const Extent& threads) {
    std::lock_guard lock(mutex_);
    for (auto& [size, kernel] : code.kernels) {
      if (size == threads) {
        return kernel;
      }
    }
    return nullptr;
  }
  void add(Translated& code, const Extent& threads, const Kernel& kernel) {
    std::lock_guard lock(mutex_);
    code.kernels.emplace_back(threads, &kernel);
  }
  uint32_t number(Known& known, CutLoops& loops) {
    std::lock_guard lock(mutex_);
    if (known.number == 0) {
      known.number = loops.add_kernel(known.source.title(), known.loops);
    }
    return known.number;
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
      : "\nIf it is a model's own, MLX_VK_METAL_KERNELS=0 has mlx-lm and "
        "mlx-vlm "
        "take MLX's operations instead.";
}

Translated translated(
    const CustomSource& kernel,
    const msl::Target& target,
    const Caps& caps) {
  if (kernel.glsl) {
    uint32_t wanted = kernel.subgroup_size;
    uint32_t least = caps.min_subgroup_size, most = caps.max_subgroup_size;
    if (wanted && sure_subgroup(caps, wanted) != wanted) {
      kernel.refuse(
          "subgroup_size=" + std::to_string(wanted) + " cannot be had on " +
          caps.name + ", whose subgroups have " + std::to_string(least) +
          (least == most ? "" : " to " + std::to_string(most)) +
          " invocations" +
          (caps.required_subgroup_size || least == most
               ? ""
               : " as the driver likes") +
          ".");
    }
    return {target, glsl_of(kernel, target.whole_loops), wanted, {}};
  }
  try {
    ++compile_counters().translations;
    auto made = msl::translate(kernel.source, target);
    bool ask = made.collective && target.subgroup == simd_width;
    return {target, std::move(made), ask ? simd_width : 0, {}};
  } catch (const std::runtime_error& e) {
    throw std::runtime_error(e.what() + what_else(kernel));
  }
}

const Kernel& build(
    StreamEncoder& enc,
    const CustomSource& kernel,
    const Translated& code,
    const Extent& threads) {
  std::string text = msl::with_threads(code.made.glsl, threads);
  std::vector<Define> defines;
  if (code.subgroup) {
    defines.emplace_back("SG", code.subgroup);
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
    const char* name,
    const std::tuple<int, int, int>& t,
    int least) {
  auto [x, y, z] = t;
  if (std::min({x, y, z}) < least) {
    kernel.refuse(
        std::string("the ") + name + " (" + std::to_string(x) + ", " +
        std::to_string(y) + ", " + std::to_string(z) + ") has less than " +
        std::to_string(least) + " threads on an axis.");
  }
  return {uint32_t(x), uint32_t(y), uint32_t(z)};
}

struct Launch {
  Extent grid{}, threads{}; // of a usual threadgroup
  Translated* code = nullptr; // null for an empty grid
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
    kernel.refuse(
        "a threadgroup of " + words(e) + " threads has " +
        std::to_string(threads) + "; " + caps.name + " allows " +
        std::to_string(caps.max_workgroup_size) +
        ". Pass a smaller threadgroup=." + what_else(kernel));
  }
  for (int i = 0; i < 3; ++i) {
    uint32_t most = caps.max_workgroup_axes[i];
    if (most && e[i] > most) {
      kernel.refuse(
          "a threadgroup of " + words(e) + " threads; on " + caps.name +
          " its axis " + "xyz"[i] + " has at most " + std::to_string(most) +
          ". Pass another threadgroup=." + what_else(kernel));
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
    kernel.refuse(
        "a grid of " + words(grid) + " threads in threadgroups of " +
        words(threads) +
        " is more than one call may have: 2^44 threads, and 65536 dispatches "
        "of 65535 threadgroups on an axis. Let a thread do more, or call the "
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

msl::Target target_of(const Known& known, bool aligned, const Caps& caps) {
  msl::Target t;
  t.aligned = aligned;
  t.subgroup = sure_subgroup(caps, simd_width);
  t.shared_bytes = caps.shared_memory;
  t.whole_loops = caps.software() && !known.loops.empty();
  return t;
}

Translated&
code_for(Known& known, const msl::Target& target, const Caps& caps) {
  auto& all = known_kernels();
  auto* found = all.find(known, target);
  return found ? *found
               : all.add(known, translated(known.source, target, caps));
}

// Splits the grid into exact dispatches. Kernels with independent threads are
// guarded instead: one workgroup size, and so one pipeline, suits all grids.
Launch launch_of(
    Known& known,
    const msl::Target& target,
    const std::tuple<int, int, int>& grid,
    const std::tuple<int, int, int>& threadgroup,
    const Caps& caps) {
  Launch l;
  l.grid = extent_of(known.source, "grid", grid, 0);
  Extent whole = extent_of(known.source, "threadgroup", threadgroup, 1);
  l.threads = clipped(known.source, whole, l.grid, caps);
  if (std::min({l.grid[0], l.grid[1], l.grid[2]}) == 0) {
    return l;
  }
  l.code = &code_for(known, target, caps);
  Extent covered = l.grid;
  if (l.code->made.independent) {
    l.threads = fits(whole, caps) ? whole : l.threads;
    for (int i = 0; i < 3; ++i) {
      uint32_t n = l.threads[i];
      covered[i] = round_up(covered[i], n);
    }
  }
  check_grid(known.source, l.grid, l.threads);
  l.dispatches = exact_dispatches(covered, l.threads);
  return l;
}

const Kernel& kernel_for(
    StreamEncoder& enc,
    const Known& known,
    Translated& code,
    const Extent& threads) {
  auto& all = known_kernels();
  if (auto* k = all.find(code, threads)) {
    return *k;
  }
  auto& k = build(enc, known.source, code, threads);
  all.add(code, threads, k);
  return k;
}

// Calls f(items, bytes) for the shape, strides and ndim of an input that the
// body names; inputs without dimensions have none.
template <typename F>
void each_info(const array& x, const ShapeInfos::value_type& infos, F&& f) {
  auto [shape, strides, ndim] = infos;
  int dims = x.ndim();
  if (dims && shape) {
    f(static_cast<const void*>(x.shape().data()), dims * sizeof(int32_t));
  }
  if (dims && strides) {
    f(static_cast<const void*>(x.strides().data()), dims * sizeof(int64_t));
  }
  if (dims && ndim) {
    f(static_cast<const void*>(&dims), sizeof(int32_t));
  }
}

// Arrays that a kernel reads, in the order of its arguments: each input, copied
// if `copied(input)`, then its shape, strides and ndim if the body names them,
// which share one allocation.
template <typename F>
std::vector<array> read_arrays(
    StreamEncoder& enc,
    std::vector<array> inputs,
    const ShapeInfos& shape_infos,
    F&& copied) {
  auto aligned = [](size_t bytes) { return round_up(bytes, 8); };
  std::vector<char> bytes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto& x = inputs[i];
    if (copied(x)) {
      x = contiguous_copy_gpu(x, enc.stream());
      enc.add_temporary(x);
    }
    each_info(x, shape_infos[i], [&](const void* items, size_t n) {
      auto* p = static_cast<const char*>(items);
      bytes.insert(bytes.end(), p, p + n);
      bytes.resize(aligned(bytes.size()));
    });
  }
  if (bytes.empty()) {
    return inputs;
  }
  array block = enc.temporary({int(bytes.size())}, uint8);
  std::memcpy(block.data<char>(), bytes.data(), bytes.size());
  std::vector<array> all;
  size_t at = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    all.push_back(inputs[i]);
    each_info(inputs[i], shape_infos[i], [&](const void*, size_t n) {
      n = aligned(n);
      auto& view =
          all.emplace_back(Shape{int(n)}, uint8, nullptr, std::vector<array>{});
      view.copy_shared_buffer(block, {1}, {true, true, true}, n, at);
      at += n;
    });
  }
  return all;
}

// msl::Target::extents, if accesses are checked: for those of read_arrays(),
// then for the outputs. `copied` arrays have no gaps.
template <typename Copied>
std::vector<std::pair<int64_t, int64_t>> extents_of(
    const CustomSource& kernel,
    const std::vector<array>& inputs,
    const ShapeInfos& shape_infos,
    const Copied& copied,
    const std::vector<array>& outputs) {
  std::vector<std::pair<int64_t, int64_t>> all;
  if (!config().debug_bounds || kernel.glsl) {
    return all;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto& x = inputs[i];
    int64_t item = x.itemsize();
    if (copied(x) || x.size() == 0) {
      all.emplace_back(0, x.nbytes());
    } else {
      auto [low, high] = reach(x.shape(), x.strides());
      all.emplace_back(low * item, high * item);
    }
    each_info(
        x, shape_infos[i], [&](auto*, size_t n) { all.emplace_back(0, n); });
  }
  for (auto& out : outputs) {
    all.emplace_back(0, out.nbytes());
  }
  return all;
}

struct CustomParams {
  Extent base, grid, threads;
};
struct CountedParams { // of kernels with whole_loops
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
  auto target = target_of(known, aligned, caps);
  auto launch =
      launch_of(known, target, std::get<2>(state), std::get<3>(state), caps);
  return launch.code ? msl::with_threads(launch.code->made.glsl, launch.threads)
                     : "";
}

size_t custom_kernel_arguments(
    const std::vector<array>& inputs,
    const ShapeInfos& shape_infos,
    size_t outputs) {
  size_t count = inputs.size() + outputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    each_info(inputs[i], shape_infos[i], [&](auto*, size_t) { ++count; });
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
  auto target = target_of(known, aligned, enc.caps());
  target.extents =
      extents_of(known.source, inputs, shape_infos_, copied, outputs);
  auto launch = launch_of(known, target, grid_, threadgroup_, enc.caps());
  std::vector<const Kernel*> kernels;
  for (auto& d : launch.dispatches) {
    kernels.push_back(&kernel_for(enc, known, *launch.code, d.threads));
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
  auto read = read_arrays(enc, inputs, shape_infos_, copied);
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
  std::transform(read.begin(), read.end(), std::back_inserter(reads), operand);
  std::transform(
      outputs.begin(), outputs.end(), std::back_inserter(writes), operand);
  for (size_t i = 0; i < kernels.size(); ++i) {
    dispatch(enc, known, *kernels[i], launch, i, reads, writes);
  }
}

} // namespace fast

} // namespace mlx::core
