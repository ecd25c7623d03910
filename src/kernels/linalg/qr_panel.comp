// Householder QR of a block column (Golub & Van Loan, Matrix Computations,
// 5.2.2; signs as LAPACK's larfg). A workgroup has a matrix, of which WIDE
// columns at a time are in registers: a team has a column, an invocation ROWS
// of its items. Reflectors are in shared memory if STAGED, those of earlier
// columns in v.
#include "linalg/real.glsl"
#include "linalg/linalg.h"
#define ARGS_BLOCK QrPanelArgs
#include "common/args.glsl"
#define WG_SIZE (LANES * WIDE)
#include "common/lanes.glsl"
#include "linalg/per_matrix.glsl"

layout(local_size_x = WG_SIZE) in;

#define PLUS(a, b) ((a) + (b))
TEAM_REDUCE(team_sum, T, PLUS, sums)
TEAM_REDUCE(team_sums, T2, PLUS, pairs)
TEAM_REDUCE(team_max, T, max, maxima)

#define EACH_ROW [[unroll]] for (uint r = 0; r < ROWS; ++r)
#define ROW (LANE + r * LANES)
#define MAY_BE_DIAGONAL (r * LANES < BLOCK)

T x[ROWS]; // of the team's column, scaled: r's items, then v's
T head; // v's first item
uint column; // of the block

#if STAGED
shared T staged[2][ROWS * LANES];
#endif
// Invocations read what others wrote.
layout(buffer_reference, scalar, buffer_reference_align = T_SIZE) coherent
    buffer Item {
  T value[1];
};

// Items of v, from the matrix's on.
uint place(uint row, uint j) {
  return j * uint(A.vs.col) + row;
}

#define V(place) (Item(uint64_t(A.v)) + (first + place)).value[0]
uint64_t first;

// The reflector v of the column, with items before j and after it: I - v v^T
// makes those below j zero, and |v|^2 is 2, or 0 if they are. The team of column
// j keeps it.
void reflect(uint j) {
  T2 part = T2(0.0);
  EACH_ROW {
    T here = x[r];
    if (MAY_BE_DIAGONAL) {
      part.y += where_less(here, ROW ^ j, 1);
      here = where_less(here, j, ROW);
    }
    part.x += here * here;
  }
  T2 all = team_sums(part);
  T below = all.x, alpha = all.y;
  T length_ = sqrt(alpha * alpha + below);
  bool none = below == 0.0;
  T beta = none ? alpha : alpha > 0.0 ? -length_ : length_;
  T scale = none ? 0.0 : 1.0 / sqrt(length_ * (length_ + abs(alpha)));
  bool own = column == j;
  head = own ? scale * (alpha - beta) : head;
  EACH_ROW {
    T item = scale * x[r];
    if (MAY_BE_DIAGONAL) {
      x[r] = !own || ROW < j ? x[r] : ROW > j ? item : beta;
      item = ROW > j ? item : ROW == j ? scale * (alpha - beta) : 0.0;
    } else {
      x[r] = own ? item : x[r];
    }
#if STAGED
    if (own) {
      staged[j % 2][ROW] = item;
    }
#else
    if (own && ROW < A.rows) {
      V(place(ROW, j)) = item;
    }
#endif
  }
#if !STAGED
  memoryBarrierBuffer();
#endif
  barrier();
}

// Applies the reflector of column j, in memory or staged, to later ones.
void apply(uint j, bool in_memory) {
  T v[ROWS], part = 0.0;
  EACH_ROW {
#if STAGED
    v[r] = staged[j % 2][ROW];
#endif
    if (in_memory || STAGED == 0) {
      v[r] = where_less(V(place(min(ROW, A.rows - 1), j)), ROW, A.rows);
    }
    part += v[r] * x[r];
  }
  T all = team_sum(part);
  all = column > j ? all : 0.0;
  EACH_ROW {
    x[r] -= v[r] * all;
  }
}

void work(uint matrix) {
  first = uint64_t(matrix * A.vs.batch);
  for (uint s = 0; s < A.width; s += WIDE) {
    column = s + TEAM;
    int64_t from = matrix * A.xs.batch + min(column, A.width - 1) * A.xs.col;
    T most = 0.0;
    EACH_ROW {
      T here = load(A.x, from + min(ROW, A.rows - 1) * A.xs.row);
      x[r] = where_less(here, ROW, A.rows);
      most = max(most, abs(x[r]));
    }
    T scale = scale_of(team_max(most));
    EACH_ROW {
      x[r] *= scale;
    }
    for (uint j = 0; j < s; ++j) {
      apply(j, true);
    }
    for (uint j = s; j < min(s + WIDE, A.width); ++j) {
      reflect(j);
      apply(j, false);
    }
    EACH_ROW {
      if (ROW < A.rows && column < A.width) {
        T item = x[r];
        if (MAY_BE_DIAGONAL) {
          if (ROW <= column) {
            int64_t at = matrix * A.rs.batch + ROW * A.rs.row;
            store(A.r, at + column * A.rs.col, item * inverse_power(scale));
          }
          item = ROW > column ? item : ROW == column ? head : 0.0;
        }
        V(place(ROW, column)) = item;
      }
    }
    if (WIDE < BLOCK) {
      memoryBarrierBuffer();
      barrier();
    }
  }
}
