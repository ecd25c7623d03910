// SUM_UP(total, ITEM, n, fours): adds ITEM(0) to ITEM(n - 1) in the order of
// reduce.comp with LANES 1 (common/reduce_operands.glsl): in fours if evenly
// spaced, otherwise singly.
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
