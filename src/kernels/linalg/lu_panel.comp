// LU factors of a block column, with partial pivoting (Golub & Van Loan, Matrix
// Computations, 3.4.4). A workgroup has a matrix, and an invocation ROWS rows,
// of which WIDE columns at a time are in registers: earlier columns of the block
// are subtracted first. Rows do not move, their places do, and meet only in
// shared memory. If WIDE is BLOCK they are written to their places, else
// lu_swap.comp moves them. A column of zeros is left as it is; the largest item
// of NaNs is the first.
#include "linalg/real.glsl"
#include "linalg/linalg.h"
#define ARGS_BLOCK LuPanelArgs
#include "common/args.glsl"
#include "linalg/per_matrix.glsl"

layout(local_size_x = WG_SIZE) in;

#define EACH_ROW [[unroll]] for (uint r = 0; r < ROWS; ++r)
#define EACH_COLUMN [[unroll]] for (uint c = 0; c < WIDE; ++c)
#define EACH_ITEM EACH_ROW EACH_COLUMN
#define AT(i, j) y + (i) * A.ys.row + (j) * A.ys.col
#define ROW (gl_LocalInvocationIndex + r * WG_SIZE)

shared T pivot_row[WIDE];
shared T largest[WG_SIZE / 4]; // of each subgroup
shared uint largest_at[WG_SIZE / 4];

T v[ROWS][WIDE];
uint place[ROWS];

// Takes an item and its row's place if it is larger; ties go to the first.
void consider(T size, uint other, inout T most, inout uint at) {
  if (size > most || (size == most && other < at)) {
    most = size;
    at = other;
  }
}

void consider_subgroup(inout T most, inout uint at) {
  T own = most;
  most = subgroup_max(own);
  at = subgroupMin(own == most ? at : ~0u);
}

// The place, from j on, of the row with the largest item of the first column.
uint find_pivot(uint j) {
  T most = -1.0;
  uint at = j;
  EACH_ROW {
    if (place[r] >= j && place[r] < A.rows) {
      consider(abs(v[r][0]), place[r], most, at);
    }
  }
  consider_subgroup(most, at);
  if (subgroupElect()) {
    largest[gl_SubgroupID] = most;
    largest_at[gl_SubgroupID] = at;
  }
  barrier();
  uint i = gl_SubgroupInvocationID;
  for (; i < gl_NumSubgroups; i += gl_SubgroupSize) {
    consider(largest[i], largest_at[i], most, at);
  }
  consider_subgroup(most, at);
  return at;
}

// Column j of the block, the first of `left` in v, which become the last ones.
void eliminate(uint j, uint left, uint matrix) {
  uint p = find_pivot(j);
  EACH_ROW {
    if (place[r] == p) {
      EACH_COLUMN {
        pivot_row[c] = v[r][c];
      }
    }
    place[r] = place[r] == p ? j : place[r] == j ? p : place[r];
  }
  barrier();
  if (gl_LocalInvocationIndex == 0) {
    store(A.pivots, matrix * A.pivot_batch + (A.first + j), A.first + p);
  }
  T pivot = pivot_row[0];
  EACH_ROW {
    bool below = place[r] > j;
    T l = below && pivot != 0.0 ? v[r][0] / pivot : v[r][0];
    [[unroll]] for (uint c = 1; c < WIDE; ++c) {
      v[r][c - 1] = below && c < left ? v[r][c] - l * pivot_row[c] : v[r][c];
    }
    v[r][WIDE - 1] = l;
  }
}

#if WIDE < BLOCK
shared T top[WIDE][WIDE + 1]; // rows of the upper factor
shared T lower[BLOCK][WIDE]; // diagonal blocks of the lower factor

// What the block's columns from t on leave of v.
void subtract(uint t, int64_t y) {
  EACH_ITEM {
    if (place[r] - t < WIDE) {
      top[place[r] - t][c] = v[r][c];
    }
  }
  barrier();
  uint local = gl_LocalInvocationIndex;
  if (local < WIDE) {
    [[unroll]] for (uint i = 1; i < WIDE; ++i) {
      T sum = top[i][local];
      [[unroll]] for (uint k = 0; k < i; ++k) {
        sum -= lower[t + i][k] * top[k][local];
      }
      top[i][local] = sum;
    }
  }
  barrier();
  EACH_ROW {
    uint end = place[r] >= t && ROW < A.rows ? min(place[r] - t, WIDE) : 0;
    for (uint k = 0; k < end; ++k) {
      T l = load(A.y, AT(ROW, t + k));
      EACH_COLUMN {
        v[r][c] -= l * top[k][c];
      }
    }
  }
  barrier();
}
#endif

void work(uint matrix) {
  int64_t x = matrix * A.xs.batch;
  int64_t y = matrix * A.ys.batch;
  EACH_ROW {
    place[r] = ROW;
  }
  for (uint s = 0; s < A.width; s += WIDE) {
    uint left = min(A.width - s, WIDE);
    EACH_ITEM {
      bool inside = ROW < A.rows && c < left;
      int64_t at = x + ROW * A.xs.row + (s + c) * A.xs.col;
      T item = load(A.x, inside ? at : x);
      v[r][c] = inside ? item : 0.0;
    }
#if WIDE < BLOCK
    for (uint t = 0; t < s; t += WIDE) {
      subtract(t, y);
    }
#endif
    for (uint j = 0; j < left; ++j) {
      eliminate(s + j, left - j, matrix);
    }
    EACH_ITEM {
      uint j = c + left - WIDE; // column of the block, from s on
      if (ROW < A.rows && j < left) {
        store(A.y, AT(WIDE < BLOCK ? ROW : place[r], s + j), v[r][c]);
      }
#if WIDE < BLOCK
      if (place[r] - s < WIDE) {
        lower[place[r]][c] = v[r][c];
      }
#endif
    }
  }
  EACH_ROW {
    if (A.first == 0 && ROW < A.rows) {
      store(A.places, uint64_t(matrix) * A.rows + ROW, place[r]);
    }
  }
}
