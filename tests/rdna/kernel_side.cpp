// The amdgpu kernel driver: preloaded before Mesa's drm shim, whose devices
// describe themselves but have neither memory nor engines. Takes over the
// ioctls of memory, synchronization and submission; the shim keeps the others.
//
// Submissions run one after the other on a thread of their own, in the order in
// which they were made.
#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dlfcn.h>
#include <cerrno>
#include <condition_variable>
#include <cstdarg>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu_memory.h"
#include "packets.h"
#include "timelines.h"

namespace rdna {

namespace {

constexpr int64_t forever = std::numeric_limits<int64_t>::max();

Timelines& timelines() {
  static auto* all = new Timelines;
  return *all;
}

struct Submission {
  struct Commands {
    uint64_t address;
    uint32_t words;
  };
  std::vector<Point> waits, signals;
  std::vector<Commands> commands;
};

// Submissions and the thread that runs them. Number n is done when point n of
// `done` is signaled.
class Engine {
 public:
  Engine() : done(timelines().create(false)) {
    std::thread([this] { run(); }).detach();
  }

  uint64_t add(Submission s) {
    std::lock_guard guard(lock_);
    s.signals.push_back({done, ++count_});
    for (auto& point : s.signals) {
      timelines().promise(point);
    }
    queue_.push_back(std::move(s));
    added_.notify_one();
    return count_;
  }

  const uint32_t done;

 private:
  [[noreturn]] void run() {
    for (;;) {
      Submission s = next();
      timelines().wait(s.waits, true, Timelines::For::Signal, forever);
      for (auto& c : s.commands) {
        processor_.run(c.address, c.words);
      }
      processor_.end_submission();
      for (auto& point : s.signals) {
        timelines().signal(point);
      }
    }
  }
  Submission next() {
    std::unique_lock guard(lock_);
    added_.wait(guard, [&] { return !queue_.empty(); });
    Submission s = std::move(queue_.front());
    queue_.pop_front();
    return s;
  }

  std::mutex lock_;
  std::condition_variable added_;
  std::deque<Submission> queue_;
  uint64_t count_ = 0;
  CommandProcessor processor_;
};

Engine& engine() {
  static auto* e = new Engine; // its thread may outlive main
  return *e;
}

template <class T>
T* pointer(uint64_t address) {
  return reinterpret_cast<T*>(uintptr_t(address));
}

int fail(int error) {
  errno = error;
  return -1;
}

// Point 0 means a binary object, which is point 1 here.
Point point_of(uint32_t handle, uint64_t value) {
  return {handle, value ? value : 1};
}

// Memory ----------------------------------------------------------------------

int create_object(drm_amdgpu_gem_create& a) {
  uint32_t handle = gpu_memory().create(a.in.bo_size);
  a.out = {handle, 0};
  return 0;
}

int find_object(drm_amdgpu_gem_mmap& a) {
  auto offset = gpu_memory().mmap_offset(a.in.handle);
  if (!offset) {
    return fail(ENOENT);
  }
  a.out.addr_ptr = *offset;
  return 0;
}

int map_object(const drm_amdgpu_gem_va& a) {
  switch (a.operation) {
    case AMDGPU_VA_OP_MAP:
    case AMDGPU_VA_OP_REPLACE: {
      // A sparse buffer's range without memory has no object.
      bool done = a.handle
          ? gpu_memory().map(a.handle, a.offset_in_bo, a.va_address, a.map_size)
          : gpu_memory().unmap(a.va_address, a.map_size);
      return done ? 0 : fail(EINVAL);
    }
    case AMDGPU_VA_OP_UNMAP:
    case AMDGPU_VA_OP_CLEAR:
      return gpu_memory().unmap(a.va_address, a.map_size) ? 0 : fail(EINVAL);
  }
  return fail(EINVAL);
}

// Submissions -----------------------------------------------------------------

// The items of a chunk of a submission.
template <class T>
std::span<const T> items(const drm_amdgpu_cs_chunk& c) {
  return {pointer<const T>(c.chunk_data), c.length_dw * 4 / sizeof(T)};
}

void add_chunk(Submission& s, const drm_amdgpu_cs_chunk& c) {
  switch (c.chunk_id) {
    case AMDGPU_CHUNK_ID_IB:
      for (auto& ib : items<drm_amdgpu_cs_chunk_ib>(c)) {
        s.commands.push_back({ib.va_start, ib.ib_bytes / 4});
      }
      break;
    case AMDGPU_CHUNK_ID_SYNCOBJ_IN:
      for (auto& item : items<drm_amdgpu_cs_chunk_sem>(c)) {
        s.waits.push_back(point_of(item.handle, 0));
      }
      break;
    case AMDGPU_CHUNK_ID_SYNCOBJ_OUT:
      for (auto& item : items<drm_amdgpu_cs_chunk_sem>(c)) {
        timelines().reset(item.handle); // of an earlier use
        s.signals.push_back(point_of(item.handle, 0));
      }
      break;
    case AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT:
      for (auto& item : items<drm_amdgpu_cs_chunk_syncobj>(c)) {
        s.waits.push_back(point_of(item.handle, item.point));
      }
      break;
    case AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL:
      for (auto& item : items<drm_amdgpu_cs_chunk_syncobj>(c)) {
        s.signals.push_back(point_of(item.handle, item.point));
      }
      break;
  }
}

int submit(drm_amdgpu_cs& a) {
  Submission s;
  auto* chunks = pointer<const uint64_t>(a.in.chunks);
  for (uint32_t i = 0; i < a.in.num_chunks; ++i) {
    add_chunk(s, *pointer<const drm_amdgpu_cs_chunk>(chunks[i]));
  }
  uint64_t number = engine().add(std::move(s));
  a.out = {number};
  return 0;
}

int wait_for_submission(drm_amdgpu_wait_cs& a) {
  Point point{engine().done, a.in.handle};
  auto until = a.in.timeout > uint64_t(forever) ? forever : a.in.timeout;
  auto reached =
      timelines().wait({&point, 1}, true, Timelines::For::Signal, until);
  a.out.status = !reached;
  return 0;
}

// Synchronization objects -----------------------------------------------------

// For drm_syncobj_wait and, with points, drm_syncobj_timeline_wait.
template <class Wait>
int wait_for_points(Wait& a, const uint64_t* values) {
  std::vector<Point> points;
  for (uint32_t i = 0; i < a.count_handles; ++i) {
    uint32_t handle = pointer<const uint32_t>(a.handles)[i];
    points.push_back(point_of(handle, values ? values[i] : 0));
  }
  auto reached = timelines().wait(
      points,
      a.flags & DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL,
      a.flags & DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE ? Timelines::For::Promise
                                                      : Timelines::For::Signal,
      a.timeout_nsec);
  if (!reached) {
    return fail(ETIME);
  }
  a.first_signaled = *reached;
  return 0;
}

int query(const drm_syncobj_timeline_array& a) {
  for (uint32_t i = 0; i < a.count_handles; ++i) {
    auto value = timelines().value(
        pointer<const uint32_t>(a.handles)[i],
        a.flags & DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED);
    if (!value) {
      return fail(ENOENT);
    }
    pointer<uint64_t>(a.points)[i] = *value;
  }
  return 0;
}

int transfer(const drm_syncobj_transfer& a) {
  Point from = point_of(a.src_handle, a.src_point);
  Point to = point_of(a.dst_handle, a.dst_point);
  return timelines().transfer(from, to) ? 0 : fail(EINVAL);
}

template <class Array, class Call>
int each_handle(const Array& a, Call call) {
  for (uint32_t i = 0; i < a.count_handles; ++i) {
    call(pointer<const uint32_t>(a.handles)[i], i);
  }
  return 0;
}

int signal_points(const drm_syncobj_timeline_array& a) {
  return each_handle(a, [&](uint32_t handle, uint32_t i) {
    auto value = pointer<const uint64_t>(a.points)[i];
    timelines().signal(point_of(handle, value));
  });
}

// Ioctls by number ------------------------------------------------------------

constexpr int unhandled = 1;

int amdgpu(unsigned number, void* a) {
  switch (number) {
    case DRM_AMDGPU_GEM_CREATE:
      return create_object(*static_cast<drm_amdgpu_gem_create*>(a));
    case DRM_AMDGPU_GEM_MMAP:
      return find_object(*static_cast<drm_amdgpu_gem_mmap*>(a));
    case DRM_AMDGPU_GEM_VA:
      return map_object(*static_cast<const drm_amdgpu_gem_va*>(a));
    case DRM_AMDGPU_GEM_USERPTR: // would need the host's pages twice
      return fail(EINVAL);
    case DRM_AMDGPU_CS:
      return submit(*static_cast<drm_amdgpu_cs*>(a));
    case DRM_AMDGPU_WAIT_CS:
      return wait_for_submission(*static_cast<drm_amdgpu_wait_cs*>(a));
  }
  return unhandled;
}

int core(unsigned number, void* a) {
  switch (number) {
    case _IOC_NR(DRM_IOCTL_GEM_CLOSE):
      return gpu_memory().close(static_cast<drm_gem_close*>(a)->handle)
          ? 0
          : fail(EINVAL);
    case _IOC_NR(DRM_IOCTL_SYNCOBJ_CREATE): {
      auto& c = *static_cast<drm_syncobj_create*>(a);
      c.handle = timelines().create(c.flags & DRM_SYNCOBJ_CREATE_SIGNALED);
      return 0;
    }
    case _IOC_NR(DRM_IOCTL_SYNCOBJ_DESTROY):
      timelines().destroy(static_cast<drm_syncobj_destroy*>(a)->handle);
      return 0;
    case _IOC_NR(DRM_IOCTL_SYNCOBJ_WAIT):
      return wait_for_points(*static_cast<drm_syncobj_wait*>(a), nullptr);
    case _IOC_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT): {
      auto& w = *static_cast<drm_syncobj_timeline_wait*>(a);
      return wait_for_points(w, pointer<const uint64_t>(w.points));
    }
    case _IOC_NR(DRM_IOCTL_SYNCOBJ_RESET):
      return each_handle(
          *static_cast<drm_syncobj_array*>(a),
          [](uint32_t handle, uint32_t) { timelines().reset(handle); });
    case _IOC_NR(DRM_IOCTL_SYNCOBJ_SIGNAL):
      return each_handle(
          *static_cast<drm_syncobj_array*>(a), [](uint32_t handle, uint32_t) {
            timelines().signal({handle, 1});
          });
    case _IOC_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL):
      return signal_points(*static_cast<drm_syncobj_timeline_array*>(a));
    case _IOC_NR(DRM_IOCTL_SYNCOBJ_QUERY):
      return query(*static_cast<drm_syncobj_timeline_array*>(a));
    case _IOC_NR(DRM_IOCTL_SYNCOBJ_TRANSFER):
      return transfer(*static_cast<drm_syncobj_transfer*>(a));
  }
  return unhandled;
}

int handle(unsigned number, void* a) {
  bool of_driver = number >= DRM_COMMAND_BASE && number < DRM_COMMAND_END;
  return of_driver ? amdgpu(number - DRM_COMMAND_BASE, a) : core(number, a);
}

void* map_file(
    void* at,
    size_t bytes,
    int access,
    int flags,
    int file,
    off_t offset) {
  if (uint64_t(offset) >= GpuMemory::first_offset && !(flags & MAP_ANONYMOUS)) {
    file = gpu_memory().file();
  }
  long p = syscall(SYS_mmap, at, bytes, access, flags, file, offset);
  return reinterpret_cast<void*>(p);
}

} // namespace

} // namespace rdna

// What programs and Mesa call instead of the C library.
#define RDNA_EXPORT extern "C" __attribute__((visibility("default")))

RDNA_EXPORT int ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  static const auto next = reinterpret_cast<int (*)(int, unsigned long, ...)>(
      dlsym(RTLD_NEXT, "ioctl"));
  if (_IOC_TYPE(request) == DRM_IOCTL_BASE) {
    int result = rdna::handle(_IOC_NR(request), argument);
    if (result != rdna::unhandled) {
      return result;
    }
  }
  return next(fd, request, argument);
}

RDNA_EXPORT void*
mmap(void* at, size_t bytes, int access, int flags, int fd, off_t offset) {
  return rdna::map_file(at, bytes, access, flags, fd, offset);
}

RDNA_EXPORT void*
mmap64(void* at, size_t bytes, int access, int flags, int fd, off64_t offset) {
  return rdna::map_file(at, bytes, access, flags, fd, offset);
}
