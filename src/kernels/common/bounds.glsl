// Bounds checks of indices from data: reads out of bounds give 0, writes are
// skipped. A negative index counts from the end, once.
//
// bounded(k, size, starts, at, inside) is the position of index k on an axis of
// `size` items, of which the first `starts` are valid (fewer where a slice
// begins there). If k is out of range, it returns 0, a position that can be
// loaded from, and clears `inside`; select the value after the load. `at` is
// the flat position of the index itself, for reports.
//
// With MLX_VK_DEBUG=bounds the host defines BOUNDS_REPORT, and the first index
// out of range is written to the report (pipeline/reports.h).
#pragma once

#ifdef BOUNDS_REPORT
#include "common/report.glsl"

void report_index(uint64_t k, uint is_signed, uint64_t at, uint size) {
  KernelReport r = KernelReport(uvec2(REPORT_LOW, REPORT_HIGH));
  if (atomicCompSwap(r.index_kernel, 0u, REPORT_KERNEL) == 0u) {
    r.index_signed = is_signed;
    r.index = k;
    r.position = at;
    r.size = uint64_t(size);
  }
}
#define REPORT_INDEX(k, is_signed, at, size)                                  \
  if (!fits) {                                                                \
    report_index(k, is_signed, uint64_t(at), size);                           \
  }
#else
#define REPORT_INDEX(k, is_signed, at, size)
#endif

// A negative k below -size plus size exceeds every axis as an unsigned number,
// because an axis has less than 2^31 items. The sign is tested in the index's
// own type: some drivers miscompile the 64-bit test of a widened int.
#define BOUNDED_SIGNED_(VALUE, SIGNED, UNSIGNED)                              \
  uint bounded(                                                               \
      VALUE k, uint size, uint starts, uint64_t at, inout bool inside) {      \
    UNSIGNED wrap = k < VALUE(0) ? UNSIGNED(size) : UNSIGNED(0);              \
    UNSIGNED place = UNSIGNED(SIGNED(k)) + wrap;                              \
    bool fits = place < UNSIGNED(starts);                                     \
    REPORT_INDEX(uint64_t(int64_t(k)), 1u, at, size)                          \
    inside = inside && fits;                                                  \
    return fits ? uint(place) : 0u;                                           \
  }
#define BOUNDED_UNSIGNED_(VALUE, UNSIGNED)                                    \
  uint bounded(                                                               \
      VALUE k, uint size, uint starts, uint64_t at, inout bool inside) {      \
    UNSIGNED place = UNSIGNED(k);                                             \
    bool fits = place < UNSIGNED(starts);                                     \
    REPORT_INDEX(uint64_t(k), 0u, at, size)                                   \
    inside = inside && fits;                                                  \
    return fits ? uint(place) : 0u;                                           \
  }
BOUNDED_SIGNED_(int8_t, int, uint)
BOUNDED_SIGNED_(int16_t, int, uint)
BOUNDED_SIGNED_(int, int, uint)
BOUNDED_SIGNED_(int64_t, int64_t, uint64_t)
BOUNDED_UNSIGNED_(uint8_t, uint)
BOUNDED_UNSIGNED_(uint16_t, uint)
BOUNDED_UNSIGNED_(uint, uint)
BOUNDED_UNSIGNED_(uint64_t, uint64_t)

// bounded() for an index that selects one of `count` objects.
#define named(k, count, at, inside)                                           \
  bounded(k, count, count, uint64_t(at), inside)
