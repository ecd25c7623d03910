// The notice of a process whose default device is the CPU for want of a GPU.
#pragma once

namespace mlx::core::vulkan {

// The first time that something is evaluated where the CPU is the default
// device for want of a GPU, one line on stderr says why. Not with MLX_VK=0, nor
// after set_default_device(cpu).
void tell_if_on_cpu();

} // namespace mlx::core::vulkan
