#include <initializer_list>

#include "kernels/fft/fft.h"
#include "kernels/hadamard.h"
#include "kernels/rope.h"
#include "kernels/router.h"
#include "kernels/rows.h"
#include "kernels/sort.h"
#include "kernels/sort_ranks.h"
#include "ops/fft/plan.h"
#include "ops/rows/plan.h"
#include "runtime/rewrite_variants.h"
#include "variants/variants.h"

namespace mlx::core::vulkan {

namespace {

// Items of one lane and of several; heads, the hidden states of Qwen3-0.6B and
// 8B, and the latter's inner ones, which registers do not hold.
constexpr uint32_t lengths[] = {4, 64, 128, 1024, 4096, 12288};

void add_exponentials(VariantSet& set, Type t, bool vec) {
  for (uint32_t n : lengths) {
    auto [lanes, chunks] = row_team(n);
    set.add(
        SoftmaxVariant{.T = t, .LANES = lanes, .CHUNKS = chunks, .VEC = vec});
    set.add(LogSumExpVariant{
        .T = t,
        .LANES = lanes,
        .VEC = vec,
        .PARTS = row_parts(1, n).parts > 1});
  }
  set.add(LogSumExpVariant{.T = t, .LANES = 256, .VEC = vec, .PARTS = true});
  set.add(LogSumExpJoinVariant{.T = t, .LANES = 32});
  for (int lanes : {1, 16, 256}) {
    set.add(CrossEntropyVariant{.T = t, .LANES = lanes, .VEC = vec});
    set.add(CrossEntropyVjpVariant{.T = t, .LANES = lanes, .VEC = vec});
  }
}

// Routers of layers of 64 to 512 experts.
void add_routers(VariantSet& set, Type t, bool vec) {
  for (uint32_t n : {64, 128, 256, 512}) {
    for (uint64_t rows : {1, 256}) {
      auto [lanes, chunks] = softmax_team(rows, n);
      set.add(RouterVariant{t, lanes, chunks, vec});
    }
  }
}

void add_norms(VariantSet& set, Type t, bool layer, bool vec) {
  for (uint32_t n : lengths) {
    auto [lanes, chunks] = row_team(n);
    NormVariant v{
        .T = t,
        .LAYER = layer,
        .WEIGHT = true,
        .BIAS = layer,
        .LANES = lanes,
        .CHUNKS = chunks,
        .VEC = vec};
    set.add(v);
    if (n == 1024 && t == Type::f32) {
      v.BIAS = false;
      set.add(v);
      v.WEIGHT = false;
      set.add(v);
      v.BIAS = layer;
      set.add(v);
    }
  }
  for (uint32_t n : {512, 2048, 12288}) {
    auto team = plan_norm_vjp(1, n).team;
    NormVjpVariant v{
        .T = t,
        .LAYER = layer,
        .WEIGHT = true,
        .LANES = team.lanes,
        .CHUNKS = team.chunks,
        .VEC = vec};
    set.add(v);
    if (n == 2048) {
      v.WEIGHT = false;
      set.add(v);
    }
  }
}

void add_rope(VariantSet& set, Type t) {
  for (int bits = 0; bits < 16; ++bits) {
    RopeVariant v{
        .T = t,
        .TRADITIONAL = bool(bits & 1),
        .FREQS = bool(bits & 2),
        .VEC = bool(bits & 4),
        .FORWARD = bool(bits & 8),
        .LARGE = false};
    set.add(v);
    if (v.TRADITIONAL == v.VEC && v.FREQS == v.FORWARD) {
      v.LARGE = true;
      set.add(v);
    }
  }
  for (bool vec : {false, true}) {
    for (uint32_t D : {128u, 256u, most_head_dims}) {
      set.add(rope_cache(t, D, 0, vec));
    }
    for (uint32_t D : {64, 256}) { // normed rows
      set.add(rope_cache(t, D, row_team(D).lanes, vec));
    }
  }
}

// Of rows of n items in `ndim` dimensions: tiles, and merges where they are
// several.
void add_sorts(VariantSet& set, Type t, int64_t n, int ndim) {
  for (bool arg : {false, true}) {
    SortTile tile = sort_tile(n, size_of(t), arg);
    bool merges = n > tile.size();
    if (merges) {
      set.add(SortRanksVariant{t, arg});
    }
    SortVariant v{
        .T = t,
        .ARG = arg,
        .MERGE = false,
        .LAST = !merges,
        .WG = tile.lanes * tile.rows,
        .ITEMS = tile.items,
        .NDIM = ndim,
        .ROWS = tile.rows};
    set.add(v);
    if (merges) {
      v.MERGE = true;
      v.NDIM = 1;
      for (bool last : {false, true}) {
        v.LAST = last;
        set.add(v);
      }
    }
  }
}

void add_radix_sorts(VariantSet& set, const Caps& caps) {
  Target target = asked(caps, {.radix_items = 1});
  for (Type t : {Type::f32, Type::bf16, Type::i32, Type::u8}) {
    for (bool arg : {false, true}) {
      auto plan = plan_radix(target, t, arg, 1, 1 << 24);
      for (uint32_t digit = 0; plan && digit < plan->digits; ++digit) {
        RadixVariant v = radix_scatter(*plan, digit);
        set.add(v);
        set.add(radix_count(v));
        set.add(radix_prefix(v));
      }
    }
  }
}

void add_hadamards(VariantSet& set) {
  for (Type t : float_types) {
    for (Type u : {t, Type::f32}) {
      for (uint tile : {1024, 4096}) {
        set.add(HadamardVariant{
            .T = t, .U = u, .M = 1, .STEP = "Tiles", .TILE = tile});
      }
    }
  }
  for (int m : {12, 20, 28}) {
    for (Type t : {Type::f32, Type::f16}) {
      set.add(HadamardVariant{
          .T = t, .U = t, .M = m, .STEP = "Rows", .TILE = uint(m) * 128});
      set.add(HadamardVariant{
          .T = Type::f32, .U = t, .M = m, .STEP = "Across", .TILE = 1});
    }
  }
}

void add_radix_ffts(VariantSet& set, const Caps& caps) {
  auto add = [&](Type t, Type u, FftRadixVariant v) {
    v.T = t;
    v.U = u;
    set.add(v);
  };
  for (uint64_t inner : {1, 3}) {
    for (uint64_t outer : {1, 64, 100000}) {
      std::vector<uint32_t> extents{
          400, 480, 600, 729, 1000, 1536, 3000, 480000};
      for (int bits = 1; bits <= 21; ++bits) {
        extents.push_back(uint32_t(1) << bits);
      }
      for (uint32_t extent : extents) {
        auto lengths = plan_radix_lengths(caps, outer, extent, inner);
        uint64_t rows = 1;
        for (uint32_t n : lengths) {
          bool last = rows * n == extent;
          auto v = plan_radix_pass(
              caps, outer * inner * (extent / n), n, last, rows, inner);
          add(Type::c64, Type::c64, v);
          if (rows == 1) {
            add(Type::f32, Type::c64, v);
          }
          if (last) {
            add(Type::c64, Type::f32, v);
          }
          rows *= n;
        }
      }
    }
  }
}

void add_ffts(VariantSet& set, const Caps& caps) {
  add_radix_ffts(set, caps);
  for (uint32_t extent : {143, 1001, 11 * 13 * 17 * 19}) {
    FftPlan plan = plan_fft(caps, 64, extent);
    for (size_t pass = 0; pass < plan.lengths.size(); ++pass) {
      bool last = pass + 1 == plan.lengths.size();
      for (auto [t, u] : std::initializer_list<std::pair<Type, Type>>{
               {Type::c64, Type::c64},
               {pass == 0 ? Type::f32 : Type::c64, Type::c64},
               {Type::c64, last ? Type::f32 : Type::c64}}) {
        set.add(FftVariant{
            .T = t, .U = u, .ITEMS = plan.items, .CAREFUL = pass > 0});
      }
    }
  }
  for (Type t : {Type::f32, Type::c64}) {
    set.add(ChirpVariant{.T = t, .U = Type::c64, .STEP = "Spread"});
    set.add(ChirpVariant{.T = Type::c64, .U = t, .STEP = "Gathered"});
  }
  for (const char* step : {"Chirp", "Product"}) {
    set.add(ChirpVariant{.T = Type::c64, .U = Type::c64, .STEP = step});
  }
}

} // namespace

void add_row_variants(VariantSet& set, const Caps& caps) {
  for (Type t : float_types) {
    for (bool vec : {false, true}) {
      add_exponentials(set, t, vec);
      add_routers(set, t, vec);
      add_norms(set, t, false, vec);
      add_norms(set, t, true, vec);
    }
    add_rope(set, t);
  }
  for (Type t :
       {Type::f32, Type::f64, Type::bf16, Type::i64, Type::bool_, Type::c64}) {
    add_sorts(set, t, 1000, 1);
    add_sorts(set, t, 151936, 1);
  }
  for (Type t : {Type::f32, Type::u8}) {
    for (int64_t n : {3, 16, 128}) {
      add_sorts(set, t, n, 2);
      add_sorts(set, t, n, 16);
    }
  }
  add_radix_sorts(set, caps);
  add_hadamards(set);
  add_ffts(set, caps);
  Caps little = caps;
  little.shared_memory = 16384;
  add_ffts(set, little);
}

} // namespace mlx::core::vulkan
