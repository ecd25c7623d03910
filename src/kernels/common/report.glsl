// What kernels report where MLX_VK_DEBUG asks for it: pipeline/reports.h reads
// it when the batch is done.
#ifndef REPORT_GLSL
#define REPORT_GLSL

layout(constant_id = 0) const uint REPORT_LOW = 0;
layout(constant_id = 1) const uint REPORT_HIGH = 0;
layout(constant_id = 2) const uint REPORT_KERNEL = 0;
layout(buffer_reference, scalar, buffer_reference_align = 8)
    buffer KernelReport {
  uint64_t loop; // loops.glsl
  // bounds.glsl: whose index, 0 where there was none; the index, its flat
  // position, the items of its axis. msl_bounds.glsl: whose access, where it is in
  // bytes from an array on, which argument that is, its bytes; the line of the
  // source, with the highest bit if that is in the header, and how many bytes.
  uint index_kernel, index_signed;
  uint64_t index, position, size;
  uint line, bytes;
};
// Behind it there is memory for accesses that have none.
#define REPORT_NOBODYS 64ul

#endif
