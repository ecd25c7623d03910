// How a primitive starts a kernel: one typed statement.
//
//   auto& enc = vulkan::encoder(stream());
//   SoftmaxVariant variant{.T = type_of(in), .LANES = 32};
//   enc.dispatch(variant, {in}, {out}, SoftmaxArgs{rows}, linear(count));
//
// Variant and argument block are the kernel's interface,
// src/kernels/<kernel>.h; a block of another kernel does not compile. It is:
// one 8-byte address per input, one per output, then the parameters. The
// encoder works out hazards and barriers, moves data to the device where it
// must, and never outlives the arrays: gpu::eval keeps a primitive's inputs and
// outputs alive until the GPU is done, temporaries need add_temporary().
// Threads: an encoder belongs to the thread that uses its stream. There is one
// per stream and thread, and a process-wide map for streams made to be used
// from any thread.
#pragma once

#include <initializer_list>
#include <optional>
#include <type_traits>
#include <vector>

#include "mlx/array.h"
#include "mlx/small_vector.h"
#include "mlx/stream.h"

#include "pipeline/pipeline.h"
#include "pipeline/variant.h"
#include "policy/policy.h"
#include "runtime/encoder.h"

namespace mlx::core::vulkan {

// The GPU type of a dtype.
Type type_of(Dtype dtype);
inline Type type_of(const array& a) {
  return type_of(a.dtype());
}

// An array bound to a kernel. The hazard range is the array's own elements
// when it is row-contiguous, else its whole buffer; pass a byte range relative
// to the array's first element where a kernel touches less.
struct Operand {
  Operand(const array& a) : a(&a) {}
  Operand(const array& a, int64_t begin, int64_t end)
      : a(&a), ranged(true), begin(begin), end(end) {}
  const array* a;
  bool ranged = false;
  int64_t begin = 0, end = 0;
};

// Operands whose number is known at run time, without an allocation up to 8.
struct FewOperands : SmallVector<Operand, 8> {
  using SmallVector::SmallVector;
  void add(const Operand& o) {
    push_back(o);
  }
};

// Operands in the order of the kernel's pointers: a list, a vector, or one.
class OperandList {
 public:
  OperandList(std::initializer_list<Operand> list) {
    data_ = list.begin(); // lives as long as the call
    size_ = list.size();
  }
  OperandList(std::span<const Operand> list)
      : data_(list.data()), size_(list.size()) {}
  OperandList(const std::vector<Operand>& list)
      : OperandList(std::span(list)) {}
  OperandList(const FewOperands& list)
      : data_(list.begin()), size_(list.size()) {}
  operator std::span<const Operand>() const {
    return {data_, size_};
  }

 private:
  const Operand* data_ = nullptr;
  size_t size_ = 0;
};

// The memory of an array; null if it has no items.
inline Buffer* buffer_of(const array& a) {
  auto none = allocator::Buffer(nullptr);
  auto buffer = a.data_shared_ptr() ? a.buffer() : none;
  return static_cast<Buffer*>(buffer.ptr());
}

// The byte range of its buffer that an operand may touch.
Binding bind(const Operand& o);

// MLX's view of a runtime::Encoder.
class StreamEncoder {
 public:
  explicit StreamEncoder(Stream s, Encoder& enc) : stream_(s), enc_(enc) {}

  // A kernel from GLSL text. The whole text is part of the key: keep the
  // result, since hashing a long text is slow.
  const Kernel& source_kernel(
      std::string_view name,
      const std::string& source,
      std::span<const Define> defines);

  // The device's capabilities, for plans.
  const Caps& caps() const;
  const Target& target() const;

  // Appends a dispatch; a grid with a zero dimension appends nothing. Other
  // threads compile the kernel at its first use. If that fails, its batch fails
  // with the compiler's message and the variant, and the next dispatch throws
  // the same as std::runtime_error. Give `work` for kernels that compute much
  // for each byte, or that read few bytes of their operands. `descriptor` lets
  // runtime/rewrite.h join the dispatch with its neighbours.
  template <KernelVariant V, typename Args>
  requires Takes<V, Args>
  void dispatch(
      const V& variant,
      const OperandList& inputs,
      const OperandList& outputs,
      const Args& args,
      Grid grid,
      const Work& work = {},
      const Descriptor& descriptor = {}) {
    const Kernel& kernel = pipelines().get(variant);
    dispatch_bytes(
        kernel, inputs, outputs, &args, sizeof args, grid, work, descriptor);
  }
  // dispatch() of operands that are bound.
  template <KernelVariant V, typename Args>
  requires Takes<V, Args>
  void dispatch_bound(
      const V& variant,
      std::span<const Binding> reads,
      std::span<const Binding> writes,
      const Args& args,
      Grid grid,
      const Work& work) {
    enc_.dispatch(
        pipelines().get(variant),
        reads,
        writes,
        &args,
        sizeof args,
        grid,
        work);
  }
  // For a source_kernel(), whose block no type describes.
  template <typename Args>
  void dispatch(
      const Kernel& k,
      const OperandList& inputs,
      const OperandList& outputs,
      const Args& args,
      Grid grid,
      const Work& work = {},
      const Descriptor& descriptor = {}) {
    static_assert(std::is_trivially_copyable_v<Args>);
    dispatch_bytes(
        k, inputs, outputs, &args, sizeof args, grid, work, descriptor);
  }
  void dispatch_bytes(
      const Kernel& k,
      std::span<const Operand> inputs,
      std::span<const Operand> outputs,
      const void* params,
      size_t params_size,
      Grid grid,
      const Work& work = {},
      const Descriptor& descriptor = {});

  // For kernels that write a part of an array and keep the rest: uploads the
  // array. Otherwise a range that is only written counts as written whole, and
  // the host's values of it are not uploaded.
  void bring_to_device(const array& a);
  // Keeps a temporary alive until the GPU has used it.
  void add_temporary(const array& a);

  // An uninitialised, row-contiguous temporary, already kept alive.
  array temporary(Shape shape, Dtype dtype);

  // A temporary in memory that every third call reuses, after its last use:
  // for data from one dispatch to the next. With three, such pairs can run side
  // by side. The memory grows and is kept.
  array scratch(Shape shape, Dtype dtype);

  // At least `count` uint32 zeros for a kernel that counts finished workgroups
  // and leaves zeros behind. They must be among its outputs, so that dispatches
  // with the same zeros do not overlap; the next few calls return others.
  const array& counters(uint32_t count);

  // A host pointer to `a` if its host side is valid, else null. Unlike
  // data<T>() it neither waits nor copies.
  const char* host_data(const array& a) const;

  // For the backend; ops do not need it.
  Encoder& raw() {
    return enc_;
  }
  const Stream& stream() const {
    return stream_;
  }
  std::vector<array> spare_outputs; // gpu::eval's, empty

 private:
  PipelineTable& pipelines() const;

  Stream stream_;
  Encoder& enc_;
  std::optional<array> scratch_[3]; // bytes
  uint32_t scratch_turn_ = 0;
  std::vector<array> counters_;
  size_t next_counters_ = 0;
};

// The calling thread's encoder of a stream. Throws std::runtime_error for a
// stream that does not exist in this thread.
StreamEncoder& encoder(Stream s);

} // namespace mlx::core::vulkan
