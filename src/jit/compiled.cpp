// Compiled: one generated kernel per fused graph.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "jit/emit.h"
#include "mlx/backend/common/compiled.h"
#include "mlx/primitives.h"
#include "ops/elementwise.h"

namespace mlx::core {

namespace vulkan {

namespace {

// A constant's item. A valid host side is read directly, because data() would
// make that side authoritative at every call.
uint64_t item_bits(const StreamEncoder& enc, const array& x) {
  const char* p = enc.host_data(x);
  uint64_t bits = 0;
  std::memcpy(&bits, p ? p : x.data<char>(), x.itemsize());
  return bits;
}

// MLX's limit is 24 inputs, but operations under way can add more.
constexpr size_t max_fused_inputs = 64;

// Dtypes and items of a graph's constants, in order.
struct Constants {
  size_t size = 0;
  std::array<std::pair<Type, uint64_t>, max_fused_inputs> all;

  bool operator==(const Constants& other) const {
    return size == other.size &&
        std::equal(all.begin(), all.begin() + size, other.all.begin());
  }
};

// A graph's source and the kernels made from it, by form and index width. The
// pipeline table owns the kernels and lets each be compiled once.
struct GraphKernel {
  Constants constants;
  std::optional<GateRecord> gate; // if the graph is a gate
  std::string source;
  std::atomic<const Kernel*> kernels[5][2] = {};
};

// Kernels by MLX's name of the graph, and by its constants, whose dtypes and
// values the name does not determine (beyond a hash of their printed form). The
// mutex is held for lookups, not while code is emitted or compiled.
class GraphKernelTable {
 public:
  // The graph, which make() emits at the first call. Two threads may emit it at
  // the same time; one result, which is equivalent, is kept.
  template <typename F>
  GraphKernel&
  get(const std::string& name, const Constants& constants, F make) {
    {
      std::lock_guard lock(mutex_);
      if (auto* known = find(name, constants)) {
        return *known;
      }
    }
    auto made = make();
    std::lock_guard lock(mutex_);
    auto* known = find(name, constants);
    return known ? *known : *by_name_[name].emplace_back(std::move(made));
  }

 private:
  GraphKernel* find(const std::string& name, const Constants& constants) {
    auto it = by_name_.find(name);
    if (it != by_name_.end()) {
      for (auto& candidate : it->second) {
        if (candidate->constants == constants) {
          return candidate.get();
        }
      }
    }
    return nullptr;
  }

  std::mutex mutex_;
  std::unordered_map<std::string, std::vector<std::unique_ptr<GraphKernel>>>
      by_name_;
};

GraphKernelTable& graph_kernels() {
  static auto* kernels = new GraphKernelTable;
  return *kernels;
}

Constants constants_of(
    const StreamEncoder& enc,
    const std::vector<array>& inputs,
    const std::function<bool(size_t)>& is_constant) {
  if (inputs.size() > max_fused_inputs) {
    throw std::runtime_error(
        "[compile] The Vulkan backend fuses operations of at most " +
        std::to_string(max_fused_inputs) + " inputs; got " +
        std::to_string(inputs.size()) + ".");
  }
  Constants constants;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (is_constant(i)) {
      constants.all[constants.size++] = {
          type_of(inputs[i]), item_bits(enc, inputs[i])};
    }
  }
  return constants;
}

FusedGraph graph_of(
    const Constants& constants,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs,
    const std::vector<array>& tape,
    const std::function<bool(size_t)>& is_constant) {
  FusedGraph g;
  std::unordered_map<std::uintptr_t, int> number;
  size_t next_constant = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& x = inputs[i];
    FusedInput in;
    in.type = type_of(x);
    in.constant = is_constant(i);
    in.scalar = is_scalar(x);
    in.bits = in.constant ? constants.all[next_constant++].second : 0;
    number.emplace(x.id(), static_cast<int>(i));
    g.inputs.push_back(in);
  }
  for (const auto& x : tape) {
    FusedOp op;
    op.type = type_of(x);
    if (!is_static_cast(x.primitive())) {
      op.function = x.primitive().name();
    }
    for (const auto& arg : x.inputs()) {
      op.args.push_back(number.at(arg.id()));
      if (op.function.empty()) {
        break; // a shapeless Broadcast's other inputs only give the shape
      }
    }
    number.emplace(x.id(), static_cast<int>(g.inputs.size() + g.ops.size()));
    g.ops.push_back(std::move(op));
  }
  for (const auto& x : outputs) {
    g.outputs.push_back(number.at(x.id()));
  }
  return g;
}

// Dispatches the kernel over strided operands of up to DIMS dimensions.
template <int DIMS>
void dispatch_strided(
    StreamEncoder& enc,
    const Kernel& k,
    const std::vector<Operand>& reads,
    const std::vector<Operand>& writes,
    const Shape& shape,
    std::span<const Strides> strides) {
  StridedItems<max_fused_inputs, DIMS> items;
  const Shape one{1};
  set_items(
      items,
      writes[0].a->size(),
      shape.empty() ? one : shape,
      strides.data(),
      strides.size());
  enc.dispatch_bytes(
      k,
      reads,
      writes,
      &items,
      offsetof(decltype(items), strides) +
          std::max<size_t>(strides.size(), 1) * sizeof(items.strides[0]),
      strided_grid(items.rows, items.last));
}

} // namespace

} // namespace vulkan

void Compiled::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  using namespace vulkan;
  auto& enc = encoder(stream());
  Constants constants = constants_of(enc, inputs_, is_constant_);
  auto& fused = graph_kernels().get(kernel_lib_, constants, [&] {
    auto made = std::make_unique<GraphKernel>();
    auto graph = graph_of(constants, inputs_, outputs_, tape_, is_constant_);
    made->source = emit_fused(graph);
    made->gate = gate_of(graph);
    made->constants = constants;
    return made;
  });

  auto [dense, negative_strides, shape, strides] =
      compiled_collapse_contiguous_dims(inputs, outputs[0], is_constant_);
  std::vector<Operand> reads;
  reads.reserve(inputs.size());
  bool large = needs_large_index(outputs[0]);
  bool fours = true; // outputs are fresh, or share an input's memory and offset
  size_t bytes = 0;
  for (auto& out : outputs) {
    bytes = std::max(bytes, out.itemsize());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_constant_(i)) {
      large = large || needs_large_index(inputs[i]);
      bytes = std::max(bytes, inputs[i].itemsize());
      fours = fours && (is_scalar(inputs[i]) || by_fours(inputs[i]));
      reads.emplace_back(inputs[i]);
    }
  }
  int form = dense ? dense_form(outputs[0].size(), fours, bytes)
      : variant_ndim(shape.size(), "compile") <= 4 ? FORM_STRIDED
                                                   : FORM_STRIDED16;

  auto& known = fused.kernels[form][large];
  const Kernel* kernel = known.load(std::memory_order_acquire);
  if (!kernel || kernel->failed()) { // it throws if it fails again
    const Define defines[] = {{"FORM", form}, {"LARGE", large}};
    std::string_view label(name());
    kernel = &enc.source_kernel(label.substr(0, 120), fused.source, defines);
    known.store(kernel, std::memory_order_release);
  }

  compiled_allocate_outputs(inputs, outputs, is_constant_, dense);
  std::vector<Operand> writes(outputs.begin(), outputs.end());
  if (dense) {
    uint64_t n = outputs[0].data_size();
    Descriptor descriptor;
    if (fused.gate) {
      descriptor = *fused.gate;
    }
    return enc.dispatch(
        *kernel, reads, writes, n, dense_grid(n, form), {}, descriptor);
  }
  // The first strides are the output's.
  auto* launch =
      form == FORM_STRIDED ? dispatch_strided<4> : dispatch_strided<max_ndim>;
  launch(enc, *kernel, reads, writes, shape, std::span(strides).subspan(1));
}

} // namespace mlx::core
