// AMD chips that Mesa's drm shim does not have, for tools/driver_lab.py: loaded
// before the shim, changes what it says of a related chip's compute units and
// identity. MLXVK_AMD_CHIP holds decimal numbers: PCI device, external
// revision, shader engines, arrays an engine and compute units an array.
#include <dlfcn.h>
#include <libdrm/amdgpu_drm.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace {

void change(drm_amdgpu_info_device& d) {
  unsigned device, revision, engines, arrays, units;
  const char* text = std::getenv("MLXVK_AMD_CHIP");
  if (!text ||
      std::sscanf(
          text,
          "%u %u %u %u %u",
          &device,
          &revision,
          &engines,
          &arrays,
          &units) != 5) {
    std::fputs("MLXVK_AMD_CHIP has to hold five numbers.\n", stderr);
    std::abort();
  }
  d.device_id = device;
  d.external_rev = revision;
  d.num_shader_engines = engines;
  d.num_shader_arrays_per_engine = arrays;
  d.num_cu_per_sh = units;
  d.cu_active_number = engines * arrays * units;
  for (unsigned e = 0; e < 4; ++e) {
    for (unsigned a = 0; a < 4; ++a) {
      d.cu_bitmap[e][a] = e < engines && a < arrays ? (1u << units) - 1 : 0;
    }
  }
}

} // namespace

extern "C" int ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  static const auto next = reinterpret_cast<int (*)(int, unsigned long, ...)>(
      dlsym(RTLD_NEXT, "ioctl"));
  int result = next(fd, request, argument);
  if (_IOC_TYPE(request) == 'd' && _IOC_NR(request) == 0x40 + DRM_AMDGPU_INFO) {
    auto& info = *static_cast<drm_amdgpu_info*>(argument);
    if (info.query == AMDGPU_INFO_DEV_INFO) {
      drm_amdgpu_info_device whole{};
      auto* to = reinterpret_cast<char*>(info.return_pointer);
      size_t size = std::min<size_t>(info.return_size, sizeof(whole));
      std::copy_n(to, size, reinterpret_cast<char*>(&whole));
      change(whole);
      std::copy_n(reinterpret_cast<char*>(&whole), size, to);
    }
  }
  return result;
}
