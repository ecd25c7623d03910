#define VMA_IMPLEMENTATION
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#include "runtime/vma.h"
