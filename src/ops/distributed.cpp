// Collective communication on GPU streams, between ranks of one host. Arrays
// larger than a slot of the shared memory go in several exchanges.
#include "mlx/distributed/primitives.h"

#include <stdexcept>

#include "backend/host_ranks.h"
#include "kernels/exchange.h"
#include "mlx/backend/gpu/copy.h"
#include "ops/layout.h"
#include "ops/reduce/plan.h"

namespace mlx::core::distributed {

namespace {

using namespace vulkan;

HostRanks& ranks_of(const Group& group, const char* name) {
  auto* ranks = dynamic_cast<HostRanks*>(group.raw_group().get());
  if (!ranks) {
    throw std::runtime_error(
        std::string("[") + name +
        "] needs ranks of one host on a GPU stream; this group has others. "
        "Pass stream=mx.cpu.");
  }
  return *ranks;
}

// Kinds of deals; the type is added.
enum class Kind : uint32_t { Sum, Min, Max, Gather, Scatter, Send };

uint32_t kind_of(Kind kind, Type type) {
  return uint32_t(kind) << 8 | uint32_t(type);
}

// Moves bits: the unsigned type of items of this size.
Type bits_of(Dtype dtype) {
  switch (dtype.size()) {
    case 1:
      return Type::u8;
    case 2:
      return Type::u16;
    case 4:
      return Type::u32;
  }
  return Type::u64;
}

struct Exchange {
  Kind kind;
  const char* name; // for messages
  ExchangeVariant variant;
  uint64_t items; // of a part
  uint32_t parts = 1;
  int itemsize;
};

constexpr uint32_t group_size = 256;
// Looks of an invocation at a pack: a second or so.
constexpr uint32_t most_turns = 1 << 21;

uint64_t address_of(const array& a) {
  return static_cast<Buffer*>(a.data_shared_ptr()->buffer().ptr())->address();
}

Grid grid_of(const ExchangeArgs& args, const Caps& caps, bool meets) {
  uint64_t groups = (uint64_t(args.packs) + group_size - 1) / group_size;
  // All at once on the device, so that none waits for packs of one that waits
  // for its turn. Others need the same number of them, or fewer.
  uint64_t most = meets ? 4 * caps.cores() : 1024;
  return {static_cast<uint32_t>(std::min(groups, most)), 1, 1};
}

void exchange(
    StreamEncoder& enc,
    HostRanks& ranks,
    const Exchange& e,
    const array& x,
    array& y) {
  auto& group = *ranks.group();
  auto& sizes = group.sizes();
  auto& kernel = enc.kernel(e.variant);
  constexpr uint64_t pack = 16;
  uint64_t per_pack = e.itemsize == 8 ? 1 : 12 / e.itemsize;
  uint64_t most = sizes.slot / pack / e.parts * per_pack;
  Operand region(ranks.region(), 0, group.channel(0, 0, 0));
  bool meets = ranks.meets(e.items / per_pack * pack);
  uint64_t stride = HostGroup::generations * sizes.slot;
  for (uint64_t first = 0; first < e.items; first += most) {
    uint64_t items = std::min(most, e.items - first);
    uint64_t number = group.next_collective();
    uint64_t slots =
        HostGroup::slots() + number % HostGroup::generations * sizes.slot;
    ExchangeArgs args{
        .slot = slots + sizes.rank * stride,
        .from_stride = stride,
        .part_stride = e.items,
        .gather_stride = e.items,
        .first = first,
        .items = uint32_t(items),
        .packs = uint32_t((items + per_pack - 1) / per_pack),
        .parts = e.parts,
        .part = e.parts > 1 ? sizes.rank : 0,
        .rank = sizes.rank,
        .ranks = sizes.ranks,
        .stamp = uint32_t(number) * 0x9e3779b9u,
        .turns = meets ? most_turns : 1};
    uint64_t taken = slots + pack * args.part * args.packs;
    args.from = address_of(ranks.region()) + taken;
    if (meets) {
      ranks.carrier()->add({number, taken, stride, args.stamp, args.packs});
      args.from = ranks.carrier()->address(number);
      args.from_stride = Carrier::stride();
    }
    Grid grid = grid_of(args, enc.caps(), meets);
    args.threads = grid.x * group_size;
    Deal deal{e.name, kind_of(e.kind, e.variant.T), items * e.itemsize};
    auto dispatch = [&](Act act, uint32_t steps) {
      args.steps = steps;
      enc.raw().meet(ranks.group(), {act, 0, number, deal});
      enc.dispatch(kernel, {x}, {region, y}, args, grid, Work{.bytes = 1});
    };
    if (meets) {
      dispatch(Act::Meet, EXCHANGE_GIVE | EXCHANGE_TAKE);
    } else {
      dispatch(Act::Give, EXCHANGE_GIVE);
      dispatch(Act::Take, EXCHANGE_TAKE);
    }
  }
}

// `size` bytes of `a` from `begin` on.
array bytes_of(const array& a, uint64_t begin, uint64_t size) {
  array view({static_cast<int>(size)}, uint8, nullptr, {});
  view.copy_shared_buffer(a, {1}, {true, true, true}, size, begin);
  return view;
}

// Between this rank and another, through their channel.
template <typename F>
void transfer(
    StreamEncoder& enc,
    HostRanks& ranks,
    Act act,
    uint32_t peer,
    const array& a,
    F&& copy) {
  auto& group = *ranks.group();
  auto& sizes = group.sizes();
  bool sends = act == Act::Send;
  for (uint64_t at = 0; at < a.nbytes(); at += sizes.channel) {
    uint64_t size = std::min<uint64_t>(sizes.channel, a.nbytes() - at);
    uint64_t number = sends ? group.next_sent(peer) : group.next_received(peer);
    uint64_t place = sends ? group.channel(sizes.rank, peer, number)
                           : group.channel(peer, sizes.rank, number);
    array items = bytes_of(a, at, size);
    array slot = bytes_of(ranks.region(), place, size);
    Deal deal{"a message", kind_of(Kind::Send, type_of(a)), size};
    enc.raw().meet(ranks.group(), {act, peer, number, deal});
    copy(items, slot);
  }
}

} // namespace

void AllReduce::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& ranks = ranks_of(group(), "AllReduce");
  auto& enc = encoder(stream());
  auto& in = inputs[0];
  auto& out = outputs[0];
  Type type = type_of(in);
  if (in.flags().row_contiguous) {
    donate_or_alloc(in, out);
  } else {
    out.set_data(allocator::malloc(out.nbytes()));
  }
  Exchange e{
      .kind = Kind::Sum,
      .name = "all_sum",
      .variant = {type, accumulator(type), "Sum", false},
      .items = in.size(),
      .itemsize = int(in.itemsize())};
  switch (reduce_type_) {
    case Sum:
      break;
    case Min:
      e.kind = Kind::Min;
      e.name = "all_min";
      e.variant.OP = "Min";
      break;
    case Max:
      e.kind = Kind::Max;
      e.name = "all_max";
      e.variant.OP = "Max";
      break;
    default:
      throw std::runtime_error(
          "[AllReduce] Only sum, min and max are supported.");
  }
  exchange(enc, ranks, e, row_contiguous(in, enc), out);
}

void AllGather::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& ranks = ranks_of(group(), "AllGather");
  auto& enc = encoder(stream());
  auto& in = inputs[0];
  outputs[0].set_data(allocator::malloc(outputs[0].nbytes()));
  type_of(in); // throws for float64
  Type bits = bits_of(in.dtype());
  Exchange e{
      .kind = Kind::Gather,
      .name = "all_gather",
      .variant = {bits, accumulator(bits), "Sum", true},
      .items = in.size(),
      .itemsize = int(in.itemsize())};
  exchange(enc, ranks, e, row_contiguous(in, enc), outputs[0]);
}

void ReduceScatter::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  if (reduce_type_ != Sum) {
    throw std::runtime_error("[ReduceScatter] Only sum is supported.");
  }
  auto& ranks = ranks_of(group(), "ReduceScatter");
  auto& enc = encoder(stream());
  auto& in = inputs[0];
  outputs[0].set_data(allocator::malloc(outputs[0].nbytes()));
  Type type = type_of(in);
  Exchange e{
      .kind = Kind::Scatter,
      .name = "sum_scatter",
      .variant = {type, accumulator(type), "Sum", false},
      .items = outputs[0].size(),
      .parts = uint32_t(ranks.size()),
      .itemsize = int(in.itemsize())};
  exchange(enc, ranks, e, row_contiguous(in, enc), outputs[0]);
}

void Send::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& ranks = ranks_of(group(), "Send");
  auto& enc = encoder(stream());
  array x = row_contiguous(inputs[0], enc);
  outputs[0].copy_shared_buffer(inputs[0]);
  transfer(enc, ranks, Act::Send, dst_, x, [&](array& items, array& slot) {
    copy_gpu_inplace(items, slot, CopyType::Vector, stream());
  });
}

void Recv::eval_gpu(const std::vector<array>&, std::vector<array>& outputs) {
  auto& ranks = ranks_of(group(), "Recv");
  auto& enc = encoder(stream());
  outputs[0].set_data(allocator::malloc(outputs[0].nbytes()));
  transfer(
      enc,
      ranks,
      Act::Receive,
      src_,
      outputs[0],
      [&](array& items, array& slot) {
        copy_gpu_inplace(slot, items, CopyType::Vector, stream());
      });
}

} // namespace mlx::core::distributed
