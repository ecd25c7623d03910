// Common part of gathers and scatters, which move words, or combine items if
// WORD is 0.
#pragma once

#include "common/bounds.glsl"
#include "common/index.glsl"
#include "common/types.glsl"
#if WORD
#include "common/words.glsl"
#define ITEM_PTR WordPtr
#else
#include "common/atomics.glsl"
#define ITEM_PTR T_PTR
#endif

// Index of an item in the indexed array and, for a scatter, in the updates. If
// it is out of bounds, `target` is a valid index all the same.
struct Place {
  int64_t target, update;
  bool inside;
};

#if WORD
Word word_at(WordPtr src, Place at) {
  Word word = load_word(src, at.target);
  return at.inside ? word : Word(0);
}
#endif

void put_update(ITEM_PTR dst, ITEM_PTR updates, Place at) {
#if WORD
  Word word = load_word(updates, at.update);
  if (at.inside) {
    store_word(dst, at.target, word);
  }
#else
  T item = load(updates, at.update);
  if (at.inside) {
    atomic_combine(uint64_t(dst) + at.target * T_SIZE, item);
  }
#endif
}
