// LU factors of a block column, with partial pivoting (Golub & Van Loan, Matrix
// Computations, 3.4.4). A workgroup has a matrix, and an invocation ROWS rows,
// of which WIDE columns at a time are in registers: earlier columns of the block
// are subtracted first. Rows do not move, their places do, and meet only in
// shared memory. Blocks of at most WIDE columns are written by places;
// lu_swap.comp moves the rows of others. A column of zeros is left as it is; NaN
// is no larger than zero.
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
shared KEY largest[WG_SIZE]; // of an invocation's rows, then of several's
shared uint largest_at[WG_SIZE];

T v[ROWS][WIDE];
uint place[ROWS];

// The place, from j on, of the row with the largest item of the first column;
// ties go to the first. Not by subgroups: on an H200, lanes whose rows do not
// exist took a path of their own from their loads on, through barriers too.
uint find_pivot(uint j) {
  uint local = gl_LocalInvocationIndex;
  KEY most = 0;
  uint at = j;
#define CONSIDER(SIZE, AT)                                                    \
  {                                                                           \
    KEY size = SIZE;                                                          \
    uint other = AT;                                                          \
    bool better = size > most || (size == most && other < at);                \
    most = better ? size : most;                                              \
    at = better ? other : at;                                                 \
  }
  EACH_ROW {
    // A mask, as a branch could part the lanes.
    int inside = (int(place[r] - A.rows) & ~int(place[r] - j)) >> 31;
    CONSIDER(magnitude(v[r][0]) & (KEY(0) - KEY(inside & 1)), place[r])
  }
  largest[local] = most;
  largest_at[local] = at;
  barrier();
  [[unroll]] for (uint count = WG_SIZE; count > 1; count = (count + 7) / 8) {
    uint left = (count + 7) / 8;
    if (local < left) {
      [[unroll]] for (uint i = left; i < count; i += left) {
        CONSIDER(largest[local + i], largest_at[local + i])
      }
      largest[local] = most;
      largest_at[local] = at;
    }
    barrier();
  }
  return largest_at[0];
}

// Column j of the block, the first of `left` in v, which become the last ones.
void eliminate(uint j, uint left, uint matrix) {
  uint p = find_pivot(j);
  EACH_ROW {
    if (place[r] == p) {
      EACH_COLUMN {
        pivot_row[c] = v[r][c];
      }
      store(A.pivots, matrix * A.pivot_batch + (A.first + j), A.first + p);
    }
  }
  barrier();
  T pivot = pivot_row[0];
  EACH_ROW {
    place[r] = place[r] == p ? j : place[r] == j ? p : place[r];
    bool below = place[r] > j;
    T l = below && pivot != 0.0 ? v[r][0] / pivot : v[r][0];
    [[unroll]] for (uint c = 1; c < WIDE; ++c) {
      v[r][c - 1] = below && c < left ? v[r][c] - l * pivot_row[c] : v[r][c];
    }
    v[r][WIDE - 1] = l;
  }
}

#define FEW (WIDE < 4 ? WIDE : 4) // loads at once
shared T top[WIDE][WIDE + 1]; // rows of the upper factor
shared T lower[BLOCK][WIDE]; // diagonal blocks of the lower factor

// Subtracts the products of the block's WIDE columns from t on from v.
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
    bool inside = place[r] >= t && ROW < A.rows;
    int64_t at = inside ? AT(ROW, t) : y;
    for (uint k = 0; k < WIDE; k += FEW) {
      T l[FEW];
      [[unroll]] for (uint i = 0; i < FEW; ++i) {
        l[i] = load(A.y, at + (k + i) * A.ys.col);
      }
      [[unroll]] for (uint i = 0; i < FEW; ++i) {
        bool less = inside && place[r] > t + k + i;
        EACH_COLUMN {
          v[r][c] = less ? v[r][c] - l[i] * top[k + i][c] : v[r][c];
        }
      }
    }
  }
  barrier();
}

void work(uint matrix) {
  int64_t x = matrix * A.xs.batch;
  int64_t y = matrix * A.ys.batch;
  EACH_ROW {
    place[r] = ROW;
  }
  for (uint s = 0; s < A.width; s += WIDE) {
    uint left = min(A.width - s, WIDE);
    EACH_ITEM {
      uint row = min(ROW, A.rows - 1), col = s + min(c, left - 1);
      v[r][c] = load(A.x, x + row * A.xs.row + col * A.xs.col);
    }
    for (uint t = 0; t < s; t += WIDE) {
      subtract(t, y);
    }
    for (uint j = 0; j < left; ++j) {
      eliminate(s + j, left - j, matrix);
    }
    EACH_ITEM {
      uint j = c + left - WIDE; // column of the block, from s on
      if (ROW < A.rows && j < left) {
        store(A.y, AT(A.width > WIDE ? ROW : place[r], s + j), v[r][c]);
      }
      if (place[r] - s < WIDE) {
        lower[place[r]][c] = v[r][c];
      }
    }
  }
  EACH_ROW {
    if (A.first == 0 && ROW < A.rows) {
      store(A.places, uint64_t(matrix) * A.rows + ROW, place[r]);
    }
  }
}
