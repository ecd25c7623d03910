#include "ranks/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <random>

namespace mlx::core::vulkan {

void SharedMemory::create(uint64_t bytes) {
  size_ = bytes;
  std::random_device random;
  auto name =
      "mlx-vulkan-" + std::to_string(random()) + "-" + std::to_string(random());
  file_ = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (file_ >= 0 && ftruncate(file_, static_cast<off_t>(bytes)) == 0) {
    map();
  }
}

void SharedMemory::open(const char* path, const char* name, uint64_t bytes) {
  size_ = bytes;
  file_ = name_of(path) == name ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file_ >= 0) {
    map();
  }
}

std::string SharedMemory::path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_);
}

std::string SharedMemory::name_of(const std::string& path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error).string();
}

void SharedMemory::close_file() {
  if (file_ >= 0) {
    close(file_);
    file_ = -1;
  }
}

void SharedMemory::unmap() {
  if (data_) {
    munmap(data_, size_);
    data_ = nullptr;
  }
}

void SharedMemory::map() {
  void* p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  data_ = p == MAP_FAILED ? nullptr : p;
}

} // namespace mlx::core::vulkan
