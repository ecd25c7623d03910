// The plans that a device can run for a problem, by name; classes of problems;
// and choices for classes as text (JSON), of which the source tree has some for
// chips: src/ops/tuned/rows/CLASS/CHIP.json, with the name of a policy and a
// part of the device's name. Pure functions, tested without a GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ops/attention/plan.h"
#include "ops/candidates.h"
#include "ops/gemm/plan.h"
#include "ops/quant/plan.h"
#include "ops/rows/plan.h"
#include "pipeline/sources.h"
#include "policy/policy.h"

namespace mlx::core::vulkan {

// A problem that plans choose a kernel for, and a plan of it. Where w is
// dequantized first, the dense product is a problem of its own.
using Planned =
    std::variant<QuantShape, GemmProblem, AttentionProblem, NormProblem>;
using AnyPlan = std::variant<
    std::optional<QuantPlan>,
    GemmPlan,
    DecodePlan,
    PrefillPlan,
    NormVariant>;

// Calls f(variant) for the kernel of a plan, if it has one.
template <typename F>
void each_variant(const AnyPlan& plan, F f) {
  if (auto* quant = std::get_if<std::optional<QuantPlan>>(&plan)) {
    if (*quant) {
      std::visit(f, (*quant)->kernel);
    }
  } else if (auto* gemm = std::get_if<GemmPlan>(&plan)) {
    std::visit(f, gemm->variant);
  } else if (auto* decode = std::get_if<DecodePlan>(&plan)) {
    f(decode->kernel);
  } else if (auto* prefill = std::get_if<PrefillPlan>(&plan)) {
    std::visit(f, prefill->kernel);
  } else {
    f(std::get<NormVariant>(plan));
  }
}

struct Candidate {
  std::string name; // of its PlanName; empty: the plan's choice
  std::string kernel; // its variant, and its parts of k or of keys
  AnyPlan plan;
};

// The plan's choice, then others that the device can run, each kernel once.
std::vector<Candidate> candidates(const Target& gpu, const Planned& p);
// The plan of this name; the choice if the device has none.
AnyPlan named_plan(const Target& gpu, const Planned& p, const PlanName& name);

// Rows, batches and keys: exact up to 64, then the nearest power of two.
uint64_t bucket(uint64_t size);
uint64_t last_of_bucket(uint64_t size); // the largest of the same

// Problems of one class share a choice: they are equal but for sizes in the
// same bucket. A norm has no sizes: a row has the same bits among any number of
// rows.
uint64_t class_of(const Planned& p);
// "quantized m=1 batch=1 n=4096 k=4096 T=bf16 ...", with sizes by bucket.
std::string text_of(const Planned& p);
// A bit for classes of about this kind and size. It tells without a hash that
// there is no choice for a problem.
uint64_t size_bit(const Planned& p);

// Name and value of all that tells classes apart, sizes in full.
std::vector<std::pair<std::string_view, int64_t>> members_of(const Planned& p);

struct Choice {
  uint64_t problem = 0; // class_of()
  uint64_t size_bit = 0;
  std::string words; // of the plan's name
  std::array<uint32_t, 4> numbers{};

  PlanName name() const {
    return {words, numbers};
  }
};

// Nothing where the text is no table of choices.
std::optional<std::vector<Choice>> choices_in(const std::string& text);

// The texts of the device's chip among `rows`.
std::vector<std::string> rows_of(
    const Caps& device,
    std::span<const EmbeddedSource> rows);

} // namespace mlx::core::vulkan
