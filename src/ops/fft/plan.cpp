#include "ops/fft/plan.h"

#include <algorithm>

namespace mlx::core::vulkan {

namespace {

// The factors of n in the order of the stages. The last stage cancels the most:
// a wide one, of up to 2^widest, keeps its terms, and so the error, small.
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

// Lengths of at most `most` whose product is n, as few and as even as can be;
// none if there is no such product of up to `parts`.
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

} // namespace

FftPlan plan_fft(const Caps& caps, uint64_t lines, uint32_t extent) {
  // Two tables of complex numbers in shared memory.
  FftPlan plan{.items = caps.shared_memory >= 32768 ? 8 : 4};
  uint32_t most = plan.items * 256;
  auto found = factors(extent, 3);
  uint32_t largest =
      found.empty() ? 1 : *std::max_element(found.begin(), found.end());
  // A convolution of many lines would take too much memory.
  bool many = lines * extent > uint64_t(1) << 26;
  if (largest <= (many ? most : 256)) {
    plan.lengths = split(extent, most, 3);
  }
  return plan;
}

FftPass plan_fft_pass(int items, uint64_t lines, uint32_t n, bool careful) {
  // Enough lines to fill a workgroup, fewer if that leaves too few groups.
  uint64_t wanted = std::max<uint64_t>(lines / 128, 256 / n);
  return {
      factors(n, careful ? 5 : 3),
      static_cast<uint32_t>(
          std::clamp<uint64_t>(wanted, 1, std::max(items * 256 / n, 1u)))};
}

} // namespace mlx::core::vulkan
