// LU factors of a block column, with partial pivoting (Golub & Van Loan, Matrix
// Computations, 3.4.4). A workgroup has a matrix, and an invocation every
// WG_SIZE-th row: rows meet only in shared memory. A column of zeros is left as
// it is; the largest item of NaNs is the first. Loops over columns are unrolled:
// llvmpipe ends an invocation's loops after 65,535 iterations in all.
#include "linalg/real.glsl"
#include "linalg/linalg.h"
#define ARGS_BLOCK LuPanelArgs
#include "common/args.glsl"
#include "linalg/per_matrix.glsl"

layout(local_size_x = WG_SIZE) in;

shared T pivot_row[BLOCK], first_row[BLOCK];
shared T largest[WG_SIZE / 4];
shared uint largest_at[WG_SIZE / 4];

#if ROWS
shared T tile[BLOCK][ROWS];
#define TAKE(row, col) tile[col][row]
#define PUT(row, col, v) tile[col][row] = v
#else
#define AT(r, c) y + (r) * A.ys.row + (c) * A.ys.col
#define TAKE(r, c) load(A.y, AT(r, c))
#define PUT(r, c, value) store(A.y, AT(r, c), value)
#endif

// The row, from j on, with the largest item of column j; ties go to the first.
uint find_pivot(uint j, int64_t y) {
  uint local = gl_LocalInvocationIndex;
  T most = -1.0;
  uint at = j;
  for (uint row = local; row < A.rows; row += WG_SIZE) {
    T v = row >= j ? abs(TAKE(row, j)) : -1.0;
    at = v > most ? row : at;
    most = v > most ? v : most;
  }
  for (uint mask = 2; mask > 0; mask >>= 1) {
    T v = shuffle_xor(most, mask);
    uint other = shuffle_xor(at, mask);
    bool better = v > most || (v == most && other < at);
    at = better ? other : at;
    most = better ? v : most;
  }
  if (local % 4 == 0) {
    largest[local / 4] = most;
    largest_at[local / 4] = at;
  }
  barrier();
  for (uint half_ = WG_SIZE / 8; half_ > 0; half_ >>= 1) {
    if (local < half_) {
      T v = largest[local + half_];
      uint other = largest_at[local + half_];
      if (v > largest[local] ||
          (v == largest[local] && other < largest_at[local])) {
        largest[local] = v;
        largest_at[local] = other;
      }
    }
    barrier();
  }
  return largest_at[0];
}

// Exchanges rows j and p of the panel and leaves the pivot's row in shared
// memory.
void exchange(uint j, uint p, int64_t y) {
  uint local = gl_LocalInvocationIndex;
  bool has_j = local == j % WG_SIZE, has_p = local == p % WG_SIZE;
  for (uint c = 0; c < A.width; ++c) {
    if (has_p) {
      pivot_row[c] = TAKE(p, c);
    }
    if (has_j) {
      first_row[c] = TAKE(j, c);
    }
  }
  barrier();
  for (uint c = 0; p != j && c < A.width; ++c) {
    if (has_j) {
      PUT(j, c, pivot_row[c]);
    }
    if (has_p) {
      PUT(p, c, first_row[c]);
    }
  }
}

void work(uint matrix) {
  uint local = gl_LocalInvocationIndex;
  int64_t x = matrix * A.xs.batch;
  int64_t y = matrix * A.ys.batch;
  for (uint row = local; row < A.rows; row += WG_SIZE) {
    [[unroll]] for (uint c = 0; c < BLOCK; ++c) {
      if (c < A.width) {
        PUT(row, c, load(A.x, x + row * A.xs.row + c * A.xs.col));
      }
    }
    if (A.first == 0) {
      store(A.perm, uint64_t(matrix) * A.rows + row, row);
    }
  }
  for (uint j = 0; j < A.width; ++j) {
    uint p = find_pivot(j, y);
    exchange(j, p, y);
    if (local == 0) {
      store(A.pivots, matrix * A.pivot_batch + (A.first + j), A.first + p);
    }
    T pivot = pivot_row[j];
    for (uint row = local; row < A.rows; row += WG_SIZE) {
      if (row > j) {
        T v = TAKE(row, j);
        T l = pivot != 0.0 ? v / pivot : v;
        PUT(row, j, l);
        [[unroll]] for (uint c = 1; c < BLOCK; ++c) {
          if (c > j && c < A.width) {
            PUT(row, c, TAKE(row, c) - l * pivot_row[c]);
          }
        }
      }
    }
    barrier();
  }
#if ROWS
  for (uint row = local; row < A.rows; row += WG_SIZE) {
    for (uint c = 0; c < A.width; ++c) {
      store(A.y, y + row * A.ys.row + c * A.ys.col, tile[c][row]);
    }
  }
#endif
}
