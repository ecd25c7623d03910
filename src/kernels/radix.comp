// Stable least-significant-digit radix sort of contiguous rows with 8-bit
// digits (Knuth, The Art of Computer Programming 3, 5.2.5), NaN last. Each
// digit takes three dispatches: Count makes a histogram of each tile, Prefix
// turns a digit's counts into start offsets of the tiles, Scatter moves the
// items. Keys are stored unchanged and mapped to sortable integers on each
// read. Within a tile, items rank by subgroup, turn and lane; ballots find the
// lanes with the same digit.
#include "common/types.glsl"

#define Count 0
#define Prefix 1
#define Scatter 2
#define Unsigned 0
#define Signed 1
#define Float 2
#include "radix.h"
#define ARGS_BLOCK RadixArgs
#include "common/args.glsl"

const uint WG = RADIX_SUBGROUPS * SG;
const uint TILE = WG * RADIX_ITEMS;
const uint BITS = T_SIZE * 8;

layout(local_size_x = WG) in;

// Maps a key to an unsigned integer of the same order; -0 equals 0, and all NaN
// are equal.
uint ordered(T key) {
  uint bits = uint(key);
#if ORDER == Float
  const uint sign = 1u << (BITS - 1);
  uint size = bits & (sign - 1);
  if (size > INF) {
    return ~0u;
  }
  return (bits & sign) != 0 && size > 0 ? ~bits & (2 * sign - 1) : size | sign;
#elif ORDER == Signed
  return bits ^ (1u << (BITS - 1));
#else
  return bits;
#endif
}

uint digit_of(T key) {
  return ordered(key) >> A.shift & (RADIX_DIGITS - 1);
}

// The tile of a workgroup. Workgroups beyond the last take row 0 with no items.
struct Tile {
  uint64_t row;
  uint index, begin, count;
};

Tile this_tile() {
  uint group = group_index();
  uint64_t row = uint64_t(group / A.tiles);
  uint index = group % A.tiles;
  uint begin = index * TILE;
  bool live = row < A.rows;
  return Tile(
      live ? row : 0, index, begin, live ? min(A.n - begin, TILE) : 0);
}

uint64_t count_at(Tile tile, uint digit) {
  return (tile.row * RADIX_DIGITS + digit) * A.tiles + tile.index;
}

// Index of the first item of the tile's row.
#define ROW_START (tile.row * A.n)

#if STEP == Count
shared uint found[RADIX_DIGITS];

void main() {
  Tile tile = this_tile();
  for (uint d = gl_LocalInvocationID.x; d < RADIX_DIGITS; d += WG) {
    found[d] = 0;
  }
  barrier();
  T_PTR from = MOVED(T, A.keys_in, ROW_START + tile.begin);
  [[unroll]] for (uint k = 0; k < RADIX_ITEMS; ++k) {
    uint i = k * WG + gl_LocalInvocationID.x;
    if (i < tile.count) {
      atomicAdd(found[digit_of(load(from, i))], 1u);
    }
  }
  barrier();
  for (uint d = gl_LocalInvocationID.x; d < RADIX_DIGITS; d += WG) {
    if (tile.count > 0) {
      store(A.counts, count_at(tile, d), found[d]);
    }
  }
}

#elif STEP == Prefix
shared uint sums[RADIX_SUBGROUPS];

// Exclusive prefix sum of the counts of one digit of one row.
void main() {
  uint group = group_index();
  bool live = uint64_t(group) < A.rows * RADIX_DIGITS;
  uint64_t line = live ? uint64_t(group) * A.tiles : 0;
  uint carry = 0;
  for (uint first = 0; first < A.tiles; first += WG) {
    uint i = first + gl_LocalInvocationID.x;
    uint count = 0;
    if (i < A.tiles) {
      count = load(A.counts, line + i);
    }
    uint before = subgroupExclusiveAdd(count);
    if (gl_SubgroupInvocationID == SG - 1) {
      sums[gl_SubgroupID] = before + count;
    }
    barrier();
    for (uint s = 0; s < RADIX_SUBGROUPS; ++s) {
      before += s < gl_SubgroupID ? sums[s] : 0;
    }
    if (live && i < A.tiles) {
      store(A.counts, line + i, carry + before);
    }
    for (uint s = 0; s < RADIX_SUBGROUPS; ++s) {
      carry += sums[s];
    }
    barrier();
  }
  if (live && gl_LocalInvocationID.x == 0) {
    store(A.totals, uint64_t(group), carry);
  }
}

#else
#define POSITION_PTR Ptr_u32
#define POSITION_SIZE 4

shared uint seen[RADIX_SUBGROUPS][RADIX_DIGITS];
shared uint first_of[RADIX_DIGITS]; // start of a digit in the sorted tile
shared uint target_of[RADIX_DIGITS]; // start of a digit in the row
shared uint sums[RADIX_DIGITS / SG];
shared uint exchange[TILE];

// Each invocation handles one digit per turn.
const uint TURNS = (RADIX_DIGITS + WG - 1) / WG;
#define EACH_DIGIT(turn, d)                                                   \
  for (uint turn = 0, d = gl_LocalInvocationID.x; turn < TURNS;               \
       ++turn, d += WG)                                                       \
    if (d < RADIX_DIGITS)

// Exclusive prefix sum over the digits.
void scan_digits(inout uint values[TURNS]) {
  [[unroll]] EACH_DIGIT(turn, d) {
    uint value = values[turn];
    values[turn] = subgroupExclusiveAdd(value);
    if (d % SG == SG - 1) {
      sums[d / SG] = values[turn] + value;
    }
  }
  barrier();
  [[unroll]] EACH_DIGIT(turn, d) {
    for (uint s = 0; s < d / SG; ++s) {
      values[turn] += sums[s];
    }
  }
  barrier();
}

#if SG <= 32
#define Lanes uint
#define BALLOT(p) subgroupBallot(p).x
uint lanes_in(uint lanes) {
  return bitCount(lanes);
}
uint lanes_before(uint lanes) {
  return bitCount(lanes & gl_SubgroupLtMask.x);
}
#else
#define Lanes uvec2
#define BALLOT(p) subgroupBallot(p).xy
uint lanes_in(uvec2 lanes) {
  return bitCount(lanes.x) + bitCount(lanes.y);
}
uint lanes_before(uvec2 lanes) {
  return lanes_in(lanes & gl_SubgroupLtMask.xy);
}
#endif

T key[RADIX_ITEMS];
uint digit[RADIX_ITEMS];
uint place[RADIX_ITEMS]; // position in the sorted tile

// Index in the tile of this lane's item in turn k.
uint item(uint k) {
  return (gl_SubgroupID * RADIX_ITEMS + k) * SG + gl_SubgroupInvocationID;
}

// Stores in `place` each item's rank among equal digits of its subgroup, and in
// `seen` the count of each digit per subgroup.
void rank_in_subgroups(Tile tile) {
  T_PTR from = MOVED(T, A.keys_in, ROW_START + tile.begin);
  [[unroll]] for (uint k = 0; k < RADIX_ITEMS; ++k) {
    key[k] = T(0);
    if (item(k) < tile.count) {
      key[k] = load(from, item(k));
    }
  }
  [[unroll]] for (uint k = 0; k < RADIX_ITEMS; ++k) {
    bool live = item(k) < tile.count;
    digit[k] = digit_of(key[k]);
    Lanes same = BALLOT(live);
    [[unroll]] for (uint b = 0; b < 8; ++b) {
      bool set = (digit[k] >> b & 1) != 0;
      Lanes others = BALLOT(set);
      same &= set ? others : ~others;
    }
    uint before = lanes_before(same);
    uint all_before = seen[gl_SubgroupID][digit[k]];
    place[k] = all_before + before;
    // All lanes must read the count before one lane updates it.
    subgroupBarrier();
    if (live && before == 0) {
      seen[gl_SubgroupID][digit[k]] = all_before + lanes_in(same);
    }
    subgroupBarrier();
  }
}

// Computes the start of each digit in the tile and in the row.
void start_digits(Tile tile) {
  uint mine[TURNS], totals[TURNS];
  [[unroll]] EACH_DIGIT(turn, d) {
    uint sum = 0;
    for (uint s = 0; s < RADIX_SUBGROUPS; ++s) {
      uint of_subgroup = seen[s][d];
      seen[s][d] = sum;
      sum += of_subgroup;
    }
    mine[turn] = sum;
    totals[turn] = load(A.totals, tile.row * RADIX_DIGITS + d);
  }
  scan_digits(mine);
  scan_digits(totals);
  [[unroll]] EACH_DIGIT(turn, d) {
    first_of[d] = mine[turn];
    target_of[d] = totals[turn] + load(A.counts, count_at(tile, d));
  }
}

void main() {
  Tile tile = this_tile();
  for (uint d = gl_LocalInvocationID.x; d < RADIX_DIGITS; d += WG) {
    for (uint s = 0; s < RADIX_SUBGROUPS; ++s) {
      seen[s][d] = 0;
    }
  }
  barrier();
  rank_in_subgroups(tile);
  barrier();
  start_digits(tile);
  barrier();
  // Sorts in shared memory first, so that global writes are coalesced.
  [[unroll]] for (uint k = 0; k < RADIX_ITEMS; ++k) {
    place[k] += first_of[digit[k]] + seen[gl_SubgroupID][digit[k]];
    if (item(k) < tile.count) {
      exchange[place[k]] = uint(key[k]);
    }
  }
  barrier();
  uint target[RADIX_ITEMS];
#if !(ARG && LAST)
  T_PTR keys = MOVED(T, A.keys, ROW_START);
#endif
  [[unroll]] for (uint k = 0; k < RADIX_ITEMS; ++k) {
    uint i = k * WG + gl_LocalInvocationID.x;
    if (i < tile.count) {
      T moved = T(exchange[i]);
      uint d = digit_of(moved);
      target[k] = target_of[d] + (i - first_of[d]);
#if !(ARG && LAST)
      store(keys, target[k], moved);
#endif
    }
  }
#if ARG
  barrier();
#if !FIRST
  Ptr_u32 before = MOVED(POSITION, A.positions_in, ROW_START + tile.begin);
#endif
  Ptr_u32 positions = MOVED(POSITION, A.positions, ROW_START);
  [[unroll]] for (uint k = 0; k < RADIX_ITEMS; ++k) {
    if (item(k) < tile.count) {
#if FIRST
      uint position = tile.begin + item(k);
#else
      uint position = load(before, item(k));
#endif
      exchange[place[k]] = position;
    }
  }
  barrier();
  [[unroll]] for (uint k = 0; k < RADIX_ITEMS; ++k) {
    uint i = k * WG + gl_LocalInvocationID.x;
    if (i < tile.count) {
      store(positions, target[k], exchange[i]);
    }
  }
#endif
}
#endif
