#include "runtime/sentinels.h"

#include <chrono>
#include <thread>

namespace mlx::core::vulkan {

namespace {
// A driver may show a query later than the semaphore that was signalled after
// it. Only after a dropped submission does the wait last this long.
constexpr auto patience = std::chrono::milliseconds(20);
} // namespace

Sentinels::Sentinels(const Vk& vk, VkDevice device) : vk_(vk), device_(device) {
  VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = count;
  vk_check(
      vk.vkCreateQueryPool(device, &info, nullptr, &queries_),
      "vkCreateQueryPool");
}

Sentinels::~Sentinels() {
  vk_.vkDestroyQueryPool(device_, queries_, nullptr);
}

void Sentinels::prepare(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  vk_.vkResetQueryPool(device_, queries_, ticket % count, 1);
  prepared_ = ticket;
}

void Sentinels::append(VkCommandBuffer commands, uint64_t ticket) {
  vk_.vkCmdWriteTimestamp(
      commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, ticket % count);
}

bool Sentinels::available(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  if (ticket + count <= prepared_) {
    return true;
  }
  uint64_t time;
  return vk_.vkGetQueryPoolResults(
             device_,
             queries_,
             ticket % count,
             1,
             sizeof time,
             &time,
             sizeof time,
             VK_QUERY_RESULT_64_BIT) == VK_SUCCESS;
}

bool Sentinels::written(uint64_t ticket) {
  auto end = std::chrono::steady_clock::now() + patience;
  while (!useless_) {
    if (available(ticket)) {
      shown_ = true;
      break;
    }
    if (std::chrono::steady_clock::now() >= end) {
      useless_ = !shown_;
      return useless_;
    }
    std::this_thread::yield();
  }
  return true;
}

} // namespace mlx::core::vulkan
