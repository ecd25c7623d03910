// Collective communication on GPU streams, between ranks of one host. Arrays
// larger than a slot of the shared memory go in several exchanges.
#include "mlx/distributed/primitives.h"

#include <deque>
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

// Of a rank's stream. Others may wait for what it has encoded, and the other
// ranks need what those do.
StreamEncoder& encoder_for_rendezvous(Stream stream) {
  auto& enc = encoder(stream);
  enc.raw().close_if_awaited();
  return enc;
}

// Takes numbers of rendezvous: what fails then leaves the others waiting.
template <typename F>
void encode_rendezvous(StreamEncoder& enc, HostRanks& ranks, F&& encode) {
  try {
    encode();
  } catch (const std::exception& e) {
    enc.raw().forget_rendezvous();
    ranks.group()->fail(e.what());
    throw;
  }
}

// Kinds of plans; the type is added.
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
  return buffer_of(a)->address();
}

Grid grid_of(const ExchangeArgs& args, const Caps& caps, bool meets) {
  uint64_t groups = (uint64_t(args.packs) + group_size - 1) / group_size;
  // All at once on the device: none waits for packs of one that waits for its
  // turn, and what is given leaves room for what is taken meanwhile.
  uint64_t most = (meets ? 4 : 1) * caps.cores();
  return {static_cast<uint32_t>(std::min(groups, most)), 1, 1};
}

// The exchange of an array in pieces that fit a slot, a rendezvous each.
class Pieces {
 public:
  Pieces(
      StreamEncoder& enc,
      HostRanks& ranks,
      const Exchange& e,
      const array& x,
      array& y)
      : enc_(enc),
        ranks_(ranks),
        sizes_(ranks.group()->sizes()),
        e_(e),
        x_(x),
        y_(y),
        meets_(ranks.meets(e.items / EXCHANGE_ITEMS(1, e.itemsize) * 16)) {
    e_.variant.QUADS = meets_ ? 1 : 4;
  }

  void exchange() {
    if (e_.items != 0) {
      encode_rendezvous(enc_, ranks_, [this] { encode(); });
    }
  }

 private:
  struct Piece {
    uint64_t number;
    ExchangeArgs args;
  };

  void encode() {
    uint64_t items = items_of_piece();
    std::deque<Piece> given;
    for (uint64_t first = 0; first < e_.items; first += items) {
      Piece piece = make(first, std::min(items, e_.items - first));
      if (meets_) {
        meet(piece);
        continue;
      }
      step(piece, Act::Give);
      given.push_back(piece);
      if (given.size() == HostGroup::lead) {
        step(given.front(), Act::Take);
        given.pop_front();
      }
    }
    for (auto& piece : given) {
      step(piece, Act::Take);
    }
  }

  uint64_t bytes_of_pack() const {
    return 16 * e_.variant.QUADS;
  }
  uint64_t packs_of_tile() const {
    return EXCHANGE_TILE(e_.variant.QUADS);
  }
  uint64_t items_of_tile() const {
    return packs_of_tile() * EXCHANGE_ITEMS(e_.variant.QUADS, e_.itemsize);
  }
  // Whole tiles, and about as many in each piece.
  uint64_t items_of_piece() const {
    uint64_t tile = packs_of_tile() * bytes_of_pack();
    uint64_t most = sizes_.slot / tile / e_.parts * items_of_tile();
    uint64_t pieces = (e_.items + most - 1) / most;
    uint64_t tiles_of_all = (e_.items + items_of_tile() - 1) / items_of_tile();
    return (tiles_of_all + pieces - 1) / pieces * items_of_tile();
  }

  // Where rank 0's slot of a rendezvous begins, and how far it is to the
  // next's.
  uint64_t slots(uint64_t number) const {
    return HostGroup::slots() + number % HostGroup::generations * sizes_.slot;
  }
  uint64_t stride() const {
    return HostGroup::generations * sizes_.slot;
  }

  Piece make(uint64_t first, uint64_t items) {
    uint64_t number = ranks_.group()->next_collective();
    uint64_t tiles = (items + items_of_tile() - 1) / items_of_tile();
    ExchangeArgs args{
        .slot = slots(number) + sizes_.rank * stride(),
        .from_stride = stride(),
        .part_stride = e_.items,
        .gather_stride = e_.items,
        .first = first,
        .items = uint32_t(items),
        .packs = uint32_t(tiles * packs_of_tile()),
        .parts = e_.parts,
        .part = e_.parts > 1 ? sizes_.rank : 0,
        .rank = sizes_.rank,
        .ranks = sizes_.ranks,
        .stamp = uint32_t(number) * 0x9e3779b9u,
        .turns = meets_ ? most_turns : 1};
    args.from = address_of(ranks_.region()) + taken(number, args);
    args.threads = grid_of(args, enc_.caps(), meets_).x * group_size;
    return {number, args};
  }
  // Rank 0's packs that this rank takes.
  uint64_t taken(uint64_t number, const ExchangeArgs& args) const {
    return slots(number) + bytes_of_pack() * args.part * args.packs;
  }

  void meet(Piece& piece) {
    auto& [number, args] = piece;
    auto* carrier = ranks_.carrier();
    carrier->add(
        {number, taken(number, args), stride(), args.stamp, args.packs});
    args.from = carrier->address(number);
    args.from_stride = Carrier::stride();
    args.end = carrier->end();
    step(piece, Act::Meet);
  }

  void step(const Piece& piece, Act act) {
    ExchangeArgs args = piece.args;
    args.steps = act == Act::Give ? EXCHANGE_GIVE
        : act == Act::Take        ? EXCHANGE_TAKE
                                  : EXCHANGE_GIVE | EXCHANGE_TAKE;
    TransferPlan plan{
        e_.name,
        kind_of(e_.kind, e_.variant.T),
        e_.items * e_.itemsize,
        args.first * e_.itemsize};
    enc_.raw().meet(ranks_.group(), {act, 0, piece.number, plan});
    Grid grid = grid_of(args, enc_.caps(), meets_);
    enc_.dispatch(
        enc_.kernel(e_.variant),
        {part_of(x_, args)},
        {region_of(args, act),
         act == Act::Give ? Operand(y_, 0, 0) : part_of(y_, args)},
        args,
        grid,
        Work{.bytes = 1});
  }

  // A range where a piece is one, so that no piece waits for another.
  Operand part_of(const array& a, const ExchangeArgs& args) const {
    if (e_.kind == Kind::Gather || e_.kind == Kind::Scatter) {
      return a;
    }
    int64_t size = e_.itemsize;
    int64_t first = args.first * size;
    return {a, first, first + args.items * size};
  }
  // What it writes there. Slots of other ranks are written by their devices
  // alone.
  Operand region_of(const ExchangeArgs& args, Act act) const {
    auto& region = ranks_.region();
    auto begin = static_cast<int64_t>(args.slot);
    switch (act) {
      case Act::Give:
        return {region, begin, begin + static_cast<int64_t>(sizes_.slot)};
      case Act::Take: // who is late
        return {region, 0, static_cast<int64_t>(HostGroup::slots())};
      default: // what comes before is done with
        return {
            region, 0, static_cast<int64_t>(ranks_.group()->channel(0, 0, 0))};
    }
  }

  StreamEncoder& enc_;
  HostRanks& ranks_;
  const HostGroupSizes& sizes_;
  Exchange e_;
  const array& x_;
  array& y_;
  const bool meets_;
};

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
  encode_rendezvous(enc, ranks, [&] {
    for (uint64_t at = 0; at < a.nbytes(); at += sizes.channel) {
      uint64_t size = std::min<uint64_t>(sizes.channel, a.nbytes() - at);
      uint64_t number =
          sends ? group.next_sent(peer) : group.next_received(peer);
      uint64_t place = sends ? group.channel(sizes.rank, peer, number)
                             : group.channel(peer, sizes.rank, number);
      array items = bytes_of(a, at, size);
      array slot = bytes_of(ranks.region(), place, size);
      TransferPlan plan{
          "a message", kind_of(Kind::Send, type_of(a)), a.nbytes(), at};
      enc.raw().meet(ranks.group(), {act, peer, number, plan});
      copy(items, slot);
    }
  });
}

} // namespace

void AllReduce::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& ranks = ranks_of(group(), "AllReduce");
  auto& enc = encoder_for_rendezvous(stream());
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
      .variant = {type, accumulator(type), "Sum", false, 1},
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
  array x = row_contiguous(in, enc);
  Pieces(enc, ranks, e, x, out).exchange();
}

void AllGather::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& ranks = ranks_of(group(), "AllGather");
  auto& enc = encoder_for_rendezvous(stream());
  auto& in = inputs[0];
  outputs[0].set_data(allocator::malloc(outputs[0].nbytes()));
  type_of(in); // throws for float64
  Type bits = bits_of(in.dtype());
  Exchange e{
      .kind = Kind::Gather,
      .name = "all_gather",
      .variant = {bits, accumulator(bits), "Sum", true, 1},
      .items = in.size(),
      .itemsize = int(in.itemsize())};
  array x = row_contiguous(in, enc);
  Pieces(enc, ranks, e, x, outputs[0]).exchange();
}

void ReduceScatter::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  if (reduce_type_ != Sum) {
    throw std::runtime_error("[ReduceScatter] Only sum is supported.");
  }
  auto& ranks = ranks_of(group(), "ReduceScatter");
  auto& enc = encoder_for_rendezvous(stream());
  auto& in = inputs[0];
  outputs[0].set_data(allocator::malloc(outputs[0].nbytes()));
  Type type = type_of(in);
  Exchange e{
      .kind = Kind::Scatter,
      .name = "sum_scatter",
      .variant = {type, accumulator(type), "Sum", false, 1},
      .items = outputs[0].size(),
      .parts = uint32_t(ranks.size()),
      .itemsize = int(in.itemsize())};
  array x = row_contiguous(in, enc);
  Pieces(enc, ranks, e, x, outputs[0]).exchange();
}

void Send::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& ranks = ranks_of(group(), "Send");
  auto& enc = encoder_for_rendezvous(stream());
  array x = row_contiguous(inputs[0], enc);
  outputs[0].copy_shared_buffer(inputs[0]);
  transfer(enc, ranks, Act::Send, dst_, x, [&](array& items, array& slot) {
    copy_gpu_inplace(items, slot, CopyType::Vector, stream());
  });
}

void Recv::eval_gpu(const std::vector<array>&, std::vector<array>& outputs) {
  auto& ranks = ranks_of(group(), "Recv");
  auto& enc = encoder_for_rendezvous(stream());
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
