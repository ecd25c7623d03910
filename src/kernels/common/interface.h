// Interface of a kernel, src/kernels/<kernel>.h, read by C++ and GLSL.
//
//   #include "common/interface.h"
//   BEGIN_INTERFACE
//   struct RopeArgs {         // the argument block, once for both
//     PTR(T_PTR, x)           // pointers first: GLSL's type, name. C++ lists
//     PTR(T_PTR, y)           // its operands in dispatch() in this order
//     int64_t stride;         // then the parameters, laid out as in C
//     uint n;
//   };
//   #ifdef __cplusplus
//   struct RopeVariant {      // the kernel's defines (pipeline/variant.h)
//     Type T;
//     bool FORWARD;
//     KERNEL_VARIANT("rope", RopeArgs, T, FORWARD)
//   };
//   #endif
//   END_INTERFACE
//
// The kernel writes `#define ARGS_BLOCK RopeArgs` and includes
// common/args.glsl. A block with array sizes that depend on the variant is a
// template in C++.
#pragma once

#ifdef __cplusplus
#include <cstdint>

#include "pipeline/variant.h"

#define PTR(type, name)
#define BEGIN_INTERFACE namespace mlx::core::vulkan {
#define END_INTERFACE }
namespace mlx::core::vulkan {
using uint = uint32_t;
}
#else
#define PTR(type, name) type name;
#define BEGIN_INTERFACE
#define END_INTERFACE
#endif
