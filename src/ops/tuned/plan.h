// Alternatives to a plan: what plans choose if they see the device as another
// class of device, or judge by another threshold; and choices among them as
// text (JSON), of which the source tree has some for chips:
// src/ops/tuned/rows/CLASS/CHIP.json, with the name of a policy and a part
// of the device's name. Pure functions, tested without a GPU.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ops/attention/plan.h"
#include "ops/gemm/plan.h"
#include "ops/quant/plan.h"
#include "ops/rows/plan.h"
#include "pipeline/sources.h"
#include "policy/policy.h"

namespace mlx::core::vulkan {

// Raised when plans, views or classes change: older tables are ignored.
constexpr uint32_t plans_version = 2;

// A problem that plans choose a kernel for.
using Planned =
    std::variant<QuantShape, GemmProblem, AttentionProblem, NormProblem>;

// How plans may judge a device.
struct View {
  std::string name; // "" by default, "intel", "quant.few_rows=2", ...
  Target target;
};

class Views {
 public:
  // `as` (test hook) names the class or the change of plan.cpp that the default
  // view has; empty: the device as it is.
  explicit Views(const Target& device, std::string_view as = "");
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;

  const View& operator[](size_t i) const {
    return views_[i];
  }
  size_t size() const {
    return views_.size();
  }
  // -1 if there is no such view.
  int find(std::string_view name) const;

 private:
  std::deque<View> views_;
};

struct Candidate {
  uint32_t view = 0;
  std::string kernel; // name of its variant
  uint64_t plan = 0; // hash of the variant and of its parts of k or of keys
  bool fits = true; // the device can run it
};

// The plan that a view gives.
Candidate plan_of(const Views& views, uint32_t view, const Planned& p);

// The default plan, then other views' legal plans, each once.
std::vector<Candidate> candidates(const Views& views, const Planned& p);

// Rows, batches and keys: exact up to 64, then the nearest power of two.
uint64_t bucket(uint64_t size);
uint64_t last_of_bucket(uint64_t size); // the largest of the same

// Problems of one class share a choice: they are equal but for sizes in the
// same bucket.
uint64_t class_of(const Planned& p);
// "quantized T=bf16 m=1 n=4096 ...".
std::string text_of(const Planned& p);

// The sizes of a problem that its class has in buckets, and the problem with
// others. A norm has none: a row has the same bits among any number of rows.
using Sizes = std::array<uint64_t, 3>;
inline Sizes sizes_of(const QuantShape& s) {
  return {s.m, s.batch};
}
inline Sizes sizes_of(const GemmProblem& p) {
  return {p.m, p.batches};
}
inline Sizes sizes_of(const AttentionProblem& p) {
  return {p.batches, p.queries, p.keys};
}
inline Sizes sizes_of(const NormProblem&) {
  return {};
}
inline Sizes sizes_of(const Planned& p) {
  return std::visit([](auto& problem) { return sizes_of(problem); }, p);
}
Planned with_sizes(Planned p, const Sizes& sizes);

// Name and value of all that tells classes apart, sizes in full.
std::vector<std::pair<std::string_view, int64_t>> members_of(const Planned& p);

struct Choice {
  uint64_t problem = 0; // class_of()
  std::string view; // its name
  uint64_t plan = 0; // that the view gave for `sizes`: another one is not used
  Sizes sizes{};
};

// Nothing where the text is no table of choices among these plans.
std::optional<std::vector<Choice>> choices_in(const std::string& text);

// Whether the view still gives the plan that was chosen for a problem of its
// class, and the device can run it.
bool holds(const Views& views, uint32_t view, const Choice& c, Planned p);

// The texts of the device's chip among `rows`.
std::vector<std::string> rows_of(
    const Caps& device,
    std::span<const EmbeddedSource> rows);

} // namespace mlx::core::vulkan
