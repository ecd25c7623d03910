// Collective communication on GPU streams, between ranks of one host
// (ranks/exchange.h).
#include "mlx/distributed/primitives.h"

#include <memory>
#include <stdexcept>

#include "backend/host_ranks.h"
#include "mlx/backend/gpu/copy.h"
#include "ops/layout.h"
#include "ops/reduce/plan.h"
#include "ranks/exchange.h"

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

// Closes the batch first if a thread waits for it: other ranks may need that
// thread's next action.
StreamEncoder& encoder_for_rendezvous(Stream stream) {
  auto& enc = encoder(stream);
  enc.raw().close_if_awaited();
  return enc;
}

// If `encode` throws, the group fails: `encode` took numbers of rendezvous for
// which other ranks would wait forever.
template <typename F>
void encode_rendezvous(StreamEncoder& enc, HostRanks& ranks, F&& encode) {
  try {
    encode();
  } catch (const std::exception& e) {
    enc.raw().forget_hold();
    ranks.group()->fail(e.what());
    throw;
  }
}

uint64_t address_of(const array& a) {
  return buffer_of(a)->address();
}

// The contiguous range of `a` that a step's piece occupies, so that no piece
// waits for another; all of `a` if there is none.
Operand part_of(const array& a, const Exchange& e, const ExchangeArgs& args) {
  if (e.kind == Collective::Gather || e.kind == Collective::Scatter) {
    return a;
  }
  int64_t size = e.itemsize;
  int64_t first = args.first * size;
  return {a, first, first + args.items * size};
}

// The range that a step writes in the shared memory. Slots of other ranks are
// written only by their devices.
Operand written_by(const ExchangeStep& step, HostRanks& ranks) {
  auto& region = ranks.region();
  auto& group = *ranks.group();
  auto begin = static_cast<int64_t>(step.args.slot);
  auto size = static_cast<int64_t>(group.sizes().slot);
  switch (step.rendezvous.act) {
    case Act::Give:
      return {region, begin, begin + size};
    case Act::Take: // the word that names a late rank
      return {region, 0, static_cast<int64_t>(HostGroup::slots())};
    default: // all, so that all earlier exchanges precede it
      return {region, 0, static_cast<int64_t>(group.channel(0, 0, 0))};
  }
}

void encode(
    StreamEncoder& enc,
    HostRanks& ranks,
    const Exchange& e,
    ExchangeStep& step,
    const array& x,
    array& y) {
  auto& args = step.args;
  auto act = step.rendezvous.act;
  if (act == Act::Meet) {
    auto* carrier = ranks.carrier();
    carrier->add(step.job);
    args.from = carrier->address(step.job.number);
    args.from_stride = Carrier::stride();
    args.end = carrier->end();
  } else {
    args.from += address_of(ranks.region());
  }
  enc.raw().hold(ranks.group(), std::make_shared<Rendezvous>(step.rendezvous));
  enc.dispatch(
      e.variant,
      {part_of(x, e, args)},
      {written_by(step, ranks),
       act == Act::Give ? Operand(y, 0, 0) : part_of(y, e, args)},
      args,
      step.grid,
      Work{.bytes = 1});
}

// `name`: the primitive's.
void exchange(
    const Group& group,
    const char* name,
    Stream stream,
    Exchange e,
    const array& in,
    array& y) {
  auto& ranks = ranks_of(group, name);
  auto& enc = encoder_for_rendezvous(stream);
  array x = row_contiguous(in, enc);
  encode_rendezvous(enc, ranks, [&] {
    bool meets = ranks.carrier() && fits_carrier(e);
    for (auto& step :
         steps_of(e, *ranks.group(), meets, enc.target().cores())) {
      encode(enc, ranks, e, step, x, y);
    }
  });
}

// A view of `size` bytes of `a` from `begin` on.
array bytes_of(const array& a, uint64_t begin, uint64_t size) {
  array view({static_cast<int>(size)}, uint8, nullptr, {});
  view.copy_shared_buffer(a, {1}, {true, true, true}, size, begin);
  return view;
}

// Sends or receives `all` through the channel of this rank and another.
void transfer(
    const Group& among,
    const char* name,
    Stream stream,
    Act act,
    uint32_t peer,
    const array& all) {
  auto& ranks = ranks_of(among, name);
  auto& enc = encoder_for_rendezvous(stream);
  array a = row_contiguous(all, enc);
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
      array from = bytes_of(a, at, size);
      array to = bytes_of(ranks.region(), place, size);
      TransferPlan plan{
          "a message", kind_of(Collective::Send, type_of(a)), a.nbytes(), at};
      enc.raw().hold(
          ranks.group(), std::make_shared<Rendezvous>(act, peer, number, plan));
      if (!sends) {
        std::swap(from, to);
      }
      copy_gpu_inplace(from, to, CopyType::Vector, stream);
    }
  });
}

} // namespace

void AllReduce::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& in = inputs[0];
  auto& out = outputs[0];
  Type type = type_of(in);
  donate_or_alloc(in, out);
  bool sum = reduce_type_ == Sum, min = reduce_type_ == Min;
  if (!sum && !min && reduce_type_ != Max) {
    throw std::runtime_error(
        "[AllReduce] Only sum, min and max are supported.");
  }
  const char* op = sum ? "Sum" : min ? "Min" : "Max";
  Exchange e{
      .kind = sum ? Collective::Sum
          : min   ? Collective::Min
                  : Collective::Max,
      .name = sum ? "all_sum"
          : min   ? "all_min"
                  : "all_max",
      .variant = {type, accumulator(type), op, false, 1},
      .items = in.size(),
      .itemsize = int(in.itemsize())};
  exchange(group(), "AllReduce", stream(), e, in, out);
}

void AllGather::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& in = inputs[0];
  outputs[0].set_data(allocator::malloc(outputs[0].nbytes()));
  type_of(in); // throws for float64
  Type bits = bits_of(in.itemsize());
  Exchange e{
      .kind = Collective::Gather,
      .name = "all_gather",
      .variant = {bits, accumulator(bits), "Sum", true, 1},
      .items = in.size(),
      .itemsize = int(in.itemsize())};
  exchange(group(), "AllGather", stream(), e, in, outputs[0]);
}

void ReduceScatter::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  if (reduce_type_ != Sum) {
    throw std::runtime_error("[ReduceScatter] Only sum is supported.");
  }
  auto& in = inputs[0];
  outputs[0].set_data(allocator::malloc(outputs[0].nbytes()));
  Type type = type_of(in);
  Exchange e{
      .kind = Collective::Scatter,
      .name = "sum_scatter",
      .variant = {type, accumulator(type), "Sum", false, 1},
      .items = outputs[0].size(),
      .parts = uint32_t(group().size()),
      .itemsize = int(in.itemsize())};
  exchange(group(), "ReduceScatter", stream(), e, in, outputs[0]);
}

void Send::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  transfer(group(), "Send", stream(), Act::Send, dst_, inputs[0]);
  outputs[0].copy_shared_buffer(inputs[0]);
}

void Recv::eval_gpu(const std::vector<array>&, std::vector<array>& outputs) {
  outputs[0].set_data(allocator::malloc(outputs[0].nbytes()));
  transfer(group(), "Recv", stream(), Act::Receive, src_, outputs[0]);
}

} // namespace mlx::core::distributed
