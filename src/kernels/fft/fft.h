#pragma once

#include "common/interface.h"

// Longest line for which fft_radix.comp keeps a table of roots in shared
// memory.
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

// Arguments of a pass of fft_radix.comp.
struct FftRadixArgs {
  PTR(T_PTR, x)
  PTR(U_PTR, y)
  uint64_t inner;
  uint64_t line_turn, axis_turn; // 2^64 / LINE, 2^64 / (LINE * suffix)
  uint64_t x_outer, y_outer; // items between outer indices
  uint lines, columns; // of the pass; per outer index, without `inner`
  uint suffix; // stride of a line along the axis
  uint x_extent, x_held; // length of the pass's axis, and items stored of it
  uint y_rows; // not LAST: items of a line that are stored
  uint rows_1, n1, n2; // LAST: rows are (rows_1, n2), out of (n1, n2)
  uint extent, y_held; // LAST: length of the result, and items stored of it
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
  KERNEL_VARIANT("fft/fft", FftArgs, T, U, ITEMS, CAREFUL)
};

// LINE items per line, LINES lines per workgroup. Radices R1 * R2 * R3 * R4 =
// LINE, R1 the largest; an invocation holds at most ITEMS items. ACROSS_IN,
// ACROSS_OUT: adjacent lines are closer in memory than adjacent items of a
// line. LAST: last pass of the axis.
struct FftRadixVariant {
  Type T, U;
  uint LINE, ITEMS, LINES;
  uint R1, R2, R3, R4;
  bool LAST, ACROSS_IN, ACROSS_OUT;

  constexpr uint lanes() const { // invocations per line
    return LINE / R1;
  }
  // Shared memory of the kernel, in bytes.
  constexpr uint shared_memory() const {
    uint apart = LINES < 32 ? 32 / LINES : 1;
    uint pitch = (LINE + LINE / R1 + 31) / 32 * 32 + apart;
    return R2 > 1 ? LINES * pitch * 4 + (LINE <= MOST_ROOTS ? LINE * 8 : 0) : 0;
  }
  KERNEL_VARIANT(
      "fft/fft_radix", FftRadixArgs, T, U, LINE, ITEMS, LINES, R1, R2, R3, R4,
      LAST, ACROSS_IN, ACROSS_OUT)
};

struct ChirpVariant {
  Type T, U;
  const char* STEP;
  KERNEL_VARIANT("fft/chirp", ChirpArgs, T, U, STEP)
};
#endif

END_INTERFACE
