// Fills a contiguous range: single items up to a 16-byte boundary, then 16
// bytes per invocation, then single items.
#include "common/bits.glsl"
#include "fill.h"
#define ARGS_BLOCK FillArgs
#include "common/args.glsl"

layout(local_size_x = 256) in;

const uint PER_WORD = 16 / D_SIZE;

void main() {
  D value = D_CAST(load(A.src, 0));
  uvec2 b = TO_BITS(D_PTR)(value);
#if D_SIZE == 1
  uvec4 word = uvec4(b.x * 0x01010101u);
#elif D_SIZE == 2
  uvec4 word = uvec4(b.x * 0x00010001u);
#elif D_SIZE == 4
  uvec4 word = uvec4(b.x);
#else
  uvec4 word = b.xyxy;
#endif
  uint64_t words = (A.count - A.head) / PER_WORD;
  uint64_t singles = A.count - words * PER_WORD;
  uint64_t i = thread_index64();
  if (i < words) {
    uint64_t at = (A.head + i * PER_WORD) * D_SIZE;
    Ptr_u32x4(uint64_t(A.dst) + at).v[0] = word;
  } else if (i - words < singles) {
    uint64_t at = i - words;
    store(A.dst, at < A.head ? at : at + words * PER_WORD, value);
  }
}
