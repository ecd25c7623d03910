// Plans of linear algebra.
#include <doctest/doctest.h>

#include "ops/linalg/plan.h"
#include "variants/variants.h"

using namespace mlx::core::vulkan;

TEST_CASE(
    "panels of linear algebra fit the shared memory and hold their rows") {
  auto devices = device_table();
  devices.push_back(least_device());
  devices.push_back(least_device());
  devices.back().shader_float64 = true;
  for (auto& caps : devices) {
    for (Type t : {Type::f32, Type::f64}) {
      if (t == Type::f64 && !caps.shader_float64) {
        continue;
      }
      for (uint32_t rows : {1, 64, 65, 128, 129, 225, 2000, 8192, 100000}) {
        auto lu = lu_panel_variant(t, rows, caps);
        auto qr = qr_panel_variant(t, rows, caps);
        CHECK(qr.shared_memory() <= caps.shared_memory);
        if (rows <= lu_panel_rows(caps)) {
          CHECK(lu.ROWS * lu.WG_SIZE >= rows);
          CHECK(lu.WG_SIZE <= caps.max_workgroup_size);
          CHECK(lu.WIDE >= 2);
          CHECK(lu.shared_memory() <= caps.shared_memory);
        }
        if (rows <= qr_panel_rows(caps)) {
          CHECK(qr.ROWS * qr.LANES >= rows);
          CHECK(qr.LANES * qr.WIDE <= caps.max_workgroup_size);
          CHECK(qr.LANES * qr.WIDE >= 128); // whole subgroups
          CHECK(qr_panel_columns(t, rows, caps) >= 4);
        }
      }
      CHECK(is_small(t, 32, false, caps));
      CHECK(round_variant(t, caps).shared_memory() <= caps.shared_memory);
      CHECK(CholeskyVariant{t}.shared_memory() <= caps.shared_memory);
      CHECK(SolveVariant{.T = t}.shared_memory() <= caps.shared_memory);
    }
  }
  auto& least = devices.back();
  CHECK(!is_small(Type::f32, 64, false, least));
  CHECK(!is_small(Type::f64, 32, true, least));
  CHECK(round_variant(Type::f32, least).WIDE == 32);
  CHECK(round_variant(Type::f64, least).WIDE == 16);
  CHECK(!qr_panel_variant(Type::f64, 2000, least).STAGED);
  CHECK(qr_part(4096, 512) == 1024);
  CHECK(qr_part(4096, 513) == 4096);
}
