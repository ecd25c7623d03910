// Tests, when a group is made, whether a running kernel sees in time what
// another device writes: no property of a device tells.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "backend/host_ranks.h"
#include "backend/stream_encoder.h"
#include "kernels/exchange.h"
#include "mlx/backend/gpu/eval.h"
#include "pipeline/pipeline.h"
#include "runtime/device.h"

namespace mlx::core::vulkan {

namespace {

constexpr uint32_t items = 3000;
constexpr ExchangeVariant variant{Type::u32, Type::u32, "Sum", false, 1};
constexpr uint64_t first_number =
    ~0ull - most_host_ranks; // no rendezvous has it

uint32_t value(uint32_t rank, uint32_t i) {
  return (rank + 1) * 0x10001u + i * 977u;
}

// One exchange, not held by the host.
bool exchange_once(HostRanks& ranks, uint64_t number, Stream stream) {
  auto& sizes = ranks.group()->sizes();
  auto& enc = encoder(stream);
  std::vector<uint32_t> mine(items);
  for (uint32_t i = 0; i < items; ++i) {
    mine[i] = value(sizes.rank, i);
  }
  array x(mine.begin(), {int(items)}, uint32);
  array y = enc.temporary({int(items)}, uint32);
  auto& group = *ranks.group();
  auto& region = ranks.region();
  auto* buffer = buffer_of(region);
  ExchangeArgs args{
      .slot = group.slot(sizes.rank, number),
      .from = ranks.carrier()->address(number),
      .from_stride = Carrier::stride(),
      .part_stride = items,
      .gather_stride = items,
      .first = 0,
      .items = items,
      .packs = ceil_div(items, 3),
      .parts = 1,
      .part = 0,
      .rank = sizes.rank,
      .ranks = sizes.ranks,
      .stamp = exchange_stamp(number),
      .steps = EXCHANGE_GIVE | EXCHANGE_TAKE,
      .threads = 4 * 256,
      .turns = 1 << 17}; // a tenth of a second
  ranks.carrier()->add(
      {number,
       group.slot(0, number),
       group.slot_stride(),
       args.stamp,
       args.packs});
  Operand written(region, 0, group.channel(0, 0, 0));
  enc.dispatch(variant, {x}, {written, y}, args, {4, 1, 1}, Work{.bytes = 1});
  enc.add_temporary(x);
  gpu::synchronize(stream);
  auto* words = static_cast<uint32_t*>(buffer->mapped());
  std::atomic_ref(words[EXCHANGE_LATE(sizes.rank)]).store(0);
  auto* got = y.data<uint32_t>();
  for (uint32_t i = 0; i < items; ++i) {
    uint32_t want = 0;
    for (uint32_t r = 0; r < sizes.ranks; ++r) {
      want += value(r, i);
    }
    if (got[i] != want) {
      return false;
    }
  }
  return true;
}

} // namespace

bool sees_in_time(HostRanks& ranks, const std::function<void()>& together) {
  auto stream = default_stream(mlx::core::Device::gpu);
  auto& sizes = ranks.group()->sizes();
  bool all = true;
  auto& pipelines = device().pipelines();
  pipelines.finish(pipelines.get(variant));
  // A late pack is a result of this test, not an error.
  ranks.group()->set_late_fails(false);
  // The first exchange only touches the memory. Then each rank is late in turn.
  for (uint32_t late = 0; late <= sizes.ranks; ++late) {
    together();
    if (late == sizes.rank + 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    bool good = exchange_once(ranks, first_number + late, stream);
    all = all && (good || late == 0);
  }
  ranks.group()->set_late_fails(true);
  return all;
}

} // namespace mlx::core::vulkan
