// Contiguous copy between aligned buffers. RAW moves 16 bytes per invocation
// and a tail of single bytes; otherwise an invocation converts four items. The
// copy may be in place (donated input): an invocation reads all of its items
// before it writes them.
#include "common/vector.glsl"
#include "copy_flat.h"
#define ARGS_BLOCK CopyFlatArgs
#include "common/args.glsl"

layout(local_size_x = 256) in;

void main() {
  const uint per_pack = RAW != 0 ? 16 : 4;
  uint64_t i = thread_index64();
  uint64_t packs = A.count / per_pack;
  uint64_t tail = A.count - packs * per_pack;
  if (i < packs) {
#if RAW
    uint64_t at = i * 16;
    Ptr_u32x4(uint64_t(A.dst) + at).v[0] =
        Ptr_u32x4(uint64_t(A.src) + at).v[0];
#else
    S x[4] = LOAD_FOUR(S_PTR, A.src, i);
    D y[4];
    for (uint k = 0; k < 4; ++k) {
      y[k] = D_CAST(x[k]);
    }
    STORE_FOUR(D_PTR, A.dst, i, y);
#endif
  } else if (i - packs < tail) {
    uint64_t at = packs * per_pack + (i - packs);
    store(A.dst, at, D_CAST(load(A.src, at)));
  }
}
