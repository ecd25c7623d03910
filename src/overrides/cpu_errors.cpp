// Replaces is_main_thread() in scheduler.cpp: errors.
//
// MLX's CPU streams keep the error of a task. On the main thread the next
// task's enqueue throws and clears it, and that next task stays counted as
// active: a waiter for the failed task then sees no error and reads what was
// never written, and after ten such errors evals wait forever. On other threads
// the error is kept for a waiter for the result, and here on all threads.
//
// What MLX could offer: docs/dev/upstream.md, "Errors of CPU tasks".
#include "mlx/utils.h"

namespace mlx::core {

// The name that is_main_thread() gets there (cmake/overrides.cmake).
bool enqueue_throws();
bool enqueue_throws() {
  // MLX takes the first caller for the main thread; that must be the scheduler,
  // which calls this at its start.
  is_main_thread();
  return false;
}

} // namespace mlx::core
