#include "drivers/cost_cases.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/attention/ranges.h"
#include "kernels/quant/half_rows.h"
#include "kernels/quant/quantize.h"
#include "ops/attention/plan.h"
#include "ops/gemm/plan.h"
#include "ops/quant/plan.h"
#include "ops/rows/plan.h"
#include "runtime/rewrite_variants.h"

namespace mlx::core::vulkan {

namespace {

struct Model {
  const char* name;
  uint32_t layers, hidden, heads, kv_heads, inner;
  uint32_t experts = 0, active = 0; // of a mixture
};
constexpr uint32_t head_dim = 128, vocabulary = 151936;
constexpr Model models[] = {
    {"0.6B", 28, 1024, 16, 8, 3072},
    {"8B", 36, 4096, 32, 8, 12288},
    {"30B-A3B", 48, 2048, 32, 4, 768, 128, 8}};
constexpr uint32_t prompts[] = {16, 128, 512, 2048};
constexpr uint32_t contexts[] = {1024, 8192};

double parts(double n, double part) {
  return std::ceil(n / part);
}

// What main loops do: for lanes that share k's, one count of steps.
struct Work {
  double lane_macs = 0;
  std::function<Loops(uint32_t)> loops = [](uint32_t) { return Loops{}; };
  double slices = 1;
};

Work tiles(double macs, uint32_t workgroup, double steps) {
  return {macs / workgroup, [=](uint32_t) { return Loops{steps}; }};
}

// qmv, qmv_fused and qmv_experts: lanes take chunks of k by turns, and
// subgroups or workgroups some outputs at a time.
Work work_of(const QmvVariant& v, double k) {
  if (v.COOPMAT) { // every output has a column for each of 16 rows
    double step = v.GROUP * v.TURNS, subgroups = v.WG / v.SG;
    double steps = v.BLOCK / 16 * parts(k, step * subgroups);
    return tiles(16 * 16 * step * subgroups, v.WG, steps);
  }
  auto loops = [v, k](uint32_t subgroup) {
    double lanes = v.WHOLE_WORKGROUP ? v.WG : subgroup;
    double passes = v.BLOCK / v.OUTS / (double(v.WG) / lanes);
    return Loops{passes * parts(k / v.CHUNK, lanes * v.TURNS), passes};
  };
  double digits = v.INT_DOT ? 3 : 1; // products of an item
  return {digits * v.ROWS * v.OUTS * v.CHUNK * v.TURNS, loops};
}
Work work_of(const QvmVariant& v, double) {
  return {};
}
Work work_of(const QmmDotVariant&, double) {
  return {};
}
Work work_of(const QmmVariant& v, double k) {
  double depth = 32;
  uint32_t workgroup = v.BM / v.TM * (v.BN / v.TN);
  return tiles(depth * v.BM * v.BN, workgroup, parts(k, depth));
}
Work work_of(const QmmCoopmatVariant& v, double k) {
  double depth = 32;
  uint32_t workgroup = v.WM * v.WN * v.units.lanes;
  return tiles(depth * v.BM * v.BN, workgroup, parts(k, depth));
}
Work work_of(const QmmSortedVariant& v, double k) {
  double depth = std::max<double>(v.BK, v.GROUP);
  uint32_t workgroup = v.WM * v.WN * v.units.lanes;
  return tiles(depth * v.BM * v.BN, workgroup, parts(k, depth));
}
Work work_of(const QmmSkinnyVariant& v, double k) {
  double depth = 64.0 * v.DEPTH * v.WK;
  uint32_t workgroup = v.WN * v.WK * v.SG;
  return tiles(depth * v.rows() * v.outputs(), workgroup, parts(k, depth));
}
Work work_of(const QmmFragmentsVariant& v, double k) {
  double depth = 128.0 * v.DEPTH * v.WK;
  uint32_t workgroup = v.WN * v.WK * v.SG;
  return tiles(depth * v.rows() * v.outputs(), workgroup, parts(k, depth));
}
Work work_of(const QmmTallVariant& v, double k) {
  uint32_t workgroup = v.WM * v.WN * v.SG;
  return tiles(double(v.depth) * v.BM * v.BN, workgroup, parts(k, v.depth));
}
Work work_of(const TileVariant& v, double k) {
  uint32_t workgroup = v.BM / v.TM * (v.BN / v.TN);
  return tiles(double(v.BK) * v.BM * v.BN, workgroup, parts(k, v.BK));
}
Work work_of(const CoopmatVariant& v, double k) {
  double depth = 32;
  uint32_t workgroup = v.WM * v.WN * v.units.lanes;
  return tiles(depth * v.BM * v.BN, workgroup, parts(k, depth));
}
Work work_of(const FragmentsVariant& v, double k) {
  uint32_t workgroup = v.WM * v.WN * v.SG;
  return tiles(double(v.depth) * v.BM * v.BN, workgroup, parts(k, v.depth));
}
Work work_of(const SkinnyVariant& v, double k) {
  double depth = 64.0 * v.WK;
  uint32_t workgroup = v.WN * v.WK * v.SG;
  return tiles(depth * v.rows() * v.columns(), workgroup, parts(k, depth));
}
Work work_of(const DotVariant& v, double k) {
  double items = v.VA ? 16 / size_of(v.T) : 1;
  double macs = v.ROWS * v.NV * items;
  double steps = parts(k, v.WG * items);
  return {macs, [=](uint32_t) { return Loops{steps}; }};
}
Work work_of(const AxpyVariant&, double) {
  return {};
}

double key_steps(const AttentionProblem& p, uint32_t bq, uint32_t bk) {
  double tiles = parts(p.queries, bq), steps = 0;
  for (double i = 0; i < tiles; ++i) {
    double keys = p.causal ? p.keys - p.queries + (i + 1) * bq : p.keys;
    steps += parts(std::min<double>(keys, p.keys), bk);
  }
  return steps / tiles;
}
Work work_of(const PrefillVariant& v, const AttentionProblem& p) {
  Work w = tiles(
      double(v.BQ) * v.BK * (p.dim + p.value_dim),
      128,
      key_steps(p, v.BQ, v.BK));
  w.slices = parts(p.dim, 32);
  return w;
}
Work work_of(const PrefillCoopmatVariant& v, const AttentionProblem& p) {
  uint32_t rows = v.units.lanes < 32 ? 8 : 16, keys = v.BK;
  return tiles(
      double(v.BQ) * keys * (p.dim + p.value_dim),
      v.BQ / rows * v.units.lanes,
      key_steps(p, v.BQ, keys));
}
Work work_of(const PrefillFragmentsVariant& v, const AttentionProblem& p) {
  return tiles(
      double(v.queries()) * v.BK * (p.dim + p.value_dim),
      v.SUBGROUPS * v.SG,
      key_steps(p, v.queries(), v.BK));
}

class Collector {
 public:
  Collector(const Caps& caps, const CostFormat& format)
      : caps_(caps), format_(format) {}

  // Later cases belong to this model and part.
  void begin(std::string model, std::string part) {
    model_ = std::move(model);
    part_ = std::move(part);
  }
  // A layer whose weights are (n, k), by m rows.
  void product(std::string name, uint32_t times, QuantShape s);
  QuantShape shape(uint32_t m, uint32_t n, uint32_t k) const {
    return {.common = {weights(), BATCH_ONE}, .m = m, .n = n, .k = k};
  }
  void gemm(std::string name, uint32_t times, QuantShape s);
  // One row by matrices of several layers, or by gate and up of `n` each.
  void siblings(
      std::string name,
      uint32_t times,
      uint32_t k,
      std::vector<uint32_t> outputs,
      bool norm,
      bool gate);
  void experts(const Model& model, uint32_t tokens);
  // What packs rows of x first, if `plan` wants that.
  void pack(
      std::string name,
      uint32_t times,
      const QuantPlan& plan,
      double m,
      double k);
  void attention(std::string name, uint32_t times, AttentionProblem p);

  std::vector<CostCase> found;

 private:
  FormatVariant weights() const {
    return {format_.type, quant_modes[0].format(4, format_.group), true};
  }
  double weight_bytes(double n, double k) const {
    return n * k / 2 + n * k / format_.group * 4;
  }
  template <typename V>
  void add(
      std::string name,
      uint32_t times,
      const V& variant,
      uint64_t groups,
      double bytes,
      double flops,
      const Work& work,
      const char* why = "");

  const Caps& caps_;
  CostFormat format_;
  std::string model_, part_;
};

template <typename V>
void Collector::add(
    std::string name,
    uint32_t times,
    const V& variant,
    uint64_t groups,
    double bytes,
    double flops,
    const Work& work,
    const char* why) {
  VariantSet set;
  set.add(variant);
  found.push_back(
      {.model = model_,
       .part = part_,
       .name = std::move(name),
       .variant = set.all()[0],
       .times = times,
       .groups = groups,
       .bytes = bytes,
       .flops = flops,
       .loops = work.loops,
       .lane_macs = work.lane_macs,
       .slices = work.slices,
       .why = why});
}

void Collector::pack(
    std::string name,
    uint32_t times,
    const QuantPlan& plan,
    double m,
    double k) {
  auto* v = std::get_if<QmmSortedVariant>(&plan.kernel);
  if (v && v->units.halves) {
    double invocations = m * k / v->GROUP * HALF_ROWS_LANES;
    uint64_t groups = parts(invocations, HALF_ROWS_WG);
    HalfRowsVariant kernel{v->T, v->GROUP};
    add(name + ", pack", times, kernel, groups, 4 * m * k, 0, {});
  }
}

void Collector::gemm(std::string name, uint32_t times, QuantShape s) {
  GemmProblem p{
      .type = format_.type,
      .m = s.m,
      .n = s.n,
      .k = s.k,
      .a = {s.k, 1},
      .b = {1, s.k},
      .a_aligned = true,
      .b_aligned = true};
  auto plan = plan_gemm(caps_, p);
  double m = s.m, n = s.n, k = s.k;
  double sums = plan.splits > 1 ? 8.0 * plan.splits * m * n : 0;
  double bytes = 2 * (m * k + n * k + m * n) + sums;
  double depth = plan.splits > 1 ? plan.k_split : k;
  std::visit(
      [&](auto& v) {
        add(name,
            times,
            v,
            plan.groups(),
            bytes,
            2 * m * n * k,
            work_of(v, depth));
      },
      plan.variant);
}

void Collector::product(std::string name, uint32_t times, QuantShape s) {
  if (dequantizes_first(caps_, s, -1)) {
    double items = double(s.n) * s.k;
    add(name + ", dequantize",
        times,
        DequantizeVariant{weights()},
        parts(items / 8, DEQUANTIZE_WG * DEQUANTIZE_UNITS),
        weight_bytes(s.n, s.k) + 2 * items,
        0,
        {});
    gemm(name, times, s);
    return;
  }
  auto plan = plan_quant(caps_, s);
  double m = s.m, n = s.n, k = s.k;
  double sums = plan.splits > 1 ? 8.0 * plan.splits * m * n : 0;
  double depth = plan.splits > 1 ? plan.k_split : k;
  pack(name, times, plan, m, k);
  std::visit(
      [&](auto& v) {
        add(name,
            times,
            v,
            uint64_t(plan.m_tiles) * plan.n_tiles * plan.splits,
            weight_bytes(n, k) + 2 * m * (n + k) + sums,
            2 * m * n * k,
            work_of(v, depth),
            plan.why);
      },
      plan.kernel);
}

void Collector::siblings(
    std::string name,
    uint32_t times,
    uint32_t k,
    std::vector<uint32_t> outputs,
    bool norm,
    bool gate) {
  auto plan = plan_quant(caps_, shape(1, outputs[0], k));
  auto& v = std::get<QmvVariant>(plan.kernel);
  auto fused =
      gate ? gated_matvec(v, GATE_SILU) : fused_matvec(v, outputs.size() > 1);
  uint32_t block = gate ? fused.BLOCK / 2 : fused.BLOCK;
  uint64_t groups = 0;
  double n = 0;
  for (uint32_t o : outputs) {
    groups += parts(o, block);
    n += gate ? 2.0 * o : o;
  }
  // As the rule "norm" of runtime/rewrite_matvec.cpp.
  constexpr uint64_t most_norming_bytes = 4 << 20;
  auto normed = normed_matvec(fused, k, row_team(k).lanes);
  bool reads = v.COOPMAT || groups * 4 * k <= most_norming_bytes;
  if (norm && 2 * k <= most_normed_bytes && reads &&
      fits_registers(caps_, normed) && fits_shared_memory(caps_, normed)) {
    fused = normed;
  }
  if (!fits_registers(caps_, fused) || !fits_shared_memory(caps_, fused)) {
    for (uint32_t o : outputs) { // each by itself
      product(name, gate ? 2 * times : times, shape(1, o, k));
    }
    return;
  }
  add(name,
      times,
      fused,
      groups,
      weight_bytes(n, k) + 2 * (n + k),
      2 * n * k,
      work_of(fused, k),
      plan.why);
}

void Collector::experts(const Model& model, uint32_t tokens) {
  for (bool down : {false, true}) {
    uint32_t n = down ? model.hidden : model.inner;
    uint32_t k = down ? model.inner : model.hidden;
    auto s = shape(1, n, k);
    s.common.BATCH = BATCH_GATHER;
    s.batch = model.active * tokens;
    s.matrices = model.experts;
    s.sorted = tokens > 1;
    auto plan = plan_quant(caps_, s);
    std::string name = down ? "experts' down" : "experts' gate, up";
    double used = std::min<double>(s.batch, model.experts);
    double bytes = used * weight_bytes(n, k) + 2.0 * s.batch * (n + k);
    double flops = 2.0 * s.batch * n * k;
    auto* v = std::get_if<QmvVariant>(&plan.kernel);
    std::optional<ExpertVariant> form;
    if (v) {
      form =
          down ? mixed_experts(*v, model.active) : gated_experts(*v, GATE_SILU);
    }
    if (form && fits_registers(caps_, *form)) {
      uint32_t sets = down ? 1 : 2;
      uint64_t rows = down ? tokens : s.batch;
      uint64_t groups = parts(n, form->part()) * rows;
      add(name,
          model.layers,
          *form,
          groups,
          sets * bytes,
          sets * flops,
          work_of(*form, k));
      continue;
    }
    // Experts have the same number of rows; each ends with a partial tile.
    double each = double(s.batch) / used;
    uint64_t groups = plan.sorted
        ? used * parts(each, plan.tile_height) * plan.n_tiles
        : uint64_t(plan.m_tiles) * plan.n_tiles * s.batch;
    uint32_t each_layer = model.layers * (down ? 1 : 2);
    pack(name, each_layer, plan, down ? s.batch : tokens, k);
    std::visit(
        [&](auto& kernel) {
          add(name,
              each_layer,
              kernel,
              groups,
              bytes,
              flops,
              work_of(kernel, k),
              plan.why);
        },
        plan.kernel);
  }
}

void Collector::attention(
    std::string name,
    uint32_t times,
    AttentionProblem p) {
  p.type = format_.type;
  p.dim = p.value_dim = head_dim;
  p.alignment = 16;
  p.causal = p.queries > 1;
  double dims = p.dim + p.value_dim, q = p.queries;
  double rows = double(p.heads) * q, kv_rows = double(p.kv_heads) * p.keys;
  double bytes = 2 * dims * (kv_rows + rows);
  double keys = p.causal ? p.keys - (q - 1) / 2 : p.keys;
  double flops = 2 * rows * keys * dims;
  if (uses_decode(caps_, p)) {
    auto plan = plan_decode(caps_, p);
    auto& v = plan.kernel;
    double unit = double(v.WG) / v.TPK * v.KU;
    double steps = parts(plan.splits > 1 ? plan.split_keys : p.keys, unit);
    Work work = tiles(v.ROWS * unit * dims, v.WG, steps);
    uint64_t groups = uint64_t(plan.groups(p)) * plan.splits;
    add(name, times, v, groups, bytes, flops, work, plan.why);
    return;
  }
  auto plan = plan_prefill(caps_, p);
  uint64_t groups = parts(q, plan.bq) * p.heads;
  if (plan.rest) {
    RangesVariant ranges{p.type, p.dim, p.value_dim};
    double read = 2 * (rows * p.dim + kv_rows * dims);
    add(name + ", ranges", times, ranges, 3 * p.kv_heads, read, 0, {});
  }
  std::visit(
      [&](auto& v) {
        Work work = work_of(v, p);
        add(name, times, v, groups, bytes, flops, work, plan.why);
      },
      plan.kernel);
}

void add_decode(Collector& c, const Model& m) {
  c.begin(m.name, "decode");
  uint32_t q = m.heads * head_dim, kv = m.kv_heads * head_dim;
  c.siblings("q, k, v", m.layers, m.hidden, {q, kv, kv}, true, false);
  c.siblings("o", m.layers, q, {m.hidden}, false, false);
  if (m.experts) {
    c.experts(m, 1);
  } else {
    c.siblings("gate, up", m.layers, m.hidden, {m.inner}, true, true);
    c.siblings("down", m.layers, m.inner, {m.hidden}, false, false);
  }
  c.product("head", 1, c.shape(1, vocabulary, m.hidden));
  for (uint32_t keys : contexts) {
    c.begin(m.name, "decode after " + std::to_string(keys));
    c.attention(
        "attention",
        m.layers,
        {.heads = m.heads, .kv_heads = m.kv_heads, .keys = keys});
  }
}

void add_prompt(Collector& c, const Model& m, uint32_t rows) {
  c.begin(m.name, "prompt of " + std::to_string(rows));
  uint32_t q = m.heads * head_dim, kv = m.kv_heads * head_dim;
  c.product("q", m.layers, c.shape(rows, q, m.hidden));
  c.product("k, v", 2 * m.layers, c.shape(rows, kv, m.hidden));
  c.product("o", m.layers, c.shape(rows, m.hidden, q));
  if (m.experts) {
    c.experts(m, rows);
  } else {
    c.product("gate, up", 2 * m.layers, c.shape(rows, m.inner, m.hidden));
    c.product("down", m.layers, c.shape(rows, m.hidden, m.inner));
  }
  c.attention(
      "attention",
      m.layers,
      {.heads = m.heads,
       .kv_heads = m.kv_heads,
       .queries = rows,
       .keys = rows});
}

} // namespace

std::vector<CostCase> cost_cases(const Caps& caps, const CostFormat& format) {
  Collector c(caps, format);
  for (auto& m : models) {
    add_decode(c, m);
    for (uint32_t rows : prompts) {
      add_prompt(c, m, rows);
    }
  }
  return std::move(c.found);
}

std::vector<CostCase> validation_cases(
    const Caps& caps,
    const CostFormat& format) {
  Collector c(caps, format);
  auto name = [](auto... sizes) {
    std::string text;
    ((text += (text.empty() ? "" : " ") + std::to_string(sizes)), ...);
    return text;
  };
  c.begin("", "quantized");
  for (auto [n, k] :
       {std::pair(12288u, 4096u), {4096u, 12288u}, {4096u, 4096u}}) {
    for (uint32_t m :
         {1u, 4u, 8u, 16u, 32u, 64u, 96u, 128u, 256u, 512u, 2048u}) {
      c.product(name(m, n, k), 1, c.shape(m, n, k));
    }
  }
  c.product(name(1u, 1024u, 4096u), 1, c.shape(1, 1024, 4096));
  c.product(name(1u, 2048u, 1024u), 1, c.shape(1, 2048, 1024));
  c.product(name(1u, vocabulary, 4096u), 1, c.shape(1, vocabulary, 4096));
  c.begin("", "dense");
  for (uint32_t m : {16u, 64u, 512u, 1024u, 2048u, 4096u}) {
    c.gemm(name(m, 4096u, 4096u), 1, c.shape(m, 4096, 4096));
  }
  c.gemm(name(512u, 12288u, 4096u), 1, c.shape(512, 12288, 4096));
  c.gemm(name(512u, 4096u, 12288u), 1, c.shape(512, 4096, 12288));
  c.gemm(name(8192u, 8192u, 8192u), 1, c.shape(8192, 8192, 8192));
  for (auto [heads, kv] : {std::pair(16u, 8u), {32u, 8u}, {32u, 4u}}) {
    c.begin("", "attention");
    for (uint32_t keys : {512u, 4096u, 32768u}) {
      c.attention(
          name(heads, kv, 1u, keys),
          1,
          {.heads = heads, .kv_heads = kv, .keys = keys});
    }
    for (uint32_t q : {512u, 2048u, 4096u}) {
      c.attention(
          name(heads, kv, q, q),
          1,
          {.heads = heads, .kv_heads = kv, .queries = q, .keys = q});
    }
  }
  return std::move(c.found);
}

} // namespace mlx::core::vulkan
