#include "ops/fft/plan.h"

#include <algorithm>
#include <numeric>

namespace mlx::core::vulkan {

namespace {

// The factors of n in the order of the stages. The last stage cancels the most;
// with a wide radix, up to 2^widest, its terms and errors stay small.
std::vector<uint32_t> factors(uint32_t n, int widest) {
  std::vector<uint32_t> found;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) {
    ++twos;
  }
  for (uint32_t f = 3; n > 1; f = f * f > n ? n : f + 2) {
    for (; n % f == 0; n /= f) {
      found.push_back(f);
    }
  }
  int wide = std::min(twos, widest);
  twos -= wide;
  found.insert(found.end(), twos % 2, 2);
  found.insert(found.end(), twos / 2, 4);
  found.insert(found.end(), wide > 0, uint32_t(1) << wide);
  return found;
}

// Splits n into factors of at most `most`, as few and as even as possible; none
// if more than `parts` are needed.
std::vector<uint32_t> split(uint32_t n, uint32_t most, int parts) {
  if (n <= most) {
    return {n};
  }
  std::vector<uint32_t> best;
  if (parts == 1) {
    return best;
  }
  uint32_t widest = most + 1;
  for (uint32_t d = 2; d <= most; ++d) {
    if (n % d) {
      continue;
    }
    auto rest = split(n / d, most, parts - 1);
    if (rest.empty()) {
      continue;
    }
    rest.push_back(d);
    uint32_t wide = *std::max_element(rest.begin(), rest.end());
    if (best.empty() || rest.size() < best.size() ||
        (rest.size() == best.size() && wide < widest)) {
      best = rest;
      widest = wide;
    }
  }
  return best;
}

// Appends radices of at most `widest` with product n to `taken`, largest first;
// keeps the fewest, then those with the least sum, in `best`.
void find_radices(
    uint32_t n,
    uint32_t widest,
    std::vector<uint32_t>& taken,
    std::vector<uint32_t>& best) {
  constexpr uint32_t radices[] = {16, 9, 8, 7, 5, 4, 3, 2};
  constexpr size_t most = 4;
  if (n == 1) {
    auto sum = [](auto& list) {
      return std::accumulate(list.begin(), list.end(), 0u);
    };
    if (best.empty() || taken.size() < best.size() ||
        (taken.size() == best.size() && sum(taken) < sum(best))) {
      best = taken;
    }
    return;
  }
  for (uint32_t radix : radices) {
    if (radix <= widest && n % radix == 0 && taken.size() < most) {
      taken.push_back(radix);
      find_radices(n / radix, radix, taken, best);
      taken.pop_back();
    }
  }
}

// The radices of a line of n items, 2 to 4096, for fft_radix.comp; none if n
// has other factors or needs too many.
std::vector<uint32_t> radices_of(uint32_t n) {
  std::vector<uint32_t> taken, best;
  // With radix 16, adjacent invocations would access items 16 apart.
  find_radices(n, n == 16 ? 8 : 16, taken, best);
  return best;
}

} // namespace

FftPlan plan_fft(const Caps& caps, uint64_t lines, uint32_t extent) {
  // Shared memory holds two tables of complex numbers.
  FftPlan plan{.items = caps.shared_memory >= 32768 ? 8 : 4};
  uint32_t most = plan.items * 256;
  auto found = factors(extent, 3);
  uint32_t largest =
      found.empty() ? 1 : *std::max_element(found.begin(), found.end());
  // A convolution of many lines takes too much memory.
  bool many = lines * extent > uint64_t(1) << 26;
  if (largest <= (many ? most : 256)) {
    plan.lengths = split(extent, most, 3);
  }
  return plan;
}

FftPass plan_fft_pass(int items, uint64_t lines, uint32_t n, bool careful) {
  // Enough lines to fill a workgroup, fewer if there would be too few groups.
  uint64_t wanted = std::max<uint64_t>(lines / 128, 256 / n);
  return {
      factors(n, careful ? 5 : 3),
      static_cast<uint32_t>(
          std::clamp<uint64_t>(wanted, 1, std::max(items * 256 / n, 1u)))};
}

std::vector<uint32_t> plan_radix_lengths(
    const Caps& caps,
    uint64_t outer,
    uint32_t extent,
    uint64_t inner) {
  if (extent < 2 || outer * inner > INT32_MAX / extent * uint64_t(2)) {
    return {};
  }
  // Strided lines need room to read several at a time.
  bool roomy = caps.shared_memory >= 32768 && caps.max_workgroup_size >= 256;
  if (extent <= (inner > 1 || !roomy ? 1024 : 4096) &&
      !radices_of(extent).empty()) {
    return {extent};
  }
  std::vector<uint32_t> parts;
  for (uint32_t d = 2; d <= 1024; ++d) {
    if (extent % d == 0 && !radices_of(d).empty()) {
      parts.push_back(d);
    }
  }
  auto is_part = [&](uint64_t d) {
    return std::binary_search(parts.begin(), parts.end(), d);
  };
  // As even as possible: the least first factor that no other exceeds.
  for (uint32_t a : parts) {
    if (uint64_t(a) * a >= extent && is_part(extent / a)) {
      return {a, extent / a};
    }
  }
  for (uint32_t a : parts) {
    for (uint32_t b : parts) {
      uint64_t ab = uint64_t(a) * b;
      if (b <= a && extent % ab == 0 && extent / ab <= b &&
          is_part(extent / ab)) {
        return {a, b, uint32_t(extent / ab)};
      }
    }
  }
  return {};
}

FftRadixVariant plan_radix_pass(
    const Target& gpu,
    uint64_t lines,
    uint32_t n,
    bool last,
    uint64_t rows,
    uint64_t inner) {
  auto radices = radices_of(n);
  radices.resize(4, 1);
  FftRadixVariant v{.LINE = n};
  v.R1 = radices[0], v.R2 = radices[1], v.R3 = radices[2], v.R4 = radices[3];
  uint32_t lanes = v.lanes();
  for (uint32_t radix : radices) {
    uint32_t butterflies = ceil_div(n / radix, lanes);
    v.ITEMS = radix > 1 ? std::max(v.ITEMS, butterflies * radix) : v.ITEMS;
  }
  v.LAST = last;
  v.ACROSS_IN = !last || inner > 1;
  v.ACROSS_OUT = v.ACROSS_IN || rows > 1;
  // Eight adjacent lines are 64 bytes, the least memory transaction.
  uint32_t least = v.ACROSS_OUT ? 8 : 1;
  v.LINES = std::max(256 / lanes, least);
  while (v.LINES > 1 &&
         (v.LINES * lanes > gpu.caps.max_workgroup_size ||
          v.shared_memory() > gpu.caps.shared_memory ||
          (v.LINES > least && lines < uint64_t(v.LINES) * gpu.cores()))) {
    v.LINES /= 2;
  }
  return v;
}

} // namespace mlx::core::vulkan
