// Plans of linear algebra.
#include <doctest/doctest.h>

#include "ops/linalg/plan.h"
#include "variants/variants.h"

using namespace mlx::core::vulkan;

TEST_CASE(
    "panels of linear algebra fit the shared memory and hold their rows") {
  auto devices = device_table();
  devices.push_back(least_device());
  for (auto& caps : devices) {
    for (uint32_t rows : {1, 64, 65, 128, 129, 224, 225, 100000}) {
      auto lu = lu_panel_variant(rows, caps);
      auto qr = qr_panel_variant(rows, caps);
      CHECK(lu.shared_memory() <= caps.shared_memory);
      CHECK(qr.shared_memory() <= caps.shared_memory);
      CHECK((lu.ROWS == 0 || lu.ROWS >= rows));
      CHECK((qr.ROWS == 0 || qr.ROWS >= rows));
      CHECK(lu.WG_SIZE <= caps.max_workgroup_size);
    }
    JacobiVariant most{
        .MOST = jacobi_rows(caps), .SYMMETRIC = false, .VECTORS = true};
    CHECK(most.shared_memory() <= caps.shared_memory);
  }
  CHECK(jacobi_rows(least_device()) == 32);
}
