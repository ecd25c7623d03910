// Plans of each kernel of quantized products, among which plan_quant() and
// quant_candidates() choose. takes_...() says whether a kernel is legal and
// planned, loads_...() whether it is legal.
#pragma once

#include <algorithm>
#include <optional>

#include "ops/gemm/plan.h"
#include "ops/matrix_tiles.h"
#include "ops/quant/plan.h"

namespace mlx::core::vulkan::quant {

// A shape, with the device's matrix units for its type.
struct Typed : QuantShape {
  Typed(const Target& gpu, const QuantShape& s)
      : QuantShape(s),
        units(gpu.matrices(common.T)),
        halves(gpu.half_matrices(common.T)),
        usual(gpu.usual_matrices(common.T)),
        fragments(gpu.fragments(common.T)) {}

  MatrixUnits units, halves;
  bool usual, fragments; // of the usual shape; and of known layout
};

inline uint64_t rows_of_expert(const QuantShape& s) {
  return s.batch / std::max(s.matrices, 1u);
}

// The plan of a kernel whose workgroups make tiles of so many rows and outputs,
// of all products if their rows are sorted.
QuantPlan in_tiles(
    const auto& kernel,
    const QuantShape& s,
    uint32_t rows,
    uint32_t outputs) {
  return {
      .kernel = kernel,
      .sorted = s.sorted,
      .tile_height = rows,
      .m_tiles = s.sorted ? most_sorted_tiles(s.batch, s.matrices, rows)
                          : ceil_div(s.m, rows),
      .n_tiles = ceil_div(s.n, outputs)};
}

// The plan of such a kernel with k in up to `parts`, of whole groups and steps.
template <typename Variant>
QuantPlan in_parts(Variant v, const QuantShape& s, uint64_t parts) {
  QuantPlan plan = in_tiles(v, s, v.BM, v.BN);
  if (s.may_split && !s.sorted && parts > 1) {
    constexpr uint32_t unit = 128;
    plan.k_split = ceil_div(ceil_div(s.k, parts), unit) * unit;
    plan.splits = ceil_div(s.k, plan.k_split);
    v.SPLIT = plan.splits > 1;
    plan.kernel = v;
  }
  return plan;
}

bool takes_matrices(const Target& gpu, const Typed& s);
// `sixteens`: of outputs per workgroup; 0: as many as occupy the device.
QuantPlan
plan_matrices(const Target& gpu, const QuantShape& s, uint32_t sixteens = 0);

bool takes_dot_row(const Target& gpu, const Typed& s);
QuantPlan plan_dot_row(const Target& gpu, const QuantShape& s);

// Outputs of a subgroup of qmv: many, few, or few of rows that a workgroup
// shares.
enum class Outputs { many, few, shared };
QuantPlan plan_matvec(
    const Target& gpu,
    const QuantShape& s,
    std::optional<Outputs> outputs = {});
QuantPlan plan_vecmat(const Target& gpu, const QuantShape& s);

bool takes_skinny(const Target& gpu, const Typed& s);
QuantPlan plan_skinny(const Target& gpu, const QuantShape& s);

bool loads_fragments(const Target& gpu, const Typed& s);
QuantPlan plan_fragments(const Target& gpu, const QuantShape& s);
QuantPlan plan_sorted_fragments(const Target& gpu, const QuantShape& s);

bool loads_tall(const Target& gpu, const Typed& s);
// Most rows of a tile of qmm_tall. Codes of bytes take more registers.
inline uint32_t tall_rows(const QuantShape& s) {
  return s.common.BITS == 4 ? 128 : 96;
}
// A tile of `rows` rows by 128 columns, shared by four subgroups, or by 256,
// shared by eight.
QmmTallVariant tall_variant(
    const Target& gpu,
    const QuantShape& s,
    uint32_t rows,
    bool wide = false);
// As many parts of k as the cores hold at once.
uint32_t
filling_parts(const Target& gpu, const QuantShape& s, const QmmTallVariant& v);

constexpr Tile tiles_of_weights[] = {
    {128, 256, 2, 4},
    {128, 128, 2, 4},
    {64, 128, 2, 4},
    {64, 64, 2, 2},
    {32, 64, 1, 4}};
QuantPlan plan_weights(const Target& gpu, const Typed& s, const Tile& t);

constexpr Tile tiles_of_codes[] = {
    {64, 128, 1, 4},
    {32, 128, 1, 4},
    {32, 64, 1, 2},
    {16, 64, 1, 2},
    {128, 128, 2, 4}}; // not estimated
// Matrices that multiply codes by rows of x; without bf16 matrices, those of
// f16 with packed rows (quant/half_rows.h).
MatrixUnits units_of(const Target& gpu, const Typed& s);
bool takes_codes(const Target& gpu, const Typed& s);
QuantPlan
plan_codes(const Target& gpu, const Typed& s, const TileParts* form = nullptr);

struct ScalarForm {
  std::optional<bool> large, fours; // tiles; loads of four items
};
QuantPlan
plan_tiled(const Target& gpu, const Typed& s, const ScalarForm& form = {});

} // namespace mlx::core::vulkan::quant
