#include <doctest/doctest.h>
#include "ops/quant/plan.h"

using namespace mlx::core::vulkan;
using Path = QuantPlan::Path;

namespace {

const QuantDevice big_gpu{32, 132, false, true};

QuantShape linear(uint32_t m, uint32_t n, uint32_t k) {
  QuantShape s;
  s.m = m;
  s.n = n;
  s.k = k;
  return s;
}

} // namespace

TEST_CASE("quantized: matrix units from nine rows on, where x is aligned") {
  QuantPlan plan = plan_quant(big_gpu, linear(2048, 4096, 12288));
  CHECK(plan.path == Path::Coopmat);
  CHECK(plan.bn == 256);
  CHECK(plan.m_tiles == 16);
  CHECK(plan.n_tiles == 16);
  CHECK(plan_quant(big_gpu, linear(8, 4096, 4096)).path == Path::Matvec);
  CHECK(plan_quant(big_gpu, linear(9, 4096, 4096)).path == Path::Coopmat);

  QuantShape odd = linear(2048, 4096, 4096);
  odd.x_aligned = false;
  CHECK(plan_quant(big_gpu, odd).path == Path::Tiled);
  QuantDevice plain = big_gpu;
  plain.coopmat = false;
  CHECK(plan_quant(plain, linear(2048, 4096, 4096)).path == Path::Tiled);
}

TEST_CASE("quantized: eight rows stay within few registers") {
  QuantDevice amd{64, 40};
  CHECK(plan_quant(amd, linear(8, 4096, 4096)).outs == 2);
  amd.few_registers = true;
  CHECK(plan_quant(amd, linear(8, 4096, 4096)).outs == 1);
  CHECK(plan_quant(amd, linear(4, 4096, 4096)).outs == 2);
}

TEST_CASE("quantized: small products take small tiles to fill the device") {
  CHECK(plan_quant(big_gpu, linear(2048, 2048, 1024)).bn == 128);
  QuantPlan medium = plan_quant(big_gpu, linear(2048, 1024, 2048));
  CHECK(medium.bm == 64);
  CHECK(medium.bn == 128);
  CHECK(plan_quant(big_gpu, linear(512, 1024, 2048)).bn == 64);
  CHECK(plan_quant(big_gpu, linear(20, 4096, 4096)).bm == 32);
}

TEST_CASE("quantized: sorted experts take tiles of their own rows") {
  QuantShape s = linear(1, 768, 2048);
  s.sorted = true;
  s.batch = 4096;
  s.matrices = 128;
  QuantPlan plan = plan_quant(big_gpu, s);
  CHECK(plan.path == Path::Coopmat);
  CHECK(plan.bm == 32);
  CHECK(plan.m_tiles == 128);
  s.batch = 128; // one row each: matvec reads every expert once too
  CHECK(plan_quant(big_gpu, s).path == Path::Matvec);
}

TEST_CASE("quantized: few rows and software devices") {
  QuantShape s = linear(1, 4096, 4096);
  CHECK(plan_quant(big_gpu, s).rows == 1);
  CHECK(plan_quant(big_gpu, linear(3, 4096, 4096)).rows == 4);
  s.transpose = false;
  CHECK(plan_quant(big_gpu, s).path == Path::Vecmat);
  QuantDevice software;
  software.software = true;
  CHECK(plan_quant(software, linear(100, 512, 512)).tm == 16);
  CHECK(plan_quant(software, linear(100, 64, 64)).tm == 8);
  CHECK(plan_quant(software, linear(1, 512, 512)).outs == 16);
}
