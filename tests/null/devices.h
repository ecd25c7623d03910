// Snapshots of devices, invented and of the table.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>

#include "variants/variants.h"
#include "vk/caps.h"

// A GPU with all that is required and no more.
inline mlx::core::vulkan::Caps usable_gpu(
    const char* name,
    VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU) {
  mlx::core::vulkan::Caps c;
  c.name = name;
  c.uuid = "00112233445566778899aabbccddeeff";
  c.type = type;
  c.api_version = VK_API_VERSION_1_2;
  c.buffer_device_address = c.timeline_semaphore = true;
  c.scalar_block_layout = c.storage_8bit = c.storage_16bit = true;
  c.shader_int8 = c.shader_int16 = c.shader_int64 = true;
  c.subgroup_operations = mlx::core::vulkan::least_subgroup_operations;
  c.compute_queue_family = 0;
  c.subgroup_size = c.min_subgroup_size = c.max_subgroup_size = 32;
  c.max_workgroup_size = 1024;
  c.shared_memory = 32768;
  c.max_push_constants = 128;
  return c;
}

// The first of device_table() whose name begins so.
inline const mlx::core::vulkan::Caps& caps_of(std::string_view name) {
  auto& table = mlx::core::vulkan::device_table();
  auto found = std::find_if(table.begin(), table.end(), [&](auto& caps) {
    return caps.name.starts_with(name);
  });
  REQUIRE(found != table.end());
  return *found;
}
