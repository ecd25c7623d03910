// LU factors of a block column, with partial pivoting (Golub & Van Loan, Matrix
// Computations, 3.4.4). A workgroup has a matrix, and an invocation ROWS rows,
// of which WIDE columns at a time are in registers: earlier columns of the block
// are subtracted first. Rows do not move but at the end; until then an
// invocation knows their places. Rows meet in shared memory. A column of zeros
// is left as it is; the largest item of NaNs is the first.
#include "linalg/real.glsl"
#include "linalg/linalg.h"
#define ARGS_BLOCK LuPanelArgs
#include "common/args.glsl"
#include "linalg/per_matrix.glsl"

layout(local_size_x = WG_SIZE) in;

#define EACH_ROW [[unroll]] for (uint r = 0; r < ROWS; ++r)
#define EACH_COLUMN [[unroll]] for (uint c = 0; c < WIDE; ++c)
#define AT(i, j) y + (i) * A.ys.row + (j) * A.ys.col
#define ROW (gl_LocalInvocationIndex + r * WG_SIZE)

shared T pivot_row[WIDE];
shared T largest[WG_SIZE / 4]; // of each subgroup
shared uint largest_at[WG_SIZE / 4];

T v[ROWS][WIDE];
uint place[ROWS];

// The place, from j on, of the row with the largest item of the first column;
// ties go to the first.
uint find_pivot(uint j) {
  T most = -1.0;
  uint at = j;
  EACH_ROW {
    T size = abs(v[r][0]);
    if (place[r] >= j && place[r] < A.rows &&
        (size > most || (size == most && place[r] < at))) {
      most = size;
      at = place[r];
    }
  }
  T best = subgroup_max(most);
  at = subgroupMin(most == best ? at : ~0u);
  if (subgroupElect()) {
    largest[gl_SubgroupID] = best;
    largest_at[gl_SubgroupID] = at;
  }
  barrier();
  most = -1.0;
  at = j;
  for (uint i = gl_SubgroupInvocationID; i < gl_NumSubgroups;
       i += gl_SubgroupSize) {
    T size = largest[i];
    if (size > most || (size == most && largest_at[i] < at)) {
      most = size;
      at = largest_at[i];
    }
  }
  return subgroupMin(most == subgroup_max(most) ? at : ~0u);
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
  EACH_ROW {
    EACH_COLUMN {
      if (place[r] - t < WIDE) {
        top[place[r] - t][c] = v[r][c];
      }
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
    EACH_ROW {
      EACH_COLUMN {
        bool inside = ROW < A.rows && c < left;
        int64_t at = x + ROW * A.xs.row + (s + c) * A.xs.col;
        T item = load(A.x, inside ? at : x);
        v[r][c] = inside ? item : 0.0;
      }
    }
#if WIDE < BLOCK
    for (uint t = 0; t < s; t += WIDE) {
      subtract(t, y);
    }
#endif
    for (uint j = 0; j < left; ++j) {
      eliminate(s + j, left - j, matrix);
    }
    memoryBarrierBuffer(); // x may be y
    barrier();
    EACH_ROW {
      uint row = s + WIDE < A.width ? ROW : place[r];
      EACH_COLUMN {
        uint j = c + left - WIDE; // column of the block, from s on
        if (ROW < A.rows && j < left) {
          store(A.y, AT(row, s + j), v[r][c]);
        }
#if WIDE < BLOCK
        if (place[r] - s < WIDE) {
          lower[place[r]][c] = v[r][c];
        }
#endif
      }
    }
  }
#if WIDE < BLOCK
  for (uint s = 0; s + WIDE < A.width; s += WIDE) { // earlier columns, too
    EACH_ROW {
      EACH_COLUMN {
        if (place[r] != ROW) {
          v[r][c] = load(A.y, AT(ROW, s + c));
        }
      }
    }
    memoryBarrierBuffer();
    barrier();
    EACH_ROW {
      EACH_COLUMN {
        if (place[r] != ROW) {
          store(A.y, AT(place[r], s + c), v[r][c]);
        }
      }
    }
  }
#endif
  EACH_ROW {
    if (A.first == 0 && ROW < A.rows) {
      store(A.places, uint64_t(matrix) * A.rows + ROW, place[r]);
    }
  }
}
