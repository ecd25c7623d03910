// Replaces is_main_thread() in scheduler.cpp: errors.
//
// MLX's CPU streams keep the error of a task. On the main thread the next
// task's enqueue throws it, takes it away, and leaves the task that was counted
// as active: what waits for the failed one then sees no error and reads what
// was never written, and after ten of them evals wait for ever. On other
// threads the error waits for who waits for the result, and so it does here on
// each.
//
// What MLX could offer: docs/dev/upstream.md, "Errors of CPU tasks".
#include "mlx/utils.h"

namespace mlx::core {

// The name of is_main_thread() there (cmake/overrides.cmake).
bool enqueue_throws();
bool enqueue_throws() {
  is_main_thread(); // the first call, which the scheduler makes, says which it
                    // is
  return false;
}

} // namespace mlx::core
