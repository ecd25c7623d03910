// Sort and ArgSort of long rows by digits of 8 bits (radix.comp).
#include "ops/layout.h"
#include "ops/rows/rows.h"

namespace mlx::core::vulkan {

bool radix_sort(StreamEncoder& enc, const array& in, array& out, bool arg) {
  uint32_t n = in.ndim() == 0 ? 1 : in.shape(-1);
  uint64_t rows = in.size() / n;
  auto plan = plan_radix(enc.target(), type_of(in), arg, rows, n);
  if (!plan) {
    return false;
  }
  RadixArgs args{rows, n, (n + plan->tile - 1) / plan->tile, 0};
  auto counters = [&](uint64_t per_row) {
    return enc.temporary(
        {static_cast<int>(rows), static_cast<int>(per_row)}, uint32);
  };
  array counts = counters(uint64_t(RADIX_DIGITS) * args.tiles);
  array totals = counters(RADIX_DIGITS);
  // Items sorted by the digits so far; two arrays alternate.
  struct Sorted {
    array keys, positions;
  };
  std::vector<Sorted> sorted;
  for (uint32_t i = 1; i < std::min(plan->digits, 3u); ++i) {
    sorted.push_back(
        {enc.temporary(in.shape(), in.dtype()),
         enc.temporary(arg ? in.shape() : Shape{0}, uint32)});
  }
  array source = row_contiguous(in, enc);
  for (uint32_t digit = 0; digit < plan->digits; ++digit) {
    bool last = digit + 1 == plan->digits;
    RadixVariant v = radix_scatter(*plan, digit);
    args.shift = 8 * digit;
    const Sorted* from = digit ? &sorted[(digit - 1) % 2] : nullptr;
    const array& keys = from ? from->keys : source;
    Grid tiles = linear(rows * args.tiles);
    Grid lines = linear(rows * RADIX_DIGITS);
    enc.dispatch(radix_count(v), {keys}, {counts}, args, tiles);
    enc.dispatch(radix_prefix(v), {}, {counts, totals}, args, lines);
    FewOperands reads{keys, counts, totals};
    if (arg && from) {
      reads.add(from->positions);
    }
    FewOperands writes;
    if (last) {
      writes.add(out);
    } else {
      writes.add(sorted[digit % 2].keys);
      if (arg) {
        writes.add(sorted[digit % 2].positions);
      }
    }
    enc.dispatch(v, reads, writes, args, tiles);
  }
  return true;
}

} // namespace mlx::core::vulkan
