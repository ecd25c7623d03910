// The loops of elementwise kernels, by FORM (common/forms.glsl); defines main().
// A kernel declares before including this file:
//   item(i)       FORM 0 and 3: makes item i
//   quad(u)       FORM 3: makes items 4 u to 4 u + 3
//   find_row(row), item(i, c)
//                 FORM 1 and 2: finds the operands' row; makes item i of the
//                 results, the row's item c
#ifndef ELEMENTWISE_GLSL
#define ELEMENTWISE_GLSL

layout(local_size_x = 256) in;

#if FORM == 0 || FORM == 3
// Units: the quads, then the items left over.
void main() {
  UIndex n = UIndex(A.n);
  UIndex step = UIndex(group_count()) * gl_WorkGroupSize.x;
#if FORM == 0
  for (UIndex i = flat_index(); i < n; i += step) {
    item(i);
  }
#else
  UIndex quads = n / 4u;
  UIndex units = quads + (n & 3u);
  for (UIndex u = flat_index(); u < units; u += step) {
    if (u < quads) {
      quad(u);
    } else {
      item(u + 3u * quads);
    }
  }
#endif
}
#else
// An invocation takes STRIDED_WORK items of a row, spread so that neighbours
// stay neighbours.
void main() {
  uint per_row = (A.last + STRIDED_WORK - 1u) / STRIDED_WORK;
  UIndex t = flat_index();
  UIndex row = t / UIndex(per_row);
  if (row < UIndex(A.rows)) {
    find_row(row);
    UIndex first = row * UIndex(A.last);
    for (uint c = uint(t - row * UIndex(per_row)); c < A.last; c += per_row) {
      item(first + UIndex(c), c);
    }
  }
}
#endif

#endif
