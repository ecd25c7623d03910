// All-reduce, all-gather and sum-scatter between ranks of one host, through
// memory visible to all their devices. Each rank writes its items to its slot
// and reads the others' slots; a dispatch of both steps waits in between.
//
// A pack is QUADS 16-byte vectors: data words, and a stamp computed from them
// and the exchange number. A matching stamp shows that the pack is complete and
// belongs to this exchange, so devices need no common fence; a torn pack passes
// with probability 2^-32. A wait ends after `turns` polls; the host
// makes sure that no rank is late (ranks/host_group.h).
//
// One-quad packs are in item order. Larger packs are interleaved in tiles, so
// that neighbouring invocations access neighbouring items and quads.
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

// Volatile and coherent, because other devices write this memory concurrently.
layout(buffer_reference, scalar, buffer_reference_align = 16)
    coherent volatile buffer Pack {
  uvec4 v;
};
layout(buffer_reference, scalar, buffer_reference_align = 4)
    coherent volatile buffer Word {
  uint v;
};

const uint WORDS = EXCHANGE_WORDS(QUADS);
const uint PER_PACK = EXCHANGE_ITEMS(QUADS, T_SIZE);
const uint TILE = EXCHANGE_TILE(QUADS); // in packs
// Consecutive items of a pack that share a word.
const uint RUN = T_SIZE < 4 ? 4 / T_SIZE : 1;

struct Words {
  uint w[WORDS + 1]; // the last word is the stamp
};

// Multiplication by an odd factor is a bijection, so a change of one word
// always changes the stamp. exchange.h has the host's version.
uint stamp(Words p) {
  uint sum = 0;
  [[unroll]] for (uint i = 0; i < WORDS; ++i) {
    sum = (sum + p.w[i]) * EXCHANGE_FACTOR;
  }
  return A.stamp ^ sum;
}

// Index within its part of item k of a pack.
uint index_of(uint pack, uint k) {
  uint in_tile = (k / RUN * TILE + pack % TILE) * RUN + k % RUN;
  return pack / TILE * (TILE * PER_PACK) + in_tile;
}

// Packs the items of x from `first` on, padded with zeros.
Words words_of(uint pack, uint64_t first) {
  Words p;
  [[unroll]] for (uint i = 0; i <= WORDS; ++i) {
    p.w[i] = 0;
  }
  [[unroll]] for (uint k = 0; k < PER_PACK; ++k) {
    uint i = index_of(pack, k);
    if (i < A.items) {
      uvec2 bits = TO_BITS(T_PTR)(load(A.x, first + i));
#if T_SIZE == 8
      p.w[2 * k] = bits.x;
      p.w[2 * k + 1] = bits.y;
#else
      p.w[k / RUN] |= bits.x << (k % RUN * T_SIZE * 8);
#endif
    }
  }
  return p;
}

T item_of(Words p, uint k) {
#if T_SIZE == 8
  uvec2 bits = uvec2(p.w[2 * k], p.w[2 * k + 1]);
#else
  uvec2 bits = uvec2(p.w[k / RUN] >> (k % RUN * T_SIZE * 8), 0);
#endif
  return FROM_BITS(T_PTR)(bits);
}

// Byte offset of a quad of a pack from the first pack.
uint64_t place_of(uint pack, uint quad) {
  uint64_t tile = pack / TILE;
  return ((tile * QUADS + quad) * TILE + pack % TILE) * 16;
}

void give(uint pack, uint64_t to, uint64_t first) {
  Words p = words_of(pack, first);
  p.w[WORDS] = stamp(p);
  [[unroll]] for (uint q = 0; q < QUADS; ++q) {
    Pack(to + place_of(pack, q)).v =
        uvec4(p.w[4 * q], p.w[4 * q + 1], p.w[4 * q + 2], p.w[4 * q + 3]);
  }
}

Words read(uint64_t from, uint pack) {
  Words p;
  [[unroll]] for (uint q = 0; q < QUADS; ++q) {
    uvec4 v = Pack(from + place_of(pack, q)).v;
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      p.w[4 * q + i] = v[i];
    }
  }
  return p;
}

// True after some rank has timed out. The flag is in this device's own memory:
// a host flag might become visible too late, and each later exchange of this
// submission would wait until its bound.
bool ended() {
  return A.end != 0 && Word(A.end).v != 0;
}

// Reads a pack of a rank; false on timeout.
bool take(uint rank, uint pack, out Words p) {
  uint64_t from = A.from + rank * A.from_stride;
  p = read(from, pack);
  uint turn = 0;
  // The condition already bounds the loop by A.turns.
  BOUNDED_WHILE(p.w[WORDS] != stamp(p) && turn < A.turns, A.turns) {
    ++turn;
    if ((turn & 1023u) == 0 && ended()) {
      break;
    }
    p = read(from, pack);
  }
  bool there = p.w[WORDS] == stamp(p);
  if (!there) {
    Word(uint64_t(A.region) + 4 * EXCHANGE_LATE(A.rank)).v = 1 + rank;
    if (A.end != 0) {
      Word(A.end).v = 1;
    }
  }
  return there;
}

void combine(uint pack) {
  Words own = words_of(pack, A.part * A.part_stride + A.first);
#if !GATHER
  Acc total[PER_PACK];
#endif
  // Every rank reduces in rank order, so that all results are bit-identical.
  for (uint rank = 0; rank < A.ranks; ++rank) {
    Words p = own;
    if (rank != A.rank && !take(rank, pack, p)) {
      return;
    }
    [[unroll]] for (uint k = 0; k < PER_PACK; ++k) {
      T item = item_of(p, k);
#if GATHER
      uint i = index_of(pack, k);
      if (i < A.items) {
        store(A.y, rank * A.gather_stride + A.first + i, item);
      }
#else
      Acc value = Acc_CAST(item);
      total[k] = rank == 0 ? value : reduce_op(total[k], value);
#endif
    }
  }
#if !GATHER
  [[unroll]] for (uint k = 0; k < PER_PACK; ++k) {
    uint i = index_of(pack, k);
    if (i < A.items) {
      store(A.y, A.first + i, T_CAST(total[k]));
    }
  }
#endif
}

void main() {
  uint stride = A.threads;
  if ((A.steps & EXCHANGE_GIVE) != 0) {
    uint64_t to = uint64_t(A.region) + A.slot;
    for (uint part = 0; part < A.parts; ++part) {
      uint64_t first = part * A.part_stride + A.first;
      for (uint p = thread_index(); p < A.packs; p += stride) {
        give(p, to + place_of(part * A.packs, 0), first);
      }
    }
  }
  // y may alias x: an invocation reads the items of its packs before it
  // overwrites the same items (of one part) here.
  if ((A.steps & EXCHANGE_TAKE) != 0) {
    for (uint p = thread_index(); p < A.packs; p += stride) {
      combine(p);
    }
  }
}
