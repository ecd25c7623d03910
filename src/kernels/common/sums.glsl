// SUM_UP(total, ITEM, n, fours): adds ITEM(0) to ITEM(n - 1) to a float as an
// invocation of reduce.comp does (common/reduce_operands.glsl, LANES 1): evenly
// spaced items by fours, those of a nest one after another.
#ifndef SUMS_GLSL
#define SUMS_GLSL

#define SUM_UP(total, ITEM, n, fours)                                         \
  {                                                                           \
    uint i_ = 0;                                                              \
    if (fours) {                                                              \
      for (; i_ + 3 < (n); i_ += 4) {                                         \
        total = total +                                                       \
            ((ITEM(i_) + ITEM(i_ + 1)) + (ITEM(i_ + 2) + ITEM(i_ + 3)));      \
      }                                                                       \
    }                                                                         \
    for (; i_ < (n); ++i_) {                                                  \
      total = total + ITEM(i_);                                               \
    }                                                                         \
  }

#endif
