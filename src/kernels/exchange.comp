// All-reduce, all-gather and sum-scatter of ranks of one host, through memory
// that all their devices see: each rank writes its items to its own slot and
// reads the others'. With both steps in one dispatch it waits for them here.
//
// A pack is 16 bytes: three words of items, and a stamp made of the number of
// the exchange and those words. So a reader knows by the pack alone that it is
// there, whole and of this exchange: no fence between devices is needed, and if
// a device writes it in pieces, the stamp does not fit until all have come (but
// once in 2^32 of such torn packs). Who is late is waited for `turns` looks;
// the host sees to it that nobody is (runtime/host_group.h).
#include "common/bits.glsl"
#include "common/loops.glsl"
#ifndef U_SIZE
#define U_SIZE T_SIZE
#endif
#include "common/reduce_ops.glsl"
#include "exchange.h"
#define ARGS_BLOCK ExchangeArgs
#include "common/args.glsl"

layout(local_size_x = 256) in;

// Neither cached nor kept in a register: other devices write it meanwhile.
layout(buffer_reference, scalar, buffer_reference_align = 16)
    coherent volatile buffer Pack {
  uvec4 v;
};
layout(buffer_reference, scalar, buffer_reference_align = 4)
    coherent volatile buffer Word {
  uint v;
};

const uint PER_PACK = T_SIZE == 8 ? 1 : 12 / T_SIZE;

// Odd factors: a change of one word always changes the stamp. exchange.h has the
// same for the host.
uint stamp(uvec3 w) {
  return A.stamp ^ (w.x * 0x9e3779b1u + w.y * 0x85ebca77u + w.z * 0xc2b2ae3du);
}

// `count` items of x from `first` on, and zeros.
uvec3 words_of(uint64_t first, uint count) {
  uvec3 w = uvec3(0);
  for (uint k = 0; k < PER_PACK; ++k) {
    if (k < count) {
      uvec2 bits = TO_BITS(T_PTR)(load(A.x, first + k));
#if T_SIZE == 8
      w.xy = bits;
#else
      w[k * T_SIZE / 4] |= bits.x << (k * T_SIZE % 4 * 8);
#endif
    }
  }
  return w;
}

T item_of(uvec3 w, uint k) {
#if T_SIZE == 8
  uvec2 bits = w.xy;
#else
  uvec2 bits = uvec2(w[k * T_SIZE / 4] >> (k * T_SIZE % 4 * 8), 0);
#endif
  return FROM_BITS(T_PTR)(bits);
}

void give(uint pack, uint64_t first, uint count) {
  uvec3 w = words_of(first, count);
  Pack(uint64_t(A.region) + A.slot + uint64_t(pack) * 16).v =
      uvec4(w, stamp(w));
}

// Somebody waits for nothing any more: this rank, or all.
bool ended() {
  uint64_t words = uint64_t(A.region);
  return Word(words + 4 * EXCHANGE_END).v != 0 ||
      Word(words + 4 * EXCHANGE_LATE(A.rank)).v != 0;
}

// False if it did not come.
bool take(uint rank, uint pack, out uvec3 w) {
  Pack at = Pack(A.from + rank * A.from_stride + uint64_t(pack) * 16);
  uvec4 v = at.v;
  uint turn = 0;
  // The condition's own bound.
  BOUNDED_WHILE(v.w != stamp(v.xyz) && turn < A.turns, A.turns) {
    ++turn;
    if ((turn & 1023u) == 0 && ended()) {
      break;
    }
    v = at.v;
  }
  w = v.xyz;
  bool there = v.w == stamp(w);
  if (!there) {
    Word(uint64_t(A.region) + 4 * EXCHANGE_LATE(A.rank)).v = 1 + rank;
  }
  return there;
}

void combine(uint pack, uint64_t first, uint count) {
  uvec3 own = words_of(A.part * A.part_stride + first, count);
#if !GATHER
  Acc total[PER_PACK];
#endif
  // In the order of the ranks on each of them, so that all get the same bits.
  for (uint rank = 0; rank < A.ranks; ++rank) {
    uvec3 w = own;
    if (rank != A.rank && !take(rank, pack, w)) {
      return;
    }
    for (uint k = 0; k < PER_PACK; ++k) {
      T item = item_of(w, k);
#if GATHER
      if (k < count) {
        store(A.y, rank * A.gather_stride + first + k, item);
      }
#else
      Acc value = Acc_CAST(item);
      total[k] = rank == 0 ? value : reduce_op(total[k], value);
#endif
    }
  }
#if !GATHER
  for (uint k = 0; k < PER_PACK; ++k) {
    if (k < count) {
      store(A.y, first + k, T_CAST(total[k]));
    }
  }
#endif
}

void main() {
  uint stride = A.threads;
  if ((A.steps & EXCHANGE_GIVE) != 0) {
    for (uint part = 0; part < A.parts; ++part) {
      for (uint p = thread_index(); p < A.packs; p += stride) {
        uint first = p * PER_PACK;
        uint count = min(PER_PACK, A.items - first);
        uint64_t from = part * A.part_stride + A.first + first;
        give(part * A.packs + p, from, count);
      }
    }
  }
  // y may be x: an invocation gives what it overwrites here, and takes the same
  // packs (of one part) as it gave.
  if ((A.steps & EXCHANGE_TAKE) != 0) {
    for (uint p = thread_index(); p < A.packs; p += stride) {
      uint first = p * PER_PACK;
      combine(p, A.first + first, min(PER_PACK, A.items - first));
    }
  }
}
