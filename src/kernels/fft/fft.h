#ifndef FFT_H
#define FFT_H

#include "common/interface.h"

// Items of a line for whose roots fft_radix.comp has a table in shared memory.
#define MOST_ROOTS 512

BEGIN_INTERFACE

struct FftArgs {
  PTR(T_PTR, x)
  PTR(U_PTR, y)
  uint64_t lines, inner;
  uint extent, x_extent, y_extent;
  uint n, prefix, suffix, n1, n2;
  uint group_lines, last, inverse, stages;
  float scale;
  uint radices[32];
};

// A pass of fft_radix.comp.
struct FftRadixArgs {
  PTR(T_PTR, x)
  PTR(U_PTR, y)
  uint64_t inner;
  uint64_t line_turn, axis_turn; // 2^64 by LINE, by LINE * suffix
  uint64_t x_outer, y_outer; // items from one outer index to the next
  uint lines, columns; // of the pass, of an outer index (inner ones aside)
  uint suffix; // items of the axis from one of a line to the next
  uint x_extent, x_held; // of the axis as the pass sees it
  uint y_rows; // not LAST: items of a line that are kept
  uint rows_1, n1, n2; // LAST: the rows are (rows_1, n2), of (n1, n2)
  uint extent, y_held; // LAST: of the result
  uint inverse;
  float scale;
};

struct ChirpArgs {
  PTR(T_PTR, x)
  PTR(U_PTR, y)
  uint64_t size, inner;
  uint extent, held, wide, inverse;
  float scale;
};

#ifdef __cplusplus
struct FftVariant {
  Type T, U;
  int ITEMS;
  bool CAREFUL;
  KERNEL_VARIANT("fft/fft", T, U, ITEMS, CAREFUL)
};

// Lines of LINE items, LINES a workgroup. Stages over R1 * R2 * R3 * R4 = LINE,
// R1 the largest; an invocation holds ITEMS at most. ACROSS_IN, ACROSS_OUT:
// neighbouring lines are closer in memory than neighbours of a line. LAST: of
// the axis. PLANES: 2 exchanges real and imaginary parts together, 1 in half
// the memory.
struct FftRadixVariant {
  Type T, U;
  uint LINE, ITEMS, LINES;
  uint R1, R2, R3, R4;
  bool LAST, ACROSS_IN, ACROSS_OUT;

  constexpr uint lanes() const { // invocations a line
    return LINE / R1;
  }
  // As the kernel declares it.
  constexpr uint shared_memory() const {
    uint apart = LINES < 32 ? 32 / LINES : 1;
    uint pitch = (LINE + LINE / R1 + 31) / 32 * 32 + apart;
    return R2 > 1 ? LINES * pitch * 4 + (LINE <= MOST_ROOTS ? LINE * 8 : 0) : 0;
  }
  KERNEL_VARIANT(
      "fft/fft_radix",
      T,
      U,
      LINE,
      ITEMS,
      LINES,
      R1,
      R2,
      R3,
      R4,
      LAST,
      ACROSS_IN,
      ACROSS_OUT)
};

struct ChirpVariant {
  Type T, U;
  const char* STEP;
  KERNEL_VARIANT("fft/chirp", T, U, STEP)
};
#endif

END_INTERFACE

#endif
