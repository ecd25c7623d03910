#include "common/interface.h"

BEGIN_INTERFACE

// What ranks of one host exchange through memory that they share
// (runtime/host_group.h). Each rank's slot holds `parts` of `packs` packs of 16
// bytes; a pack has 12 bytes of items (of 8 bytes one) and a stamp.
struct ExchangeArgs {
  PTR(T_PTR, x)
  PTR(Ptr_u32, region)
  PTR(T_PTR, y)
  uint64_t slot; // this rank's, in bytes from `region`
  uint64_t from; // address of the packs of rank 0 to take
  uint64_t from_stride; // from rank to rank, bytes
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

#define EXCHANGE_GIVE 1
#define EXCHANGE_TAKE 2

// Words of `region` that devices use: one that ends all waits, and of each rank
// one that its device writes, 1 + the rank whose pack did not come.
#define EXCHANGE_END 0
#define EXCHANGE_LATE(rank) (16 * (1 + (rank)))

#ifdef __cplusplus
// Of a pack, its last word: as in exchange.comp.
constexpr uint exchange_stamp(uint stamp, uint x, uint y, uint z) {
  return stamp ^ (x * 0x9e3779b1u + y * 0x85ebca77u + z * 0xc2b2ae3du);
}

struct ExchangeVariant {
  Type T, Acc;
  const char* OP; // a name of reduce_ops.glsl
  bool GATHER;
  KERNEL_VARIANT("exchange", T, Acc, OP, GATHER)
};
#endif

END_INTERFACE
