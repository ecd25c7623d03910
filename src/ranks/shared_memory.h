// Memory that the ranks of a host share, as files and as buffers of the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mlx::core::vulkan {

class Device;
struct Buffer;

// Memory that other processes of this user can open by a path while `file` is
// open.
class SharedMemory {
 public:
  void create(uint64_t bytes);
  // In another container the path may lead to something else than `name`.
  void open(const char* path, const char* name, uint64_t bytes);
  void* data() const { // null: not mapped, errno says why
    return data_;
  }
  uint64_t size() const {
    return size_;
  }
  std::string path() const;
  static std::string name_of(const std::string& path); // empty without one
  void close_file();
  void unmap();

 private:
  void map();

  void* data_ = nullptr;
  uint64_t size_ = 0;
  int file_ = -1;
};

// Imports whole pages of the process's memory (VK_EXT_external_memory_host) as
// a buffer of kind Mapped, which the device accesses in place. Neither is ever
// freed. Throws VkError where the device cannot import.
Buffer* import_host(Device& device, void* host, size_t size);

} // namespace mlx::core::vulkan
