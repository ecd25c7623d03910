#include "runtime/sentinels.h"

#include <cstring>

#include "runtime/device.h"

namespace mlx::core::vulkan {

Sentinels::Sentinels(Device& device)
    : device_(device),
      memory_(device.memory().allocate_for_reading(count * sizeof(uint32_t))),
      words_(static_cast<uint32_t*>(memory_.mapped)) {
  std::memset(words_, 0, count * sizeof(uint32_t)); // tickets begin at 1
}

Sentinels::~Sentinels() {
  device_.memory().free(memory_);
}

void Sentinels::append(VkCommandBuffer commands, uint64_t ticket) {
  device_.vk().vkCmdFillBuffer(
      commands,
      memory_.buffer,
      ticket % count * sizeof(uint32_t),
      sizeof(uint32_t),
      static_cast<uint32_t>(ticket));
}

} // namespace mlx::core::vulkan
