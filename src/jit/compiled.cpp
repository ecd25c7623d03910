// Compiled: one generated kernel per fused graph.
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "jit/emit.h"
#include "mlx/backend/common/compiled.h"
#include "mlx/primitives.h"
#include "ops/elementwise.h"

namespace mlx::core {

namespace vulkan {

namespace {

// A constant's item. data() would make the host side of its memory the
// authoritative one at every call; where that side is valid, reading is enough.
uint64_t item_bits(const StreamEncoder& enc, const array& x) {
  const char* p = enc.host_data(x);
  uint64_t bits = 0;
  std::memcpy(&bits, p ? p : x.data<char>(), x.itemsize());
  return bits;
}

// A graph's source and the kernels made from it, by form and index width.
struct FusedKernel {
  std::vector<std::pair<Type, uint64_t>> constants;
  std::string source;
  const Kernel* kernels[4][2] = {};
};

// By MLX's name of the graph, which tells all but the constants' dtypes and
// (up to a hash of their printed form) values: those are compared.
struct FusedKernels {
  std::mutex mutex;
  std::unordered_map<std::string, std::vector<std::unique_ptr<FusedKernel>>>
      by_name;
};
FusedKernels& fused_kernels() {
  static auto* kernels = new FusedKernels;
  return *kernels;
}

FusedGraph graph_of(
    const StreamEncoder& enc,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs,
    const std::vector<array>& tape,
    const std::function<bool(size_t)>& is_constant) {
  FusedGraph g;
  std::unordered_map<std::uintptr_t, int> number;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& x = inputs[i];
    FusedInput in;
    in.type = type_of(x);
    in.constant = is_constant(i);
    in.scalar = is_scalar(x);
    in.bits = in.constant ? item_bits(enc, x) : 0;
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

// The parameter block of FORM 1 and 2 after the addresses; at most 24 inputs.
class Block {
 public:
  Block(const Shape& shape, uint64_t size, int dims) : dims_(dims) {
    ndim = std::max<int>(shape.size(), 1);
    last = shape.empty() ? 1 : shape.back();
    rows = size / last;
    bytes_.resize(16 + 4 * dims);
    std::memcpy(bytes_.data(), &rows, 8);
    std::memcpy(bytes_.data() + 8, &last, 4);
    std::memcpy(bytes_.data() + 12, &ndim, 4);
    for (size_t d = 0; d < shape.size(); ++d) {
      std::memcpy(bytes_.data() + 16 + 4 * d, &shape[d], 4);
    }
  }
  void add(const Strides& strides) {
    size_t at = bytes_.size();
    bytes_.resize(at + 8 * dims_);
    std::memcpy(bytes_.data() + at, strides.data(), 8 * strides.size());
  }
  const void* data() const {
    return bytes_.data();
  }
  size_t size() const {
    return bytes_.size();
  }

  uint64_t rows;
  uint32_t last;
  int32_t ndim;

 private:
  int dims_;
  std::vector<std::byte> bytes_;
};

} // namespace

} // namespace vulkan

void Compiled::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  using namespace vulkan;
  if (outputs[0].size() == 0) {
    for (auto& out : outputs) {
      out.set_data(allocator::malloc(0));
    }
    return;
  }

  auto& enc = encoder(stream());
  // Find the graph, or emit it.
  FusedKernel* fused = nullptr;
  auto& all = fused_kernels();
  std::unique_lock lock(all.mutex);
  auto& same_name = all.by_name[kernel_lib_];
  for (auto& candidate : same_name) {
    size_t k = 0;
    bool equal = true;
    for (size_t i = 0; i < inputs_.size() && equal; ++i) {
      if (is_constant_(i)) {
        auto& [type, bits] = candidate->constants[k++];
        equal =
            type == type_of(inputs_[i]) && bits == item_bits(enc, inputs_[i]);
      }
    }
    if (equal) {
      fused = candidate.get();
      break;
    }
  }
  if (!fused) {
    auto made = std::make_unique<FusedKernel>();
    auto graph = graph_of(enc, inputs_, outputs_, tape_, is_constant_);
    for (const auto& in : graph.inputs) {
      if (in.constant) {
        made->constants.emplace_back(in.type, in.bits);
      }
    }
    made->source = emit_fused(graph);
    fused = same_name.emplace_back(std::move(made)).get();
  }

  auto [dense, negative_strides, shape, strides] =
      compiled_collapse_contiguous_dims(inputs, outputs[0], is_constant_);
  if (shape.size() > max_ndim && !dense) {
    strided_params<1>("compile", shape, {}); // throws
  }
  int form = dense ? 3 : shape.size() <= 4 ? 1 : 2;
  bool large = needs_large_index(outputs[0]);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_constant_(i)) {
      large = large || needs_large_index(inputs[i]);
      // Outputs are fresh, or share an input's memory and offset.
      if (dense && !is_scalar(inputs[i]) && !quad_aligned(inputs[i])) {
        form = 0;
      }
    }
  }

  // Compile before anything is encoded: an error must leave the batch whole.
  const Kernel*& kernel = fused->kernels[form][large];
  if (!kernel) {
    std::vector<Define> defines{{"FORM", form}};
    if (large) {
      defines.emplace_back("LARGE", 1);
    }
    std::string_view label(name());
    kernel = &enc.source_kernel(label.substr(0, 120), fused->source, defines);
  }
  lock.unlock();

  compiled_allocate_outputs(inputs, outputs, is_constant_, dense);
  std::vector<Operand> reads;
  std::vector<Operand> writes(outputs.begin(), outputs.end());
  reads.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_constant_(i)) {
      reads.emplace_back(inputs[i]);
    }
  }
  if (dense) {
    uint64_t n = outputs[0].data_size();
    enc.dispatch_bytes(
        *kernel, reads, writes, &n, sizeof(n), dense_grid(n, form));
    return;
  }
  Block block(shape, outputs[0].size(), form == 1 ? 4 : max_ndim);
  for (size_t k = 1; k < strides.size(); ++k) {
    block.add(strides[k]);
  }
  enc.dispatch_bytes(
      *kernel,
      reads,
      writes,
      block.data(),
      block.size(),
      strided_grid(block.rows, block.last));
}

} // namespace mlx::core
