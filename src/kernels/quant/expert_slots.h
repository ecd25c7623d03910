// The kernels of a cache of experts (ops/quant/expert_cache.h).
#pragma once

#include "common/interface.h"

// The most experts of a stack: their slots are kept in shared memory.
#define EXPERT_SLOTS_MOST 512
#define NO_EXPERT 0xffffffffu

BEGIN_INTERFACE

// Words of the state before its arrays: slot_of[experts] is 1 + an expert's
// slot, expert_of[slots] 1 + a slot's expert, 0 without one; used[slots] is the
// lookup that used a slot last. The first word counts lookups.
#define EXPERT_STATE_WORDS(experts, slots) (1 + (experts) + 2 * (slots))

// Finds the slots of `count` indices, and gives slots used longest ago to
// experts that have none: `moves` lists these, as pairs of an expert and its
// slot, then NO_EXPERT. An index beyond the experts stays as it is. With a
// count of 0 `moves` lists all slots instead.
struct ExpertSlotsArgs {
  PTR(Ptr_u32, indices)
  PTR(Ptr_u32, state)
  PTR(Ptr_u32, found)
  PTR(Ptr_u32, moves) // 2 * count, or 2 * slots
  uint count, experts, slots; // count <= slots
  uint fresh; // no slot has an expert yet
};

// Copies the matrices of `moves`, of a stack's three arrays, to their slots:
// `words` times 16 bytes each.
struct CopyExpertsArgs {
  PTR(Ptr_u32, moves)
  PTR(Ptr_u32x4, w)
  PTR(Ptr_u32x4, scales)
  PTR(Ptr_u32x4, side)
  PTR(Ptr_u32x4, y_w)
  PTR(Ptr_u32x4, y_scales)
  PTR(Ptr_u32x4, y_side)
  uint words[3];
  uint parts, groups; // workgroups of a matrix, and all
};

// Copies one array x of a stack to y: `count` times 16 bytes, `words` times of
// each expert, from its slot if the state says that it has one.
struct AssembleExpertsArgs {
  PTR(Ptr_u32, state)
  PTR(Ptr_u32x4, x)
  PTR(Ptr_u32x4, slots)
  PTR(Ptr_u32x4, y)
  uint words, count;
};

#ifdef __cplusplus
struct ExpertSlotsVariant {
  uint WG = 128;
  KERNEL_VARIANT("quant/expert_slots", ExpertSlotsArgs, WG)
};
struct CopyExpertsVariant {
  // 16-byte words of a workgroup.
  static constexpr uint part = 256 * 8;
  uint WG = 256;
  KERNEL_VARIANT("quant/copy_experts", CopyExpertsArgs, WG)
};
struct AssembleExpertsVariant {
  static constexpr uint part = CopyExpertsVariant::part;
  uint WG = 256;
  KERNEL_VARIANT("quant/assemble_experts", AssembleExpertsArgs, WG)
};
#endif

END_INTERFACE
