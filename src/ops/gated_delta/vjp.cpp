#include <algorithm>
#include <bit>
#include <cmath>

#include "mlx/backend/gpu/copy.h"
#include "mlx/fast_primitives.h"
#include "mlx/utils.h"

#include "backend/fallback.h"
#include "kernels/gated_delta_vjp.h"
#include "ops/attention/operands.h"
#include "ops/gated_delta/gated_delta.h"
#include "ops/layout.h"

namespace mlx::core {
namespace vulkan {

namespace {

// Limit of a chunk's states and their gradients, of which two are kept.
constexpr uint64_t most_chunk_bytes = 256 << 20;

// Steps whose states are in memory at once: about the square root of all, so
// that the states between chunks, which are kept too, take as much.
int chunk_steps(int steps, uint64_t state_bytes) {
  auto root = std::bit_ceil(static_cast<uint64_t>(std::sqrt(double(steps))));
  uint64_t most = most_chunk_bytes / (2 * std::max<uint64_t>(state_bytes, 1));
  return static_cast<int>(std::clamp<uint64_t>(std::min(root, most), 1, steps));
}

// `count` steps, from `first` on, of a contiguous array with steps as axis 1.
array steps_of(const array& a, int first, int count) {
  Shape shape = a.shape();
  shape[1] = count;
  return view(a, std::move(shape), a.strides(), first * a.strides(1));
}

// Item `index` of the first axis of a contiguous array, as an array.
array item_of(const array& a, int index) {
  return view(
      a,
      Shape(a.shape().begin() + 1, a.shape().end()),
      Strides(a.strides().begin() + 1, a.strides().end()),
      index * a.strides(0));
}

// Results of a chunk for the sums over rows.
struct Kept {
  array states, grads, errors;
};

// Operands, all contiguous, and gradients, which have memory.
struct Rule {
  StreamEncoder& enc;
  array q, k, v, g, beta, h, cotan;
  array &dq, &dk, &dv, &dg, &dbeta, &ds;

  uint64_t rows() const {
    return h.size() / h.shape(3);
  }
  uint32_t gates() const {
    return g.ndim() == 4 ? h.shape(3) : 1;
  }
  uint32_t heads() const {
    return v.shape(2);
  }
  uint32_t repeat() const {
    return v.shape(2) / q.shape(2);
  }
};

// Computes the state before each chunk.
array chunk_states(const Rule& r, int chunk) {
  int steps = r.q.shape(1), chunks = ceil_div(steps, chunk);
  Shape shape = r.h.shape();
  shape.insert(shape.begin(), chunks);
  array all = r.enc.temporary(shape, float32);
  array first = item_of(all, 0);
  copy_gpu_inplace(r.h, first, CopyType::Vector, r.enc.stream());
  array y = r.enc.temporary(
      {r.v.shape(0), chunk, r.v.shape(2), r.v.shape(3)}, r.v.dtype());
  for (int c = 0; c + 1 < chunks; ++c) {
    auto of = [&](const array& a) { return steps_of(a, c * chunk, chunk); };
    array next = item_of(all, c + 1);
    gated_delta(
        r.enc,
        {of(r.q),
         of(r.k),
         of(r.v),
         of(r.g),
         of(r.beta),
         item_of(all, c),
         std::nullopt},
        y,
        next);
  }
  return all;
}

void rows_backward(
    const Rule& r,
    const array& s,
    int first,
    int count,
    const Kept& kept) {
  uint32_t dk = r.h.shape(3);
  uint32_t lanes = std::clamp(r.enc.caps().min_subgroup_size, 4u, 8u);
  bool vec = in_fours(r.q) && in_fours(r.k) && in_fours(s) && in_fours(r.ds) &&
      (r.gates() == 1 || in_fours(r.g));
  GatedDeltaVjpArgs args{
      .rows = r.rows(),
      .first = static_cast<uint32_t>(first),
      .count = static_cast<uint32_t>(count),
      .steps = static_cast<uint32_t>(r.q.shape(1)),
      .heads = r.heads(),
      .repeat = r.repeat(),
      .dv_items = static_cast<uint32_t>(r.h.shape(2))};
  GatedDeltaVjpVariant variant{type_of(r.q), dk, lanes, r.gates(), vec};
  r.enc.dispatch(
      variant,
      {r.q, r.k, r.v, r.g, r.beta, r.cotan, s},
      {kept.states, kept.grads, kept.errors, r.dv, r.ds},
      args,
      linear(args.rows * lanes, 128),
      {.flops = 16.0 * r.h.size() * count});
}

void sums_over_rows(const Rule& r, int first, int count, const Kept& kept) {
  uint32_t dk = r.h.shape(3);
  uint32_t batches = r.h.shape(0);
  GatedDeltaSumsArgs args{
      .rows = r.rows(),
      .first = static_cast<uint32_t>(first),
      .count = static_cast<uint32_t>(count),
      .steps = static_cast<uint32_t>(r.q.shape(1)),
      .batches = batches,
      .heads = r.heads(),
      .repeat = r.repeat(),
      .dv_items = static_cast<uint32_t>(r.h.shape(2))};
  GatedDeltaSumsVariant variant{type_of(r.q), dk, r.gates()};
  r.enc.dispatch(
      variant,
      {r.k, r.g, r.beta, r.cotan, kept.states, kept.grads, kept.errors},
      {r.dq, r.dk, r.dg, r.dbeta},
      args,
      linear(uint64_t(count) * batches * r.q.shape(2)),
      {.flops = 12.0 * r.h.size() * count});
}

// Runs chunks from last to first; sums overlap with the next chunk's rows.
void differentiate(const Rule& r) {
  int steps = r.q.shape(1);
  int chunk = chunk_steps(steps, r.h.nbytes());
  int chunks = ceil_div(steps, chunk);
  array states = chunk_states(r, chunk);
  Shape shape = r.h.shape();
  shape.insert(shape.begin(), chunk);
  int rows = static_cast<int>(r.rows());
  auto room = [&] {
    return Kept{
        r.enc.temporary(shape, float32),
        r.enc.temporary(shape, float32),
        r.enc.temporary({chunk, rows, 2}, float32)};
  };
  Kept kept[] = {room(), room()};
  for (int c = chunks; c-- > 0;) {
    int first = c * chunk;
    int count = std::min(chunk, steps - first);
    rows_backward(r, item_of(states, c), first, count, kept[c % 2]);
    sums_over_rows(r, first, count, kept[c % 2]);
  }
}

} // namespace
} // namespace vulkan

namespace fast {

using namespace vulkan;

// MLX's variable GATED_DELTA_VJP_FALLBACK requests the decomposition.
bool GatedDeltaUpdateVJP::use_fallback(
    const int Hk,
    const int Dk,
    const int Hv,
    const int Dv,
    Stream s) {
  if (GatedDeltaUpdate::use_fallback(Hk, Dk, Hv, Dv, false, s)) {
    return true;
  }
  if (env::get_var("GATED_DELTA_VJP_FALLBACK", 0) != 0) {
    count_decomposition("GatedDeltaUpdate");
    return true;
  }
  return false;
}

// Gradients of q, k, v, g, beta and the first state. The inputs are these and
// the cotangents of the output and the last state.
void GatedDeltaUpdateVJP::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& enc = encoder(stream());
  array& ds = outputs[5];
  bool none = inputs[0].size() == 0 || ds.size() == 0;
  for (int i = 0; i < 5; ++i) {
    if (none) {
      fill_with_zeros(outputs[i], enc);
    } else {
      outputs[i].set_data(allocator::malloc(outputs[i].nbytes()));
    }
  }
  array last = row_contiguous(inputs[7], enc);
  ds.set_data(allocator::malloc(ds.nbytes()));
  if (ds.size() == 0) {
    return;
  }
  copy_gpu_inplace(last, ds, CopyType::Vector, stream());
  if (none) {
    return;
  }
  auto whole = [&](int i) { return row_contiguous(inputs[i], enc); };
  differentiate(
      {enc,
       whole(0),
       whole(1),
       whole(2),
       whole(3),
       whole(4),
       whole(5),
       whole(6),
       outputs[0],
       outputs[1],
       outputs[2],
       outputs[3],
       outputs[4],
       ds});
}

} // namespace fast
} // namespace mlx::core
