#include "ops/linalg/plan.h"
#include "variants/variants.h"

namespace mlx::core::vulkan {

namespace {

void add_variants(Type t, VariantSet& set, const Caps& caps) {
  set.add(CholeskyVariant{t});
  set.add(LuSwapVariant{t});
  set.add(SignsVariant{t});
  // Factors of LU, of an inverse's triangles, triangular inverses, reflectors.
  set.add(SolveVariant{.T = t, .UNIT = true, .R = true, .EYE = 0});
  for (bool r : {false, true}) {
    set.add(SolveVariant{.T = t, .UNIT = true, .R = r, .EYE = 2});
    set.add(SolveVariant{.T = t, .UNIT = false, .R = r, .EYE = 1});
  }
  set.add(SolveVariant{.T = t, .UNIT = false, .R = true, .EYE = 0});
  for (uint32_t rows = 64; rows <= qr_panel_rows(caps); rows *= 2) {
    set.add(qr_panel_variant(t, rows, caps));
  }
  for (uint32_t rows = 64; rows <= lu_panel_rows(caps); rows *= 2) {
    set.add(lu_panel_variant(t, rows, caps));
  }
  for (bool start : {false, true}) {
    set.add(LuColumnVariant{t, start});
  }
  set.add(round_variant(t, caps));
  for (bool stacked : {false, true}) {
    for (uint32_t columns : {32, 64}) {
      if (is_small(t, columns, stacked, caps)) {
        set.add(jacobi_variant(t, columns, stacked));
      }
    }
  }
  for (bool symmetric : {false, true}) {
    set.add(StartVariant{t, symmetric});
    for (bool vectors : {false, true}) {
      set.add(FinishVariant{t, symmetric, vectors});
    }
  }
  for (bool all : {false, true}) {
    set.add(SymmetricVariant{t, all});
    for (uint32_t lanes : {32, 128}) {
      set.add(ReduceColumnVariant{t, all, lanes});
    }
    set.add(reduce_product_variant(t, all));
    set.add(BisectVariant{t, all ? 1u : 8u});
  }
  set.add(LeavesVariant{t});
  for (uint32_t step = 0; step < MERGE_STEPS; ++step) {
    set.add(MergeVariant{t, step});
  }
  set.add(SortedVariant{t});
}

} // namespace

void add_linalg_variants(VariantSet& set, const Caps& caps) {
  add_variants(Type::f32, set, caps);
  add_variants(Type::f64, set, caps); // on devices that have it
  Caps least = caps;
  least.shared_memory = 16384; // MLX_VK_DISABLE=shared
  add_variants(Type::f64, set, least);
}

} // namespace mlx::core::vulkan
