#include "gpu_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace rdna {

namespace {

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::abort();
}

// Not the C library's mmap(), which the drm shim replaces.
void* map_pages(
    void* at,
    uint64_t bytes,
    int access,
    int flags,
    int file,
    uint64_t offset) {
  long result = syscall(SYS_mmap, at, bytes, access, flags, file, offset);
  if (result == -1) {
    give_up("rdna: mmap");
  }
  return reinterpret_cast<void*>(result);
}

} // namespace

GpuMemory::Object::~Object() {
  fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
}

GpuMemory::GpuMemory() : pages_(size / page / 64) {
  constexpr int unbacked = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  range_ = static_cast<uint8_t*>(
      map_pages(nullptr, size, PROT_NONE, unbacked, -1, 0));
  file_ = memfd_create("rdna memory", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, 2 * first_offset)) {
    give_up("rdna: memfd_create");
  }
}

uint32_t GpuMemory::create(uint64_t bytes) {
  std::lock_guard guard(lock_);
  bytes = (bytes + page - 1) / page * page;
  objects_[next_handle_] =
      std::shared_ptr<Object>(new Object{next_offset_, bytes, file_});
  next_offset_ += bytes;
  return next_handle_++;
}

bool GpuMemory::close(uint32_t handle) {
  std::lock_guard guard(lock_);
  return objects_.erase(handle) == 1;
}

std::optional<uint64_t> GpuMemory::mmap_offset(uint32_t handle) {
  std::lock_guard guard(lock_);
  auto found = objects_.find(handle);
  if (found == objects_.end()) {
    return std::nullopt;
  }
  return found->second->offset;
}

bool GpuMemory::map(
    uint32_t handle,
    uint64_t offset,
    uint64_t address,
    uint64_t bytes) {
  std::lock_guard guard(lock_);
  auto found = objects_.find(handle);
  uint64_t at = address - base;
  if (found == objects_.end() || at >= size || bytes > size - at || !bytes ||
      (at | offset | bytes) % page || offset > found->second->bytes ||
      bytes > found->second->bytes - offset) {
    return false;
  }
  forget(address, bytes);
  constexpr int shared = MAP_SHARED | MAP_FIXED;
  uint64_t from = found->second->offset + offset;
  map_pages(host(address), bytes, PROT_READ | PROT_WRITE, shared, file_, from);
  mappings_[address] = {bytes, found->second};
  set_bits(address, bytes, true);
  return true;
}

bool GpuMemory::unmap(uint64_t address, uint64_t bytes) {
  uint64_t at = address - base;
  if (at >= size || bytes > size - at || (at | bytes) % page) {
    return false;
  }
  std::lock_guard wait(used_);
  std::lock_guard guard(lock_);
  forget(address, bytes);
  set_bits(address, bytes, false);
  constexpr int unbacked =
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  map_pages(host(address), bytes, PROT_NONE, unbacked, -1, 0);
  return true;
}

bool GpuMemory::all_mapped(uint64_t address, uint64_t bytes) const {
  for (uint64_t at = 0; at < bytes; at += page) {
    if (!mapped(address + at, std::min(page, bytes - at))) {
      return false;
    }
  }
  return true;
}

std::string GpuMemory::place(uint64_t address) {
  std::lock_guard guard(lock_);
  auto after = mappings_.upper_bound(address);
  if (after == mappings_.begin()) {
    return "is below all GEM objects";
  }
  auto& [begin, mapping] = *std::prev(after);
  uint64_t offset = address - begin;
  std::string size = std::to_string(mapping.bytes) + " bytes";
  if (offset < mapping.bytes) {
    return "is byte " + std::to_string(offset) + " of a GEM object of " + size;
  }
  return "is " + std::to_string(offset - mapping.bytes) +
      " bytes behind a GEM object of " + size;
}

void GpuMemory::set_bits(uint64_t address, uint64_t bytes, bool value) {
  uint64_t first = (address - base) / page;
  for (uint64_t p = first; p < first + bytes / page; ++p) {
    uint64_t mask = uint64_t(1) << (p % 64);
    pages_[p / 64] = value ? pages_[p / 64] | mask : pages_[p / 64] & ~mask;
  }
}

// Removes the range from the mappings; what it cuts in two stays on both sides.
void GpuMemory::forget(uint64_t address, uint64_t bytes) {
  uint64_t end = address + bytes;
  auto it = mappings_.upper_bound(address);
  if (it != mappings_.begin()) {
    --it;
  }
  while (it != mappings_.end() && it->first < end) {
    uint64_t first = it->first, last = first + it->second.bytes;
    if (last <= address) {
      ++it;
      continue;
    }
    auto object = it->second.object;
    it = mappings_.erase(it);
    if (first < address) {
      mappings_[first] = {address - first, object};
    }
    if (last > end) {
      mappings_[end] = {last - end, object};
    }
  }
}

GpuMemory& gpu_memory() {
  static auto* memory = new GpuMemory;
  return *memory;
}

} // namespace rdna
