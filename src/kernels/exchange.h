#include "common/interface.h"

BEGIN_INTERFACE

// An exchange between ranks of one host (ranks/host_group.h). A rank's slot
// holds `parts` times `packs` packs of data words and a stamp, in whole tiles.
struct ExchangeArgs {
  PTR(T_PTR, x)
  PTR(Ptr_u32, region)
  PTR(T_PTR, y)
  uint64_t slot; // byte offset of this rank's slot in `region`
  uint64_t from; // address of rank 0's packs
  uint64_t from_stride; // bytes between ranks
  uint64_t end; // address of a device word that ends all waits when 1; or 0
  uint64_t part_stride; // items of x between parts
  uint64_t gather_stride; // items of y between ranks
  uint64_t first; // first item of each part in this exchange
  uint items; // items per part
  uint packs; // packs per part
  uint parts, part; // parts written, and the part read
  uint rank, ranks;
  uint stamp; // exchange number
  uint steps; // EXCHANGE_GIVE, EXCHANGE_TAKE or both
  uint threads; // invocations in the grid
  uint turns; // polls before a pack counts as missing
};

// Layout of a pack of `quads` 16-byte vectors: data words, items of `size`
// bytes, and packs per tile.
#define EXCHANGE_WORDS(quads) ((quads)*4 - 1)
#define EXCHANGE_ITEMS(quads, size) \
  ((size) > 4 ? EXCHANGE_WORDS(quads) / 2 : EXCHANGE_WORDS(quads) * 4 / (size))
#define EXCHANGE_TILE(quads) ((quads) == 1 ? 1 : 32)
#define EXCHANGE_FACTOR 0x9e3779b1u

#define EXCHANGE_GIVE 1
#define EXCHANGE_TAKE 2

// Byte offset in `region` of a rank's error word, to which its device writes 1
// + the rank whose pack is missing.
#define EXCHANGE_LATE(rank) (16 * (1 + (rank)))

#ifdef __cplusplus
// ExchangeArgs::stamp
constexpr uint exchange_stamp(uint64_t number) {
  return static_cast<uint>(number) * 0x9e3779b9u;
}

// The stamp (last word) of a one-quad pack; equals stamp() of exchange.comp.
constexpr uint exchange_stamp(uint stamp, uint x, uint y, uint z) {
  constexpr uint f = EXCHANGE_FACTOR;
  return stamp ^ (((x * f + y) * f + z) * f);
}

struct ExchangeVariant {
  Type T, Acc;
  const char* OP; // a function of reduce_ops.glsl
  bool GATHER;
  int QUADS; // 16-byte vectors per pack: 1, or 4 for large messages
  KERNEL_VARIANT("exchange", ExchangeArgs, T, Acc, OP, GATHER, QUADS)
};
#endif

END_INTERFACE
