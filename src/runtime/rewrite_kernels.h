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

// On: later batches also find the kernels of their parts (find_of_cuts()). For
// `mlx-vulkan cache warm`. Any thread.
void prepare_cuts(bool on);

class CompiledFusions : public FusedKernels {
 public:
  CompiledFusions(PipelineTable& pipelines, const Caps& caps);

  const Kernel* find(const JoinedKernel& variant) override;
  bool refused(const JoinedKernel& variant) const override;
  bool fits(const JoinedKernel& variant) const override;
  bool fits_heads(uint64_t count) const override;

  // Rewrites a batch before it is recorded; not with MLX_VK_DISABLE=fuse.
  void rewrite(Batch& batch);

 private:
  PipelineTable& pipelines_;
  const Caps& caps_;
  bool on_;
  std::vector<std::pair<JoinedKernel, const Kernel*>> known_;
  std::vector<JoinedKernel> refused_;
};

} // namespace mlx::core::vulkan
