#include "ops/linalg/plan.h"
#include "variants/variants.h"

namespace mlx::core::vulkan {

void add_linalg_variants(VariantSet& set, const Caps& caps) {
  set.add(CholeskyVariant{});
  set.add(LuSwapVariant{});
  set.add(SignsVariant{});
  for (bool large : {false, true}) {
    set.add(InvertVariant{large});
  }
  // Factors of LU, of an inverse's triangles, and triangular inverses.
  set.add(SolveVariant{.UNIT = true, .R = true, .EYE = 0});
  for (bool r : {false, true}) {
    set.add(SolveVariant{.UNIT = true, .R = r, .EYE = 2});
    set.add(SolveVariant{.UNIT = false, .R = r, .EYE = 1});
  }
  set.add(SolveVariant{.UNIT = false, .R = true, .EYE = 0});
  for (uint32_t rows : {10, 100, 200, 1000}) {
    set.add(lu_panel_variant(rows, caps));
    set.add(qr_panel_variant(rows, caps));
  }
  for (uint32_t most : {32, 64}) {
    if (jacobi_rows(caps) >= most) {
      for (bool symmetric : {false, true}) {
        for (bool vectors : {false, true}) {
          set.add(JacobiVariant{most, symmetric, vectors});
        }
      }
    }
  }
}

} // namespace mlx::core::vulkan
