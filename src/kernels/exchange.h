#include "common/interface.h"

BEGIN_INTERFACE

// What ranks of one host exchange through memory that they share
// (runtime/host_group.h). Each rank's slot holds `parts` of `packs` packs,
// whole tiles; a pack has words of items and a stamp.
struct ExchangeArgs {
  PTR(T_PTR, x)
  PTR(Ptr_u32, region)
  PTR(T_PTR, y)
  uint64_t slot; // this rank's, in bytes from `region`
  uint64_t from; // address of the packs of rank 0 to take
  uint64_t from_stride; // from rank to rank, bytes
  uint64_t end; // address of a word of this device: 1 ends all waits. Or 0
  uint64_t part_stride; // from part to part, items of x
  uint64_t gather_stride; // from rank to rank, items of y
  uint64_t first; // item of each part that this exchange begins with
  uint items; // of a part
  uint packs; // of a part
  uint parts, part; // given: all of them; taken: one
  uint rank, ranks;
  uint stamp; // of this exchange
  uint steps; // EXCHANGE_GIVE, EXCHANGE_TAKE
  uint threads; // of the whole grid
  uint turns; // looks at a pack before it counts as missing
};

// A pack of quads of 16 bytes: its words of items, the items of so many bytes
// that they hold, and the packs of a tile.
#define EXCHANGE_WORDS(quads) ((quads)*4 - 1)
#define EXCHANGE_ITEMS(quads, size) \
  ((size) > 4 ? EXCHANGE_WORDS(quads) / 2 : EXCHANGE_WORDS(quads) * 4 / (size))
#define EXCHANGE_TILE(quads) ((quads) == 1 ? 1 : 32)
#define EXCHANGE_FACTOR 0x9e3779b1u

#define EXCHANGE_GIVE 1
#define EXCHANGE_TAKE 2

// The word of `region` that a rank's device writes: 1 + the rank whose pack did
// not come.
#define EXCHANGE_LATE(rank) (16 * (1 + (rank)))

#ifdef __cplusplus
// Of a pack of one quad, its last word: as in exchange.comp.
constexpr uint exchange_stamp(uint stamp, uint x, uint y, uint z) {
  constexpr uint f = EXCHANGE_FACTOR;
  return stamp ^ (((x * f + y) * f + z) * f);
}

struct ExchangeVariant {
  Type T, Acc;
  const char* OP; // a name of reduce_ops.glsl
  bool GATHER;
  int QUADS; // of a pack: 1, or 4 for many
  KERNEL_VARIANT("exchange", T, Acc, OP, GATHER, QUADS)
};
#endif

END_INTERFACE
