// What gathers and scatters share: they move words, or combine items where
// WORD is 0.
#ifndef INDICES_GLSL
#define INDICES_GLSL

#include "common/index.glsl"
#include "common/types.glsl"
#if WORD
#include "common/words.glsl"
#define ITEM_PTR WordPtr
#else
#include "common/atomics.glsl"
#define ITEM_PTR T_PTR
#endif

// Where an item lies in the indexed array and, of a scatter, in the updates.
struct Place {
  int64_t target, update;
};

// A negative index counts from the end. The sign is tested in I: drivers have
// been seen to get the 64-bit test of a widened int wrong.
int64_t wrap_index(I k, int size) {
#if I_KIND == KIND_INT
  return int64_t(k) + (k < I(0) ? int64_t(size) : int64_t(0));
#else
  return int64_t(k);
#endif
}

void put_update(ITEM_PTR dst, ITEM_PTR updates, Place at) {
#if WORD
  store_word(dst, at.target, load_word(updates, at.update));
#else
  atomic_combine(
      uint64_t(dst) + at.target * T_SIZE, load(updates, at.update));
#endif
}

#endif
