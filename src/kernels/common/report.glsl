// Report of a kernel under MLX_VK_DEBUG; pipeline/reports.h reads it after the
// batch.
#pragma once

layout(constant_id = 0) const uint REPORT_LOW = 0;
layout(constant_id = 1) const uint REPORT_HIGH = 0;
layout(constant_id = 2) const uint REPORT_KERNEL = 0;
layout(buffer_reference, scalar, buffer_reference_align = 8)
    buffer KernelReport {
  uint64_t loop; // loops.glsl
  // bounds.glsl: kernel of the index (0: none), signedness, the index, its flat
  // position, the length of its axis. msl_bounds.glsl: kernel of the access,
  // its byte offset from an array, that argument's number and size, the source
  // line (highest bit: in the header), and the bytes accessed.
  uint index_kernel, index_signed;
  uint64_t index, position, size;
  uint line, bytes;
};
// Offset of scratch memory for accesses out of bounds.
#define REPORT_NOBODYS 64ul
