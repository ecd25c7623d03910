#include "runtime/rewrite_kernels.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>

#include "pipeline/pipeline.h"
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

const Kernel* CompiledFusions::find(const FusedQmvVariant& variant) {
  for (auto& k : known_) {
    if (k.variant == variant) {
      return k.kernel;
    }
  }
  try {
    auto defines = variant.defines();
    auto& kernel = pipelines_.get(FusedQmvVariant::file, defines);
    known_.push_back({variant, &kernel});
    return &kernel;
  } catch (const std::exception& e) {
    say_left_out(e);
    refused_.push_back(variant);
    return nullptr;
  }
}

template <typename V>
const Kernel* CompiledFusions::find(Found<V>& found, const V& variant) {
  for (auto& [known, kernel] : found) {
    if (known == variant) {
      return kernel;
    }
  }
  const Kernel* kernel = nullptr;
  try {
    kernel = &pipelines_.get(variant);
  } catch (const std::exception& e) {
    say_left_out(e);
  }
  found.push_back({variant, kernel});
  return kernel;
}

const Kernel* CompiledFusions::find(const RouterVariant& variant) {
  return find(routers_, variant);
}

const Kernel* CompiledFusions::find(const ExpertVariant& variant) {
  return find(experts_, variant);
}

bool CompiledFusions::fits(const ExpertVariant& variant) const {
  return fits_registers(caps_, variant);
}

bool CompiledFusions::refused(const FusedQmvVariant& variant) const {
  return std::find(refused_.begin(), refused_.end(), variant) != refused_.end();
}

bool CompiledFusions::fits(const FusedQmvVariant& variant) const {
  return fits_registers(caps_, variant);
}

void CompiledFusions::rewrite(Batch& batch) {
  if (on_) {
    if (preparing_cuts) {
      find_of_cuts(batch.records, batch.accesses, batch.arguments, *this);
    }
    vulkan::rewrite(batch.records, batch.accesses, batch.arguments, *this);
  }
}

} // namespace mlx::core::vulkan
