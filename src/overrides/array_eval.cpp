// Replaces array::eval(): errors.
//
// Python's buffer protocol catches what array::eval() throws, but not what
// array::data() does, which ends the process. On a device with memory of its
// own data() copies to the host, and that fails where the device is lost or
// memory is short. So the copy is made here, where an array is asked for to be
// read.
//
// What MLX could offer: docs/dev/upstream.md, "Errors while an array is read".
#include "backend/stream_encoder.h"
#include "mlx/array.h"
#include "mlx/transforms.h"
#include "runtime/device.h"
#include "runtime/memory.h"

namespace mlx::core {

void array::eval() {
  if (status() == Status::unscheduled) {
    mlx::core::eval({*this});
  } else {
    wait();
  }
  auto* device = vulkan::device_if_started();
  auto* buffer = device ? vulkan::buffer_of(*this) : nullptr;
  if (buffer && buffer->mirrored()) {
    device->memory().prepare_for_host(*buffer);
  }
}

} // namespace mlx::core
