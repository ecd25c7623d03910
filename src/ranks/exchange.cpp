#include "ranks/exchange.h"

#include <algorithm>
#include <deque>

namespace mlx::core::vulkan {

namespace {

constexpr uint32_t group_size = 256;
// Polls of an invocation for a pack: a second or so.
constexpr uint32_t most_turns = 1 << 21;

Grid grid_of(const ExchangeArgs& args, uint32_t cores, bool meets) {
  uint64_t groups = ceil_div(uint64_t(args.packs), group_size);
  // All workgroups run at once, so that none waits for packs of one that has
  // not started; a Give leaves room for a Take beside it.
  uint64_t most = (meets ? 4 : 1) * cores;
  return {static_cast<uint32_t>(std::min(groups, most)), 1, 1};
}

class Pieces {
 public:
  Pieces(const Exchange& e, HostGroup& group, bool meets, uint32_t cores)
      : e_(e), group_(group), meets_(meets), cores_(cores) {}

  std::vector<ExchangeStep> steps() {
    uint64_t items = items_of_piece();
    std::deque<Piece> given;
    for (uint64_t first = 0; first < e_.items; first += items) {
      Piece piece = make(first, std::min(items, e_.items - first));
      if (meets_) {
        add(piece, Act::Meet, EXCHANGE_GIVE | EXCHANGE_TAKE);
        continue;
      }
      add(piece, Act::Give, EXCHANGE_GIVE);
      given.push_back(piece);
      if (given.size() == HostGroup::lead) {
        add(given.front(), Act::Take, EXCHANGE_TAKE);
        given.pop_front();
      }
    }
    for (auto& piece : given) {
      add(piece, Act::Take, EXCHANGE_TAKE);
    }
    return std::move(steps_);
  }

 private:
  struct Piece {
    uint64_t number;
    ExchangeArgs args;
  };

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
    uint64_t most = group_.sizes().slot / tile / e_.parts * items_of_tile();
    uint64_t pieces = ceil_div(e_.items, most);
    uint64_t tiles_of_all = ceil_div(e_.items, items_of_tile());
    return ceil_div(tiles_of_all, pieces) * items_of_tile();
  }

  Piece make(uint64_t first, uint64_t items) {
    auto& sizes = group_.sizes();
    uint64_t number = group_.next_collective();
    uint64_t tiles = ceil_div(items, items_of_tile());
    ExchangeArgs args{
        .slot = group_.slot(sizes.rank, number),
        .from_stride = group_.slot_stride(),
        .part_stride = e_.items,
        .gather_stride = e_.items,
        .first = first,
        .items = uint32_t(items),
        .packs = uint32_t(tiles * packs_of_tile()),
        .parts = e_.parts,
        .part = e_.parts > 1 ? sizes.rank : 0,
        .rank = sizes.rank,
        .ranks = sizes.ranks,
        .stamp = exchange_stamp(number),
        .turns = meets_ ? most_turns : 1};
    // Rank 0's packs that this rank takes.
    args.from =
        group_.slot(0, number) + bytes_of_pack() * args.part * args.packs;
    args.threads = grid_of(args, cores_, meets_).x * group_size;
    return {number, args};
  }

  void add(const Piece& piece, Act act, uint32_t steps) {
    auto args = piece.args;
    args.steps = steps;
    TransferPlan plan{
        e_.name,
        kind_of(e_.kind, e_.variant.T),
        e_.items * e_.itemsize,
        args.first * e_.itemsize};
    Carrier::Job job{
        piece.number, args.from, args.from_stride, args.stamp, args.packs};
    steps_.push_back(
        {{act, 0, piece.number, plan},
         args,
         grid_of(args, cores_, meets_),
         job});
  }

  const Exchange& e_;
  HostGroup& group_;
  const bool meets_;
  const uint32_t cores_;
  std::vector<ExchangeStep> steps_;
};

} // namespace

bool fits_carrier(const Exchange& e) {
  uint64_t packs = e.items / EXCHANGE_ITEMS(1, e.itemsize);
  return packs * 16 + 16 <= Carrier::room;
}

std::vector<ExchangeStep>
steps_of(Exchange& e, HostGroup& group, bool meets, uint32_t cores) {
  e.variant.QUADS = meets ? 1 : 4;
  if (e.items == 0) {
    return {};
  }
  return Pieces(e, group, meets, cores).steps();
}

} // namespace mlx::core::vulkan
