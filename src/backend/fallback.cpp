#include "backend/fallback.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <future>
#include <map>
#include <mutex>
#include <sstream>

#include "mlx/backend/cpu/encoder.h"
#include "mlx/scheduler.h"
#include "mlx/utils.h"

#include "backend/stream.h"
#include "runtime/profile.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

struct Signatures {
  std::mutex mutex;
  std::map<std::pair<FallbackKind, std::string>, uint64_t> calls;
};

// Leaked: streams may still fall back while statics are destroyed.
Signatures& signatures() {
  static auto* s = new Signatures;
  return *s;
}

// The totals are the profile's, so that there is one of each.
std::atomic<uint64_t>& total_of(FallbackKind kind) {
  auto& c = counters();
  return kind == FallbackKind::Cpu ? c.fallbacks : c.decompositions;
}

void describe(std::ostream& os, const std::vector<mlx::core::array>& arrays) {
  os << "(";
  for (size_t i = 0; i < arrays.size(); ++i) {
    os << (i ? ", " : "") << arrays[i].dtype() << arrays[i].shape();
  }
  os << ")";
}

std::string signature(
    Primitive& primitive,
    const std::vector<mlx::core::array>& inputs,
    const std::vector<mlx::core::array>& outputs) {
  std::ostringstream os;
  os << primitive.name();
  describe(os, inputs);
  if (!outputs.empty()) {
    os << " -> ";
    describe(os, outputs);
  }
  return os.str();
}

// Returns true when the signature was not seen before.
bool count(FallbackKind kind, const std::string& signature) {
  auto& c = signatures();
  total_of(kind)++;
  std::lock_guard lock(c.mutex);
  return c.calls[{kind, signature}]++ == 0;
}

void report(bool first, const char* what, const std::string& signature) {
  bool warn = config().fallback == FallbackPolicy::Warn;
  if (first && (warn || config().debug_fallback)) {
    fprintf(stderr, "[vulkan] %s: %s\n", what, signature.c_str());
  }
}

// Waits until the stream's scheduler thread has run everything before.
void drain(Stream s) {
  auto done = std::make_shared<std::promise<void>>();
  auto future = done->get_future();
  scheduler::enqueue(s, [done = std::move(done)]() { done->set_value(); });
  future.wait();
}

} // namespace

void run_on_cpu(
    Primitive& primitive,
    const std::vector<mlx::core::array>& inputs,
    std::vector<mlx::core::array> outputs) {
  auto sig = signature(primitive, inputs, outputs);
  if (config().fallback == FallbackPolicy::Deny) {
    throw std::runtime_error(
        "[vulkan] " + sig +
        " has no Vulkan kernel and MLX_VK_FALLBACK=deny forbids running it on "
        "the CPU. Unset the variable, or run this operation with "
        "stream=mx.cpu.");
  }
  report(count(FallbackKind::Cpu, sig), "runs on the CPU", sig);

  auto s = primitive.stream();
  synchronize_for_host(s);
  PlacementScope scope(Placement::Host);
  auto& encoder =
      cpu::get_command_encoders().try_emplace(s.index, s).first->second;
  // The tasks hold weak copies only: inputs and outputs live until the drain
  // because the caller holds them, temporaries because we do.
  std::vector<mlx::core::array> temporaries;
  try {
    primitive.eval_cpu(inputs, outputs);
  } catch (...) {
    temporaries = std::move(encoder.temporaries());
    encoder.temporaries().clear();
    drain(s);
    throw;
  }
  temporaries = std::move(encoder.temporaries());
  encoder.temporaries().clear();
  drain(s);
  scheduler::check_error(s);
}

void count_decomposition(const std::string& name) {
  if (config().fallback == FallbackPolicy::Deny) {
    throw std::runtime_error(
        "[vulkan] " + name +
        " has no fused Vulkan kernel and MLX_VK_FALLBACK=deny forbids its "
        "decomposition. Unset the variable, or run this operation with "
        "stream=mx.cpu.");
  }
  report(
      count(FallbackKind::Decomposition, name),
      "decomposed into several kernels",
      name);
}

void throw_no_kernel(
    Primitive& primitive,
    const std::vector<mlx::core::array>& inputs) {
  throw std::runtime_error(
      "[vulkan] " + signature(primitive, inputs, {}) +
      " has no Vulkan kernel yet, and MLX's CPU version cannot stand in for "
      "it.");
}

std::vector<FallbackCount> fallback_counts() {
  std::vector<FallbackCount> counts;
  auto& c = signatures();
  {
    std::lock_guard lock(c.mutex);
    for (auto& [key, calls] : c.calls) {
      counts.push_back({key.first, key.second, calls});
    }
  }
  std::stable_sort(counts.begin(), counts.end(), [](auto& a, auto& b) {
    return a.calls > b.calls;
  });
  return counts;
}

uint64_t fallback_total(FallbackKind kind) {
  return total_of(kind);
}

void reset_fallbacks() {
  auto& c = signatures();
  std::lock_guard lock(c.mutex);
  c.calls.clear();
  total_of(FallbackKind::Cpu) = 0;
  total_of(FallbackKind::Decomposition) = 0;
}

} // namespace mlx::core::vulkan
