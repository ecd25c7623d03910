// The to-do list: weak definitions of every eval_gpu and use_fallback that is
// the backend's to write. A strong definition elsewhere wins at link time.
#include "backend/fallback.h"

#include "mlx/backend/gpu/copy.h"
#include "mlx/backend/gpu/scan.h"
#include "mlx/backend/gpu/slicing.h"
#include "mlx/distributed/primitives.h"
#include "mlx/fast_primitives.h"

#define WEAK __attribute__((weak))

// eval_cpu was reviewed: right for every mode, dtype and layout it accepts,
// and it throws for the rest.
#define CPU(Op)                                                          \
  WEAK void Op::eval_gpu(const std::vector<array>& inputs, array& out) { \
    vulkan::run_on_cpu(*this, inputs, {out});                            \
  }
#define CPU_MULTI(Op)                                                  \
  WEAK void Op::eval_gpu(                                              \
      const std::vector<array>& inputs, std::vector<array>& outputs) { \
    vulkan::run_on_cpu(*this, inputs, outputs);                        \
  }

// eval_cpu does not exist or does something else than eval_gpu must.
#define NO_KERNEL(Op)                                                    \
  WEAK void Op::eval_gpu(const std::vector<array>& inputs, array& out) { \
    vulkan::throw_no_kernel(*this, inputs);                              \
  }
#define NO_KERNEL_MULTI(Op)                                            \
  WEAK void Op::eval_gpu(                                              \
      const std::vector<array>& inputs, std::vector<array>& outputs) { \
    vulkan::throw_no_kernel(*this, inputs);                            \
  }

// Decomposed while the graph is built; Metal has a kernel for it.
#define DECOMPOSE(Op)                    \
  WEAK bool Op::use_fallback(Stream s) { \
    if (s.device == Device::gpu) {       \
      vulkan::count_decomposition(#Op);  \
    }                                    \
    return true;                         \
  }                                      \
  NO_KERNEL_MULTI(Op)

namespace mlx::core {

// Unary
CPU(Abs)
CPU(ArcCos)
CPU(ArcCosh)
CPU(ArcSin)
CPU(ArcSinh)
CPU(ArcTan)
CPU(ArcTanh)
CPU(BitwiseInvert)
CPU(Ceil)
CPU(Conjugate)
CPU(Cos)
CPU(Cosh)
CPU(Erf)
CPU(ErfInv)
CPU(Exp)
CPU(Expm1)
CPU(Floor)
CPU(Imag)
CPU(Log)
CPU(Log1p)
CPU(LogicalNot)
CPU(Negative)
CPU(Real)
CPU(Round)
CPU(Sigmoid)
CPU(Sign)
CPU(Sin)
CPU(Sinh)
CPU(Sqrt)
CPU(Square)
CPU(Tan)
CPU(Tanh)

// Binary, ternary, generators
CPU(Add)
CPU(ArcTan2)
CPU(BitwiseBinary)
CPU(Divide)
CPU_MULTI(DivMod)
CPU(Equal)
CPU(FloorDivide)
CPU(Greater)
CPU(GreaterEqual)
CPU(Less)
CPU(LessEqual)
CPU(LogAddExp)
CPU(LogicalAnd)
CPU(LogicalOr)
CPU(Maximum)
CPU(Minimum)
CPU(Multiply)
CPU(NotEqual)
CPU(Power)
CPU(Remainder)
CPU(Subtract)
CPU(Select)
CPU(Arange)
CPU(RandomBits)

// Reductions and sorting
CPU(Reduce)
CPU(ArgReduce)
CPU(Scan)
CPU(Softmax)
CPU(LogSumExp)
CPU(Sort)
CPU(ArgSort)
CPU(Partition)
CPU(ArgPartition)
CPU(SearchSorted)

// Indexing
CPU(Gather)
CPU(GatherAxis)
CPU(Scatter)
CPU(ScatterAxis)
CPU(MaskedScatter)
CPU(SliceUpdate)

// Matrices. The CPU's gathered products take float32 only and say so.
CPU(Matmul)
CPU(AddMM)
CPU(GatherMM)
CPU(QuantizedMatmul)
CPU(GatherQMM)

// The CPU evaluates these for single rows only, or not at all.
NO_KERNEL(QQMatmul)
NO_KERNEL(GatherQQMM)

CPU_MULTI(Compiled)

namespace fast {

CPU_MULTI(ConvertFP8)
// eval_cpu ignores the mode and the direction.
NO_KERNEL_MULTI(Quantize)
NO_KERNEL_MULTI(CustomKernel)

DECOMPOSE(RMSNorm)
DECOMPOSE(LayerNorm)
DECOMPOSE(RoPE)
DECOMPOSE(CrossEntropy)
NO_KERNEL_MULTI(RMSNormVJP)
NO_KERNEL_MULTI(LayerNormVJP)
NO_KERNEL_MULTI(CrossEntropyVJP)

NO_KERNEL_MULTI(ScaledDotProductAttention)
NO_KERNEL_MULTI(ScaledDotProductAttentionVJP)
NO_KERNEL_MULTI(GatedDeltaUpdateVJP)

WEAK bool ScaledDotProductAttention::use_fallback(
    const array& q,
    const array& k,
    const array& v,
    bool has_mask,
    bool has_arr_mask,
    bool do_causal,
    bool has_sinks,
    bool is_training,
    bool output_logsumexp,
    bool force_fused,
    Stream s) {
  if (force_fused) {
    throw std::invalid_argument(
        "[scaled_dot_product_attention] force_fused=True, but the Vulkan "
        "backend has no fused kernel for these inputs.");
  }
  if (s.device == Device::gpu) {
    vulkan::count_decomposition("ScaledDotProductAttention");
  }
  return true;
}

// Asked for every attention, trained or not: nothing to count here.
WEAK bool ScaledDotProductAttentionVJP::use_fallback(const array&, Stream) {
  return true;
}

WEAK bool ScaledDotProductAttention::supports_bool_mask() {
  return true;
}

// Counted for the shapes that Metal has a kernel for.
WEAK bool GatedDeltaUpdateVJP::use_fallback(
    const int Hk,
    const int Dk,
    const int Hv,
    const int Dv,
    Stream s) {
  bool heads = Hk == 16 ? (Hv == 16 || Hv == 32 || Hv == 48 || Hv == 64)
                        : (Hk == Hv && (Hk == 24 || Hk == 32));
  if (s.device == Device::gpu && Dk == 128 && Dv == 128 && heads) {
    vulkan::count_decomposition("GatedDeltaUpdate");
  }
  return true;
}

} // namespace fast

// Helpers that MLX's shared GPU code calls; the encoder's own files define
// them.
WEAK void
copy_gpu(const array& src, array& out, CopyType ctype, const Stream& s) {
  throw std::runtime_error("[vulkan] copy_gpu is not built in.");
}

WEAK void copy_gpu_inplace(
    const array& in,
    array& out,
    const Shape& data_shape,
    const Strides& i_strides,
    const Strides& o_strides,
    int64_t i_offset,
    int64_t o_offset,
    CopyType ctype,
    const Stream& s,
    std::optional<array> dynamic_i_offset,
    std::optional<array> dynamic_o_offset) {
  throw std::runtime_error("[vulkan] copy_gpu_inplace is not built in.");
}

WEAK void fill_gpu(const array& val, array& out, const Stream& s) {
  throw std::runtime_error("[vulkan] fill_gpu is not built in.");
}

WEAK void reshape_gpu(const array& in, array& out, Stream s) {
  throw std::runtime_error("[vulkan] reshape_gpu is not built in.");
}

WEAK void concatenate_gpu(
    const std::vector<array>& inputs,
    array& out,
    int axis,
    const Stream& s) {
  throw std::runtime_error("[vulkan] concatenate_gpu is not built in.");
}

WEAK array compute_dynamic_offset(
    const array& indices,
    const Strides& strides,
    const std::vector<int>& axes,
    const Stream& s) {
  throw std::runtime_error("[vulkan] compute_dynamic_offset is not built in.");
}

WEAK void scan_gpu_inplace(
    const array& in,
    array& out,
    Scan::ReduceType reduce_type,
    int axis,
    bool reverse,
    bool inclusive,
    const Stream& s) {
  throw std::runtime_error("[vulkan] scan_gpu_inplace is not built in.");
}

} // namespace mlx::core
