// A column of an LU panel of many rows, with partial pivoting (lu_panel.comp), by
// many workgroups: each chooses the pivot from what all of them found. Few
// invocations have a row.
#include "linalg/real.glsl"
#include "linalg/linalg.h"
#define ARGS_BLOCK LuColumnArgs
#include "common/args.glsl"

#define GROUP 128
#define PER_ROW (GROUP / LU_COLUMN_ROWS)
#define FEW 8 // invocations that reduce for the others
#define EACH_ITEM [[unroll]] for (uint i = 0; i < BLOCK / PER_ROW; ++i)
#define COLUMN (i * PER_ROW + local / LU_COLUMN_ROWS)
layout(local_size_x = GROUP) in;

shared uvec4 found[GROUP];
shared T pivot_row[BLOCK], heads[LU_COLUMN_ROWS]; // heads: column j - 1
shared uint places[LU_COLUMN_ROWS];

// The better pivot of two: the larger, else the first.
uvec4 better(uvec4 a, uvec4 b) {
  uint64_t x = packUint2x32(a.xy), y = packUint2x32(b.xy);
  return y > x || (y == x && b.z < a.z) ? b : a;
}

// The best of the workgroup's.
uvec4 best(uvec4 mine) {
  uint local = gl_LocalInvocationIndex;
  found[local] = mine;
  barrier();
  if (local < FEW) {
    [[unroll]] for (uint i = FEW; i < GROUP; i += FEW) {
      mine = better(mine, found[local + i]);
    }
    found[local] = mine;
  }
  barrier();
  [[unroll]] for (uint i = 0; i < FEW; ++i) {
    mine = better(mine, found[i]);
  }
  barrier();
  return mine;
}

void main() {
  uint local = gl_LocalInvocationIndex;
  bool mine = group_index() / A.groups < A.count;
  uint matrix = min(group_index() / A.groups, A.count - 1);
  uint part = group_index() % A.groups, j = A.column;
  uint in_part = local % LU_COLUMN_ROWS, row = part * LU_COLUMN_ROWS + in_part;
  bool inside = mine && row < A.rows;
  row = min(row, A.rows - 1);
  uint64_t state = uint64_t(matrix) * LU_STATE(A.rows, A.groups);
  uint64_t place_at = state + (8 * A.groups + row);
  Ptr_u32x4 of_step = Ptr_u32x4(uint64_t(A.state) + 4 * state);

  int64_t y = matrix * A.ys.batch + row * A.ys.row;
  T v[BLOCK / PER_ROW];
  EACH_ITEM {
    uint c = min(COLUMN, A.width - 1);
#if START
    int64_t x = matrix * A.xs.batch + row * A.xs.row;
    v[i] = load(A.x, x + c * A.xs.col);
#else
    v[i] = load(A.y, y + c * A.ys.col);
    if (COLUMN + 1 == j) {
      heads[in_part] = v[i];
    }
#endif
  }
#if START
  uint place = row;
  bool below = true;
#else
  if (local < LU_COLUMN_ROWS) {
    places[in_part] = load(A.state, place_at);
  }
  uvec4 pivot_at = uvec4(0, 0, ~0, 0);
  for (uint i = local; i < A.groups; i += GROUP) {
    pivot_at = better(pivot_at, of_step.v[(j + 1) % 2 * A.groups + i]);
  }
  pivot_at = best(pivot_at);
  uint p = pivot_at.z;
  if (local < BLOCK) {
    int64_t at = matrix * A.ys.batch + pivot_at.w * A.ys.row;
    pivot_row[local] = load(A.y, at + min(local, A.width - 1) * A.ys.col);
  }
  barrier();
  uint place = places[in_part];
  place = place == p ? j - 1 : place == j - 1 ? p : place;
  bool below = place >= j;
  T pivot = pivot_row[j - 1], l = heads[in_part];
  l = pivot != 0.0 ? l / pivot : l;
  if (mine && part == 0 && local == 0) {
    store(A.pivots, matrix * A.pivot_batch + (A.first + j - 1), A.first + p);
  }
#endif
  uvec2 key = uvec2(0); // less than that of any number
  EACH_ITEM {
    uint c = COLUMN;
#if !START
    v[i] = c + 1 == j ? l : v[i] - l * pivot_row[c];
#endif
    if (inside && below && c + 1 >= j && c < A.width) {
      store(A.y, y + c * A.ys.col, v[i]);
    }
    if (inside && below && c == j) {
      key = unpackUint2x32(uint64_t(magnitude(v[i])));
    }
  }
  if (inside && local < LU_COLUMN_ROWS) {
    store(A.state, place_at, place);
    if (A.first == 0 && j == A.width) {
      store(A.places, uint64_t(matrix) * A.rows + row, place);
    }
  }
  uvec4 ours = best(uvec4(key, place, row));
  if (mine && local == 0) {
    of_step.v[j % 2 * A.groups + part] = ours;
  }
}
