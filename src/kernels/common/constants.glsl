// Constants of a variant.
#pragma once

#define BIGGER(a, b) ((a) > (b) ? (a) : (b))

// A variant for which the constant condition is false does not compile. Unlike
// #if, the condition may use lengths of arrays. For use in functions.
#define REQUIRE(condition)                                                    \
  {                                                                           \
    struct Required {                                                         \
      uint holds[(condition) ? 1 : -1];                                       \
    };                                                                        \
  }
