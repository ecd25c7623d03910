#include "kernels/dynamic_offset.h"
#include "kernels/gather_scatter.h"
#include "kernels/gather_scatter_axis.h"
#include "kernels/masked_scatter.h"
#include "kernels/searchsorted.h"
#include "variants/variants.h"

namespace mlx::core::vulkan {

namespace {

constexpr int max_ndim = 16, max_index_arrays = 20;

struct Combination {
  Type t;
  const char* function;
};
// Every way of common/atomics.glsl: by width, kind and function.
constexpr Combination combinations[] = {
    {Type::f32, "combine_Sum"},
    {Type::f16, "combine_Sum"},
    {Type::bf16, "combine_Sum"},
    {Type::bool_, "combine_Sum"},
    {Type::u8, "combine_Sum"},
    {Type::i32, "combine_Sum"},
    {Type::i64, "combine_Sum"},
    {Type::c64, "combine_Sum"},
    {Type::f32, "combine_Max"},
    {Type::i8, "combine_Max"},
    {Type::u16, "combine_Min"},
    {Type::f16, "combine_Prod"}};

bool is_sum(const Combination& c) {
  return std::string_view(c.function) == "combine_Sum";
}

void add_tuples(VariantSet& set) {
  for (int word : {1, 2, 4, 8, 16}) {
    for (Type i : {Type::i32, Type::u32}) {
      for (uint words : {1, 4}) {
        set.add(GatherVariant{.WORD = word, .I = i, .WORDS = words});
      }
    }
    set.add(ScatterVariant{.WORD = word, .I = Type::i32});
  }
  for (auto& c : combinations) {
    set.add(ScatterVariant{
        .T = c.t, .REDUCE = c.function, .SUM = is_sum(c), .I = Type::u32});
  }
  for (int nidx : {1, 2, 3, max_index_arrays}) {
    for (bool large : {false, true}) {
      set.add(GatherVariant{4, Type::i64, nidx, max_ndim, 2, large});
      set.add(GatherVariant{4, Type::u8, nidx, 2, max_ndim, large});
      set.add(ScatterVariant{
          Type::u8, "none", false, 4, Type::i64, nidx, max_ndim, 2, large});
      set.add(ScatterVariant{
          Type::i8,
          "combine_Max",
          false,
          0,
          Type::i16,
          nidx,
          2,
          max_ndim,
          large});
    }
  }
}

void add_axes(VariantSet& set) {
  for (int word : {1, 2, 4, 8}) {
    for (Type i : {Type::i32, Type::u32}) {
      for (int ndim : {1, 2}) {
        set.add(GatherAxisVariant{.WORD = word, .I = i, .NDIM = ndim});
      }
      set.add(ScatterAxisVariant{.WORD = word, .I = i, .NDIM = 2});
    }
  }
  for (bool large : {false, true}) {
    set.add(GatherAxisVariant{4, Type::i64, max_ndim, large});
    set.add(ScatterAxisVariant{
        Type::u8, "none", false, 4, Type::i64, max_ndim, large});
    for (auto& c : combinations) {
      if (is_sum(c)) {
        set.add(ScatterAxisVariant{
            c.t, c.function, true, 0, Type::i64, large ? 3 : max_ndim, large});
      }
    }
  }
}

} // namespace

void add_index_variants(VariantSet& set, const Caps&) {
  add_tuples(set);
  add_axes(set);
  for (int ndim : {1, max_ndim}) {
    for (bool large : {false, true}) {
      set.add(MaskedScatterVariant{true, 1, ndim, large});
      for (int word : {1, 2, 4, 8}) {
        set.add(MaskedScatterVariant{false, word, ndim, large});
      }
    }
  }
  for (Type t :
       {Type::f32, Type::f64, Type::bf16, Type::i64, Type::bool_, Type::c64}) {
    for (bool right : {false, true}) {
      for (int ndim : {1, 2, max_ndim}) {
        set.add(SearchSortedVariant{t, right, ndim});
      }
    }
  }
  for (Type i : {Type::u8, Type::i32, Type::u64, Type::i64}) {
    set.add(DynamicOffsetVariant{i});
  }
}

} // namespace mlx::core::vulkan
