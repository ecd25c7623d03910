#include <doctest/doctest.h>

#include <initializer_list>

#include "null/devices.h"
#include "ops/conv/plan.h"
#include "ops/fft/plan.h"

using namespace mlx::core::vulkan;

namespace {

Caps matrix_gpu() {
  Caps c = usable_gpu("matrices");
  c.core_count = 132;
  c.shared_memory = 49152;
  c.cooperative_matrix = c.coopmat_f16 = c.coopmat_bf16 = true;
  return c;
}

// A 3 x 3 convolution of two axes.
ConvProblem layer(uint64_t rows, uint32_t outputs, uint32_t channels, Type t) {
  uint32_t items = channels % 8 ? 1 : 8;
  return {
      .type = t,
      .rows = rows,
      .group_outputs = outputs,
      .channels = channels,
      .taps = 9,
      .tap_sum = 6,
      .axes = 2,
      .x_items = items,
      .w_items = items,
      .y_items = items};
}

ConvMatrixVariant matrices(const ConvProblem& p) {
  return std::get<ConvMatrixVariant>(plan_conv(matrix_gpu(), p)->variant);
}

} // namespace

TEST_CASE("convolutions of 16-bit floats take matrix units, in fitting tiles") {
  ConvMatrixVariant v = matrices(layer(1 << 19, 128, 64, Type::bf16));
  CHECK(v.BM == 128);
  CHECK(v.BN == 128);
  CHECK((v.VA && v.VB && v.VY));
  CHECK(v.WRAPS == 1);
  CHECK(v.BK == 64);
  CHECK(v.shared_memory() <= matrix_gpu().shared_memory);

  v = matrices(layer(1 << 19, 64, 8, Type::f16));
  CHECK(v.BM == 64);
  CHECK(v.WRAPS == 8); // 64 channels of a tile pass eight taps of eight

  v = matrices(layer(256, 512, 512, Type::bf16));
  CHECK(v.BM == 64);

  v = matrices(layer(2048, 640, 640, Type::bf16)); // 80 tiles for 132 cores
  CHECK(v.BM == 128);

  v = matrices(layer(1 << 19, 20, 9, Type::bf16));
  CHECK(v.BK == 32);
  CHECK(!(v.VA || v.VB || v.VY));

  auto plan = plan_conv(matrix_gpu(), layer(1 << 19, 128, 64, Type::f32));
  auto tile = std::get<ConvTileVariant>(plan->variant);
  CHECK(tile.BM == 64);
  CHECK((tile.VA && tile.VB && tile.PREFETCH));
  CHECK(plan->tiles_m == 8192);
  CHECK(plan->tiles_n == 2);
}

TEST_CASE("convolutions of whole steps of channels take known fragments") {
  Caps gpu = matrix_gpu();
  gpu.known_fragments = true;
  auto plan = [&](const ConvProblem& p) { return *plan_conv(gpu, p); };
  auto fragments = [&](const ConvProblem& p) {
    auto chosen = plan(p);
    return std::get_if<ConvFragmentsVariant>(&chosen.variant) != nullptr;
  };
  ConvProblem p = layer(1 << 19, 128, 64, Type::bf16);
  auto v = std::get<ConvFragmentsVariant>(plan(p).variant);
  CHECK((v.BN == 128 && v.BF16_EXT && v.COOPMAT && !v.EMULATED && !v.SPLIT));
  CHECK(v.shared_memory() <= gpu.shared_memory);
  CHECK((plan(p).splits == 1 && plan(p).k_split == 576));
  v = std::get<ConvFragmentsVariant>(
      plan(layer(8192, 136, 320, Type::f16)).variant);
  CHECK((v.BN == 128 && v.F16_EXT));
  v = std::get<ConvFragmentsVariant>(
      plan(layer(8192, 120, 320, Type::f16)).variant);
  CHECK((v.BM == 64 && v.BN == 64));

  // Sums in parts of whole steps, all of them with something, only where tiles
  // leave most cores without one.
  CHECK(plan(layer(512, 1280, 1280, Type::bf16)).splits == 1);
  p = layer(128, 1280, 1280, Type::bf16);
  auto few = plan(p);
  CHECK(few.splits == 6);
  CHECK(few.k_split % v.step == 0);
  CHECK((few.splits - 1) * few.k_split < p.depth());
  CHECK(few.splits * few.k_split >= p.depth());
  CHECK(few.workgroups(p) <= gpu.core_count);
  CHECK(std::get<ConvFragmentsVariant>(few.variant).SPLIT);
  p.channels = 64; // too short to share
  CHECK(plan(p).splits == 1);
  p.channels = 1280;
  p.may_split = false;
  CHECK(plan(p).splits == 1);

  for (auto change : std::initializer_list<void (*)(ConvProblem&)>{
           [](ConvProblem& p) { p.channels = 48; },
           [](ConvProblem& p) { p.group_outputs = 132; },
           [](ConvProblem& p) { p.group_outputs = 56; },
           [](ConvProblem& p) { p.rows = 60; },
           [](ConvProblem& p) { p.x_items = 4; },
           [](ConvProblem& p) { p.w_items = 1; },
           [](ConvProblem& p) { p.y_items = 1; },
           [](ConvProblem& p) { p.taps = 225; },
           [](ConvProblem& p) { p.channels = 1 << 22; },
           [](ConvProblem& p) { p.type = Type::f32; }}) {
    p = layer(1 << 19, 128, 64, Type::bf16);
    CHECK(fragments(p));
    change(p);
    CHECK_FALSE(fragments(p));
  }
  CHECK_FALSE(
      plan_conv(matrix_gpu(), layer(1 << 19, 128, 64, Type::bf16))
          ->variant.index() == 0);
}

TEST_CASE("convolutions that tiles do not suit have none") {
  ConvProblem p = layer(4096, 128, 64, Type::f32);
  CHECK(plan_conv(matrix_gpu(), p));
  p.tap_sum = 33; // more than the bits that say which are inside
  CHECK(!plan_conv(matrix_gpu(), p));
  p = layer(4096, 8, 64, Type::f32);
  CHECK(!plan_conv(matrix_gpu(), p));
  // llvmpipe ends long loops.
  Caps software = usable_gpu("software", VK_PHYSICAL_DEVICE_TYPE_CPU);
  CHECK(plan_conv(software, layer(4096, 128, 64, Type::f32)));
  CHECK(!plan_conv(software, layer(4096, 128, 1024, Type::f32)));
}

TEST_CASE("Fourier transforms of small factors take few passes that fit") {
  Caps little = usable_gpu("little");
  little.shared_memory = 16384;
  little.max_workgroup_size = 128;
  for (const Caps& caps : {matrix_gpu(), little}) {
    for (uint64_t inner : {1, 5}) {
      for (int bits = 1; bits <= 30; ++bits) {
        uint32_t extent = uint32_t(1) << bits;
        auto lengths = plan_radix_lengths(caps, 1, extent, inner);
        CHECK(lengths.size() <= (bits <= 20 ? 2 : 3));
        uint64_t rows = 1;
        for (uint32_t n : lengths) {
          bool last = rows * n == extent;
          auto v =
              plan_radix_pass(caps, extent / n * inner, n, last, rows, inner);
          CHECK(v.R1 * v.R2 * v.R3 * v.R4 == n);
          CHECK(v.shared_memory() <= caps.shared_memory);
          CHECK(v.lanes() * v.LINES <= caps.max_workgroup_size);
          CHECK((v.LAST == last && v.LINES >= 1));
          rows *= n;
        }
        // None: lines whose number does not fit 32 bits.
        CHECK((lengths.empty() ? bits + inner > 30 : rows == extent));
      }
    }
  }
  CHECK(plan_radix_lengths(matrix_gpu(), 1, 1 << 12, 1).size() == 1);
  CHECK(plan_radix_lengths(matrix_gpu(), 64, 1 << 18, 1).size() == 2);
  CHECK(plan_radix_lengths(matrix_gpu(), 1, 1000, 1).size() == 1);
  CHECK(plan_radix_lengths(matrix_gpu(), 1, 480000, 1).size() == 2);
  CHECK(plan_radix_lengths(matrix_gpu(), 1, 1001, 1).empty());
  // 64 bytes of neighbouring lines.
  CHECK(plan_radix_pass(matrix_gpu(), 1 << 15, 512, false, 1, 1).LINES == 8);
}
