// Probes at start: tests of what a driver reports, because reports can be
// wrong, and a measurement of how fast the host reads mapped memory.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/probe.h"
#include "pipeline/pipeline.h"
#include "runtime/device.h"
#include "runtime/encoder.h"
#include "vk/config.h"
#include "vk/features.h"

namespace mlx::core::vulkan {

namespace {

double host_reads_for_tests = 0;

template <KernelVariant V>
const Kernel& kernel(Device& device, const V& variant) {
  return device.pipelines().get(V::file, variant.defines());
}

// Runs one workgroup with `in` as x; returns y, which has n items.
template <typename Out, typename In>
std::vector<Out>
run(Device& device, const Kernel& k, const std::vector<In>& in, uint32_t n) {
  auto& memory = device.memory();
  device.pipelines().finish(k);
  size_t in_size = in.size() * sizeof(In), out_size = n * sizeof(Out);
  Buffer* x = memory.allocate(in_size, Placement::Host);
  Buffer* y = memory.allocate(out_size, Placement::Host);
  std::memcpy(memory.host_pointer(*x), in.data(), in_size);
  std::vector<Out> out(n);
  {
    Encoder enc(device, 0x7fffffff);
    Binding read{x, 0, 0, in_size}, write{y, 0, 0, out_size};
    ProbeArgs args{n};
    enc.dispatch(k, {&read, 1}, {&write, 1}, &args, sizeof(args), {1, 1, 1});
    auto done = enc.close();
    done->wait();
    std::memcpy(out.data(), memory.host_pointer(*y), out_size);
    done->wait_retired();
  }
  memory.release(x);
  memory.release(y);
  return out;
}

struct HalfCase {
  float x;
  uint16_t half;
  float back;
};
constexpr HalfCase half_cases[] = {
    {1.00048828125f, 0x3c00, 1.0f}, // tie to even, down
    {1.00146484375f, 0x3c02, 1.001953125f}, // tie to even, up
    {65519.996f, 0x7bff, 65504.0f},
    {65520.0f, 0x7c00, std::numeric_limits<float>::infinity()},
    {5.9604645e-8f, 0x0001, 5.9604645e-8f}, // smallest subnormal
    {2.9802322e-8f, 0x0000, 0.0f}, // tie to zero
    {6.0975552e-5f, 0x03ff, 6.0975552e-5f}, // largest subnormal
    {-1.5f, 0xbe00, -1.5f},
};

// A probe that fails to compile counts as failed.
template <typename F>
bool passes(F&& probe) {
  try {
    return probe() || config().test.trusted;
  } catch (const std::exception&) {
    return false;
  }
}

// Converts to float16, or with `back` there and back.
const Kernel& f16_kernel(Device& device, bool back) {
  return kernel(
      device,
      ProbeF16Variant{
          .NATIVE_F16 = true, .NATIVE_F16_ROUNDING = true, .BACK = back});
}

// Whether the conversion rounds to nearest even and keeps subnormals.
template <typename Out>
bool f16_conversion_works(
    Device& device,
    const Kernel& k,
    Out HalfCase::*wanted) {
  std::vector<float> x;
  std::vector<Out> want;
  for (auto& c : half_cases) {
    x.push_back(c.x);
    want.push_back(c.*wanted);
  }
  return run<Out>(device, k, x, x.size()) == want;
}

const Kernel& coopmat_kernel(Device& device, Type type) {
  return kernel(
      device,
      ProbeCoopmatVariant{.T = type, .units = device.caps().matrices(type)});
}

// y = a b of small integers, of which every format holds all sums; subnormal: a
// of so many times 2^-24, in f16.
bool coopmat_works(
    Device& device,
    const Kernel& kernel,
    Type type,
    bool subnormal = false) {
  const MatrixShape& shape = device.caps().matrices(type).shape;
  int m = shape.m, n = shape.n, depth = shape.k;
  auto bits = [&](int v) -> uint16_t {
    constexpr uint16_t half[] = {0, 0x3c00, 0x4000, 0x4200};
    constexpr uint16_t brain[] = {0, 0x3f80, 0x4000, 0x4040};
    uint16_t sign = v < 0 ? 0x8000 : 0;
    return sign | (type == Type::f16 ? half : brain)[v < 0 ? -v : v];
  };
  auto a = [](int i, int k) { return (3 * i + 5 * k) % 7 - 3; };
  auto b = [](int k, int j) { return (2 * k + j * j) % 7 - 3; };
  std::vector<uint16_t> x; // a by rows, then b by columns
  for (int i = 0; i < m; ++i) {
    for (int k = 0; k < depth; ++k) {
      int v = a(i, k);
      x.push_back(subnormal ? (v < 0 ? 0x8000 : 0) | std::abs(v) : bits(v));
    }
  }
  for (int j = 0; j < n; ++j) {
    for (int k = 0; k < depth; ++k) {
      x.push_back(bits(b(k, j)));
    }
  }
  std::vector<float> want;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      int sum = 0;
      for (int k = 0; k < depth; ++k) {
        sum += a(i, k) * b(k, j);
      }
      want.push_back(static_cast<float>(sum) * (subnormal ? 0x1p-24f : 1.0f));
    }
  }
  return run<float>(device, kernel, x, m * n) == want;
}

// Items of a and b for the probe of precision. Rows of a by i % 4: of one sign;
// of both, times 2^50; large ones that cancel, within 16 items and beyond,
// among small ones; subnormal ones. Columns of b, which repeat after four
// items, by j % 4: two of about one, times 2^50, subnormal ones.
struct PrecisionItems {
  uint32_t random = 1;

  float positive(int bits = 7) { // from 1 to below 2
    random = random * 1664525 + 1013904223;
    return 1 + std::ldexp(static_cast<float>(random >> (32 - bits)), -bits);
  }
  float signed_item(int bits = 7) {
    float v = positive(bits);
    return random & 0x10000 ? -v : v;
  }
  float subnormal() {
    return signed_item(5) * 0x1p-128f;
  }
  float of_a(int i, int k) {
    switch (i % 4) {
      case 0:
        return positive();
      case 1:
        return signed_item() * 0x1p50f;
      case 2:
        if (k / 4 % 2 || k >= 64) {
          return k < 64 ? positive() * 0x1p-10f : 0;
        }
        return k / (k < 32 ? 8 : 16) % 2 ? -1.5f : 1.5f;
      default:
        return subnormal();
    }
  }
  float of_b(int j) {
    return j % 4 == 3 ? subnormal()
                      : signed_item() * (j % 4 == 2 ? 0x1p50f : 1);
  }
};

// Names the items that bf16 matrices do not sum precisely; null: none. Sums may
// differ from those in double by a quarter of the tests' bound, 2^-24 of the
// products' sizes for each item, and where items cancel by half of that for 64.
// Subnormals of float32 may be lost.
const char* imprecise(Device& device) {
  auto units = device.caps().matrices(Type::bf16);
  const Kernel& sums =
      kernel(device, ProbePrecisionVariant{.T = Type::bf16, .units = units});
  int m = units.shape.m, n = units.shape.n, period = units.shape.k;
  constexpr int depth = ProbePrecisionVariant::DEPTH;
  PrecisionItems items;
  std::vector<uint16_t> x;
  x.reserve(size_t(m) * depth + n * period);
  auto push = [&](double v) {
    x.push_back(std::bit_cast<uint32_t>(static_cast<float>(v)) >> 16);
  };
  std::vector<std::array<double, 4>> a(m), sizes(m), b(n); // by k % 4
  for (int i = 0; i < m; ++i) {
    for (int k = 0; k < depth; ++k) {
      float v = items.of_a(i, k);
      a[i][k % 4] += v;
      sizes[i][k % 4] += std::abs(v);
      push(v);
    }
  }
  for (int j = 0; j < n; ++j) {
    for (int k = 0; k < period; ++k) {
      b[j][k % 4] = k < 4 ? items.of_b(j) : b[j][k % 4];
      push(b[j][k % 4]);
    }
  }
  auto y = run<float>(device, sums, x, m * n);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double want = 0, size = 0;
      for (int r = 0; r < 4; ++r) {
        want += a[i][r] * b[j][r];
        size += sizes[i][r] * std::abs(b[j][r]);
      }
      bool subnormal = i % 4 == 3 || j % 4 == 3, cancels = i % 4 == 2;
      double bound = 0x1p-26 * (cancels ? 128 : depth) * size;
      if (!(std::abs(y[i * n + j] - want) <= bound + 0x1p-126 * depth)) {
        return subnormal ? "subnormal items"
            : cancels    ? "items that cancel"
                         : "long sums";
      }
    }
  }
  return nullptr;
}

// Gives bf16 matrices up, with a line on stderr, unless they are precise.
void check_precision(Device& device, Caps& caps) {
  const char* wrong = "anything"; // where the probe does not compile
  caps.coopmat_bf16 = passes([&] {
    wrong = imprecise(device);
    return !wrong;
  });
  if (wrong) {
    std::fprintf(
        stderr,
        "[mlx-vulkan] %s with %s: bf16 matrices are off, since they do not add "
        "up %s precisely.\n",
        caps.name.c_str(),
        caps.driver.c_str(),
        wrong);
  }
}

const Kernel& fragments_kernel(Device& device, Type type, int input) {
  int subgroup = device.caps().matrix_subgroup();
  return kernel(
      device, ProbeFragmentsVariant{.T = type, .SG = subgroup, .INPUT = input});
}

// Whether the eight elements of 32 lanes lie as common/fragments.glsl has them.
bool fragments_fit(Device& device, const Kernel& k, Type type, int input) {
  std::vector<uint16_t> x; // 0 to 255, which both formats represent exactly
  for (int i = 0; i < 256; ++i) {
    auto bits = std::bit_cast<uint32_t>(static_cast<float>(i));
    bool half = type == Type::f16 && i > 0; // its exponents begin at -14
    x.push_back(
        static_cast<uint16_t>(half ? (bits - (112u << 23)) >> 13 : bits >> 16));
  }
  auto items = run<float>(device, k, x, x.size());
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < 8; ++e) {
      int row = lane / 4 + e / 4 * 8;
      int column = lane % 4 * 2 + e % 2 + e / 2 % 2 * 8;
      int item = input == ProbeFragmentsVariant::of_b ? column * 16 + row
                                                      : row * 16 + column;
      if (items[lane * 8 + e] != static_cast<float>(item)) {
        return false;
      }
    }
  }
  return true;
}

// Keeps Caps::known_fragments if the driver's fragments are the known ones.
void find_fragments(Device& device, Caps& caps) {
  using Input = ProbeFragmentsVariant::Input;
  for (Type type : {Type::f16, Type::bf16}) {
    for (auto input : {Input::of_a, Input::of_b, Input::of_c}) {
      caps.known_fragments =
          caps.known_fragments && (!caps.usual_matrices(type) || passes([&] {
            const Kernel& k = fragments_kernel(device, type, input);
            return fragments_fit(device, k, type, input);
          }));
    }
  }
  if (caps.known_fragments) {
    device.pipelines().add_global_define("KNOWN_FRAGMENTS", "1");
  }
}

} // namespace

void set_host_reads_for_tests(double bytes_per_second) {
  host_reads_for_tests = bytes_per_second;
}

HostReads measure_host_reads(Allocations& allocations, int type) {
  if (host_reads_for_tests > 0) {
    return {type, host_reads_for_tests};
  }
  using Clock = std::chrono::steady_clock;
  constexpr size_t size = 64 << 10, piece = 1 << 10;
  constexpr std::chrono::microseconds enough(500);
  Allocation a;
  try {
    a = allocations.create(size, {&type, 1}, HostUse::Coherent, true);
  } catch (const VkError&) {
    return {}; // as if not measured
  }
  auto* mapped = static_cast<std::byte*>(a.mapped);
  // Maps the pages, and fills the cache if the memory is cached.
  std::memset(mapped, 1, size);
  std::array<std::byte, piece> copy;
  double best = 0;
  auto begun = Clock::now(), before = begun;
  for (size_t at = 0; at < size && before - begun < enough; at += piece) {
    std::memcpy(copy.data(), mapped + at, piece);
    // Else the compiler may leave the copy out.
    asm volatile("" : : "r"(copy.data()) : "memory");
    auto now = Clock::now();
    std::chrono::duration<double> took = now - before;
    // The fastest piece counts, because the thread may be preempted.
    best = std::max(best, piece / std::max(took.count(), 1e-9));
    before = now;
  }
  allocations.free(a);
  return {type, best};
}

void Device::probe_lanes() {
  // Otherwise gl_SubgroupSize is the actual size.
  if (caps_.subgroup_size_control) {
    return;
  }
  constexpr int n = 256; // which every device has
  std::vector<uint32_t> x(n);
  std::iota(x.begin(), x.end(), 1);
  auto y = run<uint32_t>(
      *this, kernel(*this, ProbeLanesVariant{.WG_SIZE = n}), x, n);
  if (std::any_of(y.begin(), y.end(), [](uint32_t sum) {
        return sum != n * (n + 1) / 2;
      })) {
    throw std::runtime_error(
        "[vulkan] " + caps_.name + " with " + caps_.driver +
        " runs subgroups that are not the " +
        std::to_string(caps_.subgroup_size) +
        " neighbours which it reports, so that sums would be wrong. Another "
        "version of the driver may be right; MLX_VK_DEVICE selects another "
        "device.");
  }
}

void Device::probe_arithmetic() {
  bool half = caps_.shader_float16 && !config().disabled("native_f16");
  // All are requested first, so that they compile in parallel.
  const Kernel* to_half = half ? &f16_kernel(*this, false) : nullptr;
  const Kernel* there_and_back = half ? &f16_kernel(*this, true) : nullptr;
  auto matrix = [&](Type type) {
    return caps_.coopmat(type) ? &coopmat_kernel(*this, type) : nullptr;
  };
  const Kernel *f16 = matrix(Type::f16), *bf16 = matrix(Type::bf16);
  bool converts =
      to_half && passes([&] {
        return f16_conversion_works(*this, *to_half, &HalfCase::half);
      });
  if (converts) {
    pipelines_->add_global_define("NATIVE_F16", "1");
    // The probe does not see what NVIDIA's driver drops (common/convert.glsl).
    if (caps_.driver_id != VK_DRIVER_ID_NVIDIA_PROPRIETARY && passes([&] {
          return f16_conversion_works(*this, *there_and_back, &HalfCase::back);
        })) {
      pipelines_->add_global_define("NATIVE_F16_ROUNDING", "1");
    }
  }
  caps_.coopmat_f16 =
      f16 && passes([&] { return coopmat_works(*this, *f16, Type::f16); });
  caps_.coopmat_bf16 =
      bf16 && passes([&] { return coopmat_works(*this, *bf16, Type::bf16); });
  auto environment = [](const char* n) -> const char* {
    return std::getenv(n);
  };
  if (caps_.coopmat_bf16 && radv_bfloat16(environment)) {
    check_precision(*this, caps_);
  }
  caps_.half_items = converts && caps_.coopmat_f16 && !caps_.coopmat_bf16 &&
      !config().disabled("halves") &&
      passes([&] { return coopmat_works(*this, *f16, Type::f16, true); });
  find_fragments(*this, caps_);
}

} // namespace mlx::core::vulkan
