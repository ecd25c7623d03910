// The kernels of rewrite.h from a device's pipelines, compiled at first use.
// One that does not compile is named on stderr once, and its records run as
// they are. Threads: the recorder's.
#pragma once

#include <utility>
#include <vector>

#include "runtime/rewrite.h"

namespace mlx::core::vulkan {

class PipelineTable;
struct Caps;

// On: batches to come find the kernels of their parts too, see find_of_cuts().
// For `mlx-vulkan cache warm`. Any thread.
void prepare_cuts(bool on);

class CompiledFusions : public FusedKernels {
 public:
  CompiledFusions(PipelineTable& pipelines, const Caps& caps);

  const Kernel* find(const FusedQmvVariant& variant) override;
  const Kernel* find(const FusedFragmentsVariant& variant) override;
  const Kernel* find(const RopeCacheVariant& variant) override;
  bool refused(const FusedQmvVariant& variant) const override;
  bool refused(const FusedFragmentsVariant& variant) const override;
  bool refused(const RopeCacheVariant& variant) const override;
  bool fits(const FusedQmvVariant& variant) const override;
  bool fits(const FusedFragmentsVariant& variant) const override;
  const Kernel* find(const RouterVariant& variant) override;
  const Kernel* find(const ExpertVariant& variant) override;
  bool fits(const ExpertVariant& variant) const override;
  bool fits_heads(uint64_t count) const override;

  // Of a batch that is about to be written; MLX_VK_DISABLE=fuse leaves it.
  void rewrite(Batch& batch);

 private:
  // Of one kind of variant.
  template <typename V>
  class Table {
   public:
    const Kernel* find(PipelineTable& pipelines, const V& variant);
    bool refused(const V& variant) const;

   private:
    std::vector<std::pair<V, const Kernel*>> known_;
    std::vector<V> refused_;
  };
  PipelineTable& pipelines_;
  const Caps& caps_;
  bool on_;
  Table<FusedQmvVariant> products_;
  Table<FusedFragmentsVariant> fragments_;
  Table<RopeCacheVariant> heads_;
  Table<RouterVariant> routers_;
  Table<ExpertVariant> experts_;
};

} // namespace mlx::core::vulkan
