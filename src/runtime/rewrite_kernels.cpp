#include "runtime/rewrite_kernels.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <optional>

#include "pipeline/pipeline.h"
#include "runtime/rewrite_log.h"
#include "runtime/rewrite_variants.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {
std::atomic<bool> preparing_cuts{false};

void say_left_out(const std::exception& e) {
  std::fprintf(
      stderr,
      "[mlx-vulkan] A joined kernel is left out, its parts run instead: %s\n",
      e.what());
}
} // namespace

void prepare_cuts(bool on) {
  preparing_cuts = on;
}

CompiledFusions::CompiledFusions(PipelineTable& pipelines, const Caps& caps)
    : pipelines_(pipelines), caps_(caps), on_(!config().disabled("fuse")) {}

const Kernel* CompiledFusions::find(const JoinedKernel& variant) {
  auto is = [&](auto& known) { return known.first == variant; };
  auto at = std::find_if(known_.begin(), known_.end(), is);
  if (at != known_.end() && at->second->built()) {
    return at->second;
  }
  try { // one that could not be built is tried once more
    auto get = [&](auto& v) { return &pipelines_.get(v); };
    const Kernel* kernel = std::visit(get, variant);
    if (at == known_.end()) {
      at = known_.insert(at, {variant, nullptr});
    }
    return at->second = kernel;
  } catch (const std::exception& e) {
    say_left_out(e);
    refused_.push_back(variant);
    return nullptr;
  }
}

bool CompiledFusions::refused(const JoinedKernel& variant) const {
  return std::find(refused_.begin(), refused_.end(), variant) != refused_.end();
}

bool CompiledFusions::fits(const JoinedKernel& variant) const {
  auto* product = std::get_if<FusedQmvVariant>(&variant);
  return fit_registers(caps_, variant) &&
      (!product || fits_shared_memory(caps_, *product));
}

bool CompiledFusions::fits_heads(uint64_t count) const {
  return takes_heads(caps_, count);
}

void CompiledFusions::rewrite(Batch& batch) {
  if (on_) {
    if (preparing_cuts) {
      find_of_cuts(batch.records, batch.accesses, batch.arguments, *this);
    }
    std::optional<SelectLog> log;
    if (config().debug_select) {
      log.emplace(batch.records, batch.accesses, batch.arguments);
    }
    vulkan::rewrite(
        batch.records,
        batch.accesses,
        batch.arguments,
        *this,
        log ? &*log : nullptr);
    if (log) {
      std::fputs(log->text(batch.records).c_str(), stderr);
    }
  }
}

} // namespace mlx::core::vulkan
