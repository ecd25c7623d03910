// Indices from data have bounds: what is outside of its axis is read as 0 and
// not written. A negative index counts from the end, once.
//
// bounded(k, size, starts, at, inside): where index k leads on an axis of `size`
// items, `starts` of which it may name (fewer where a slice of several items
// begins there). If it names none of them the result is 0 and `inside` becomes
// false: so a load can go where it says in any case, and the value is selected
// afterwards. `at` is the index's own flat position, for reports.
//
// With MLX_VK_DEBUG=bounds the host defines BOUNDS_REPORT, and the first index
// outside is written where pipeline/reports.h reads it.
#ifndef BOUNDS_GLSL
#define BOUNDS_GLSL

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

// The sum of a negative k below -size and size passes every axis, as an axis has
// less than 2^31 items. The sign is tested in the index's own type: drivers have
// been seen to get the 64-bit test of a widened int wrong.
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

// bounded() for an index that names one of `count` things.
#define named(k, count, at, inside)                                           \
  bounded(k, count, count, uint64_t(at), inside)

#endif
