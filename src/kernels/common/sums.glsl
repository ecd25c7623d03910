// SUM_UP(total, item, n, fours): adds item[0] to item[n - 1] to a float as an
// invocation of reduce.comp does (common/reduce_operands.glsl, LANES 1): evenly
// spaced items by fours, those of a nest one after another.
#ifndef SUMS_GLSL
#define SUMS_GLSL

#define SUM_UP(total, item, n, fours)                                         \
  {                                                                           \
    uint i_ = 0;                                                              \
    if (fours) {                                                              \
      for (; i_ + 3 < (n); i_ += 4) {                                         \
        total = total +                                                       \
            ((item[i_] + item[i_ + 1]) + (item[i_ + 2] + item[i_ + 3]));      \
      }                                                                       \
    }                                                                         \
    for (; i_ < (n); ++i_) {                                                  \
      total = total + item[i_];                                               \
    }                                                                         \
  }

#endif
