#include "ops/custom/meaning.h"

#include <algorithm>
#include <array>

#include "ops/custom/plan.h"
#include "ops/gated_delta/plan.h"
#include "ops/layout.h"

namespace mlx::core::vulkan {

namespace {

// tests/kernels/test_meaning.py prints the fingerprints of the installed
// packages' kernels and fails if one is missing here.
struct Known {
  uint64_t fingerprint;
  GatedDeltaKernel kernel;
};
constexpr Known known[] = {
    {0x1279028c20d10c8b, {1, false}}, // gated_delta_step
    {0x769f418d669835f6, {1, true}}, // gated_delta_step_vec
    {0xe6657295ce3c03d9, {1, false}}, // gated_delta_step_xtree
    {0x07d12aff857dbb83, {8, false}}, // gated_delta_step_packed_btree
};

constexpr std::array<std::string_view, 9> names =
    {"q", "k", "v", "g", "beta", "state_in", "T", "y", "state_out"};

void append(std::string& to, std::string_view text) {
  while (!text.empty()) {
    size_t n = comment_length(text);
    if (n == 0 && text[0] != ' ' && text[0] != '\n' && text[0] != '\t') {
      to += text[0];
    }
    text.remove_prefix(std::max<size_t>(n, 1));
  }
}

std::optional<int> template_int(const msl::Source& s, std::string_view name) {
  for (auto& t : s.templates) {
    if (auto* n = std::get_if<int64_t>(&t.value); n && t.name == name) {
      return int(*n);
    }
  }
  return std::nullopt;
}

// Whether the argument has the type of the template argument.
bool has_type(
    const msl::Source& s,
    const msl::Argument& argument,
    std::string_view name) {
  for (auto& t : s.templates) {
    if (auto* type = std::get_if<std::string>(&t.value);
        type && t.name == name) {
      return *type == argument.type;
    }
  }
  return false;
}

} // namespace

uint64_t fingerprint(const msl::Source& source) {
  std::string text;
  append(text, source.header);
  text += '\n';
  append(text, source.body);
  uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
  for (unsigned char c : text) {
    hash = (hash ^ c) * 0x100000001b3u;
  }
  return hash;
}

std::optional<GatedDeltaKernel> gated_delta_kernel(const msl::Source& source) {
  auto& all = source.arguments;
  bool named = std::equal(
      all.begin(), all.end(), names.begin(), names.end(), [](auto& a, auto n) {
        return a.name == n;
      });
  if (!named) {
    return std::nullopt;
  }
  uint64_t of = fingerprint(source);
  for (auto& k : known) {
    if (k.fingerprint == of) {
      return k.kernel;
    }
  }
  return std::nullopt;
}

namespace {

// Operands of the call; empty if its form is not what the kernel expects.
std::optional<GatedDelta> operands_of(
    const GatedDeltaKernel& kernel,
    const CustomCall& call,
    const std::vector<array>& outputs) {
  auto& [source, inputs, grid, threadgroup] = call;
  constexpr int few = 16;
  auto& q = inputs[0];
  auto& v = inputs[2];
  auto& count = inputs[6];
  if (q.ndim() != 4 || v.ndim() != 4 || q.shape(1) < few) {
    return std::nullopt;
  }
  int B = q.shape(0), T = q.shape(1), Hk = q.shape(2), Dk = q.shape(3);
  int Hv = v.shape(2), Dv = v.shape(3);
  Dtype type = q.dtype();
  Shape state{B, Hv, Dv, Dk}, gates{B, T, Hv};
  Shape all_gates = gates;
  if (kernel.vector_gates) {
    all_gates.push_back(Dk);
  }
  auto is = [](const array& a, const Shape& shape, Dtype dtype) {
    return a.shape() == shape && a.dtype() == dtype;
  };
  bool arrays = issubdtype(type, floating) && type != float64 &&
      is(inputs[1], q.shape(), type) && is(v, {B, T, Hv, Dv}, type) &&
      is(inputs[3], all_gates, inputs[3].dtype()) &&
      issubdtype(inputs[3].dtype(), floating) && is(inputs[4], gates, type) &&
      is(inputs[5], state, float32) && is(count, {}, int32) &&
      is(outputs[0], v.shape(), type) && is(outputs[1], state, float32);
  bool sizes = takes_gated_delta(Dk) && Hk > 0 && Hv % Hk == 0 &&
      Dv % kernel.rows == 0 && template_int(source, "Dk") == Dk &&
      template_int(source, "Dv") == Dv && template_int(source, "Hk") == Hk &&
      template_int(source, "Hv") == Hv &&
      has_type(source, source.arguments[7], "InT") &&
      has_type(source, source.arguments[8], "StT");
  bool threads = grid == std::tuple(32, Dv / kernel.rows, B * Hv) &&
      std::get<0>(threadgroup) == 32;
  if (!arrays || !sizes || !threads) {
    return std::nullopt;
  }
  return GatedDelta{q, inputs[1], v, inputs[3], inputs[4], inputs[5], count};
}

} // namespace

bool run_as_gated_delta(
    const std::optional<GatedDeltaKernel>& kernel,
    const CustomCall& call,
    std::vector<array>& outputs,
    StreamEncoder& enc) {
  auto d = kernel ? operands_of(*kernel, call, outputs) : std::nullopt;
  if (!d) {
    return false;
  }
  for (array* x : {&d->q, &d->k, &d->v, &d->g, &d->beta, &d->state}) {
    *x = row_contiguous(*x, enc);
  }
  for (auto& out : outputs) {
    out.set_data(allocator::malloc(out.nbytes()));
  }
  gated_delta(enc, *d, outputs[0], outputs[1]);
  return true;
}

} // namespace mlx::core::vulkan
