// What a scatter puts where its indices point: a word (assignment) or, with
// REDUCE, the combination of an item and what is there.
#ifndef UPDATES_GLSL
#define UPDATES_GLSL

#define UPDATES
#if WIDE
#define LARGE
#endif
#include "common/index.glsl"
#include "common/indices.glsl"
#ifdef WORD
#include "common/words.glsl"
#define ITEM_PTR WordPtr
#define PUT_UPDATE(dst, to, updates, from)                                    \
  store_word(dst, to, load_word(updates, from))
#else
#include "common/atomics.glsl"
#define ITEM_PTR T_PTR
#define PUT_UPDATE(dst, to, updates, from)                                    \
  atomic_combine(uint64_t(dst) + (to) * T_SIZE, load(updates, from))
#endif

#endif
