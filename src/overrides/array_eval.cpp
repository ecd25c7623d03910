// Replaces array::eval(): errors.
//
// Python's buffer protocol catches exceptions of array::eval(), but an
// exception of array::data() ends the process. On a device with memory of its
// own data() copies to the host, which fails if the device is lost or memory is
// short. The copy is therefore made here, when an array is evaluated to be
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
