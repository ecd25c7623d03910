// variants: BYTES=1 ; S=f32,bf16,i64,bool,c64 D=f16,f32,u8,u64,bool,c64
// A contiguous run to a contiguous run, both aligned for the widest access.
// With BYTES: raw, 16 bytes an invocation and a tail of single bytes. With S
// and D: a cast, four items an invocation. Either may be in place (a donated
// input): an invocation reads all of its items before it writes them.
#include "common/bits.glsl"

#ifdef BYTES
#define ARGS Ptr_u8 src; Ptr_u8 dst; uint64_t count;
#else
#define ARGS S_PTR src; D_PTR dst; uint64_t count;
#endif
#include "common/args.glsl"

layout(local_size_x = 256) in;

void main() {
  uint64_t i = thread_index64();
#ifdef BYTES
  uint64_t packs = A.count / 16;
  uint64_t tail = A.count - packs * 16;
  if (i < packs) {
    uint64_t at = i * 16;
    Ptr_u32x4(uint64_t(A.dst) + at).v[0] =
        Ptr_u32x4(uint64_t(A.src) + at).v[0];
  } else if (i - packs < tail) {
    uint64_t at = packs * 16 + (i - packs);
    store(A.dst, at, load(A.src, at));
  }
#else
  uint64_t packs = A.count / 4;
  uint64_t tail = A.count - packs * 4;
  if (i < packs) {
    uint raw[8];
    uint result[8] = uint[8](0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u);
    pack_load(uint64_t(A.src) + i * (4 * S_SIZE), S_SIZE, raw);
    for (uint k = 0; k < 4; ++k) {
      S x = FROM_BITS(S_PTR)(pack_get(raw, S_SIZE, k));
      pack_set(result, D_SIZE, k, TO_BITS(D_PTR)(D_CAST(x)));
    }
    pack_store(uint64_t(A.dst) + i * (4 * D_SIZE), D_SIZE, result);
  } else if (i - packs < tail) {
    uint64_t at = packs * 4 + (i - packs);
    store(A.dst, at, D_CAST(load(A.src, at)));
  }
#endif
}
