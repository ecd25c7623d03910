// Stable merge sort of the rows of an array, NaN last. MERGE=0: a workgroup
// sorts one tile of a row, or ROWS whole rows. MERGE=1: a workgroup merges two
// sorted runs into one tile. ARG carries positions and outputs them. LAST
// writes the output array, other passes contiguous rows for the next merge.
#include "common/index.glsl"
#include "common/loops.glsl"
#include "common/order.glsl"
#include "sort.h"
#if MERGE
#define ARGS_BLOCK SortMergeArgs
#else
#define ARGS_BLOCK SortTileArgs
#endif
#include "common/args.glsl"

layout(local_size_x = WG) in;

const uint LANES = WG / ROWS; // of a tile
const uint TILE = LANES * ITEMS;
shared T key_at[ROWS * TILE];
#if ARG
shared uint position_at[ROWS * TILE];
#endif

// Merge path split in shared memory: how many of the first `diagonal` merged
// items come from a[0, m), where b has n items.
uint split_shared(uint a, uint m, uint b, uint n, uint diagonal) {
  uint low = diagonal > n ? diagonal - n : 0;
  uint high = min(diagonal, m);
  // Each iteration halves the interval, rounding down: one iteration per bit.
  BOUNDED_WHILE(low < high, 32) {
    uint middle = (low + high) / 2;
    bool b_first = sorts_before(
        key_at[b + diagonal - 1 - middle], key_at[a + middle]);
    low = b_first ? low : middle + 1;
    high = b_first ? middle : high;
  }
  return low;
}

T mine[ITEMS];
#if ARG
uint mine_at[ITEMS];
#endif

// Merges this invocation's ITEMS items from a[i, m) and b[j, n).
void merge_items(uint a, uint i, uint m, uint b, uint j, uint n) {
  for (uint k = 0; k < ITEMS; ++k) {
    bool from_b = j < n &&
        (i >= m || sorts_before(key_at[b + j], key_at[a + i]));
    uint at = from_b ? b + j : a + min(i, m - 1);
    // Out of range only in a partial tile, whose excess is never stored.
    at = min(at, ROWS * TILE - 1);
    mine[k] = key_at[at];
#if ARG
    mine_at[k] = position_at[at];
#endif
    i += from_b ? 0 : 1;
    j += from_b ? 1 : 0;
  }
}

void keep_items() {
  uint first = gl_LocalInvocationID.x * ITEMS;
  for (uint k = 0; k < ITEMS; ++k) {
    key_at[first + k] = mine[k];
#if ARG
    position_at[first + k] = mine_at[k];
#endif
  }
}

// Items begin to begin + count of a row, from key_at[first] on. Tiles beyond the
// last take row 0 without storing, so that barriers stay uniform.
struct Tile {
  uint64_t row;
  bool live;
  uint begin, count, first;
};

Tile this_tile() {
  uint group = group_index();
  uint turn = gl_LocalInvocationID.x / LANES;
  uint64_t row = uint64_t(group / A.rows.tiles) * ROWS + turn;
  bool live = row < A.rows.count;
  uint begin = group % A.rows.tiles * TILE;
  uint count = min(A.rows.n - begin, TILE);
  return Tile(live ? row : 0, live, begin, count, turn * TILE);
}

void store_tile(Tile tile) {
  if (!tile.live) {
    return;
  }
#if LAST
  uint64_t outer = tile.row;
  if (A.rows.post > 1) {
    outer /= A.rows.post;
  }
  uint64_t origin = outer * A.rows.n * A.rows.post +
      (tile.row - outer * A.rows.post);
  uint64_t step = A.rows.post;
#else
  uint64_t origin = tile.row * A.rows.n;
  const uint64_t step = 1;
#endif
  for (uint k = gl_LocalInvocationID.x % LANES; k < tile.count; k += LANES) {
    uint64_t to = origin + uint64_t(tile.begin + k) * step;
#if ARG
    store(A.positions, to, position_at[tile.first + k]);
#endif
#if !(ARG && LAST)
    store(A.keys, to, key_at[tile.first + k]);
#endif
  }
}

#if MERGE
// Merge path split between the runs at `a` and `b` of src. Positions are
// 32-bit: NVIDIA's compiler (580.159) leaves the upper half of a 64-bit `x > y
// ? x - y : 0` undefined (docs/dev/driver-bugs.md).
uint split_global(uint64_t a, uint m, uint64_t b, uint n, uint diagonal) {
  uint low = diagonal > n ? diagonal - n : 0;
  uint high = min(diagonal, m);
  // Each iteration halves the interval: one iteration per bit.
  BOUNDED_WHILE(low < high, 32) {
    uint middle = low + (high - low) / 2;
    bool b_first = sorts_before(
        load(A.src, b + (diagonal - 1 - middle)), load(A.src, a + middle));
    low = b_first ? low : middle + 1;
    high = b_first ? middle : high;
  }
  return low;
}

shared uint cuts[2];

// Merges two sorted runs into the tile.
void fill_tile(Tile tile) {
  uint local = gl_LocalInvocationID.x;
  // Runs that this tile merges; the second may be short or missing.
  uint pair = tile.begin / (2 * A.run) * (2 * A.run);
  uint64_t base = tile.row * A.rows.n + pair;
  uint left = min(A.run, A.rows.n - pair);
  uint right = min(A.run, A.rows.n - pair - left);
  if (local < 2) {
    uint diagonal = tile.begin - pair + (local == 0 ? 0 : tile.count);
    cuts[local] = split_global(base, left, base + left, right, diagonal);
  }
  barrier();
  uint a = cuts[0];
  uint b = tile.begin - pair - a;
  uint m = cuts[1] - a;
  uint n = tile.count - m;
  for (uint k = local; k < tile.count; k += WG) {
    uint64_t from = base + (k < m ? a + k : left + b + (k - m));
    key_at[k] = load(A.src, from);
#if ARG
    position_at[k] = load(A.positions_in, from);
#endif
  }
  barrier();
  uint diagonal = min(local * ITEMS, tile.count);
  uint i = split_shared(0, m, m, n, diagonal);
  merge_items(0, i, m, m, diagonal - i, n);
  barrier();
  keep_items();
  barrier();
}

#else
// Padding value. Ties keep their order, so that items stay before the padding.
#if T_KIND == KIND_FLOAT
const T LARGEST = NAN_F;
#elif T_KIND == KIND_COMPLEX
const T LARGEST = vec2(NAN_F, NAN_F);
#elif T_KIND == KIND_BOOL
const T LARGEST = true;
#elif T_KIND == KIND_UINT
const T LARGEST = ~T(0);
#else
const T LARGEST = ~(T(1) << T(T_SIZE * 8 - 1));
#endif

void load_tile(Tile tile) {
  uint64_t rest = tile.row;
  int64_t base = 0;
  int last = NDIM == MAX_NDIM ? A.others.ndim - 1 : NDIM - 1;
  for (int d = last; d >= 0; --d) {
    base += int64_t(TAKE_AXIS(d, rest, uint64_t(A.others.shape[d]))) *
        A.others.strides[d];
  }
  for (uint k = gl_LocalInvocationID.x % LANES; k < TILE; k += LANES) {
    uint at = tile.first + k;
    key_at[at] = LARGEST;
    if (k < tile.count) {
      key_at[at] = load(A.src, base + int64_t(tile.begin + k) * A.axis_stride);
    }
#if ARG
    position_at[at] = tile.begin + k;
#endif
  }
}

// Loads and sorts the tile.
void fill_tile(Tile tile) {
  load_tile(tile);
  barrier();
  // Odd-even transposition sort of ITEMS items in registers, then merges of
  // doubling length.
  uint first = gl_LocalInvocationID.x * ITEMS;
  for (uint k = 0; k < ITEMS; ++k) {
    mine[k] = key_at[first + k];
#if ARG
    mine_at[k] = position_at[first + k];
#endif
  }
  for (uint turn = 0; turn < ITEMS; ++turn) {
    for (uint k = turn & 1; k + 1 < ITEMS; k += 2) {
      bool exchange = sorts_before(mine[k + 1], mine[k]);
      T low = exchange ? mine[k + 1] : mine[k];
      mine[k + 1] = exchange ? mine[k] : mine[k + 1];
      mine[k] = low;
#if ARG
      uint low_at = exchange ? mine_at[k + 1] : mine_at[k];
      mine_at[k + 1] = exchange ? mine_at[k] : mine_at[k + 1];
      mine_at[k] = low_at;
#endif
    }
  }
  barrier();
  keep_items();
  barrier();
  for (uint run = ITEMS; run < TILE; run *= 2) {
    uint pair = first / (2 * run) * (2 * run);
    uint diagonal = first - pair;
    uint i = split_shared(pair, run, pair + run, run, diagonal);
    merge_items(pair, i, run, pair + run, diagonal - i, run);
    barrier();
    keep_items();
    barrier();
  }
}
#endif

void main() {
  Tile tile = this_tile();
  fill_tile(tile);
  store_tile(tile);
}
