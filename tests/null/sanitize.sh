#!/bin/sh
# Builds null_tests under a sanitizer: tests/null/sanitize.sh asan|tsan
# MLX and the driver stay out of it. The library's glslang and embedded kernels
# are built plain.
set -e
case "$1" in
  asan) kind=address ;;
  tsan) kind=thread ;;
  *) echo "usage: $0 asan|tsan" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/../.."
cmake -S . -B "build-$1" -G Ninja -DMLXVK_SANITIZE=$kind \
  -DCMAKE_BUILD_TYPE=Release > /dev/null
cmake --build "build-$1" --target null_tests ${JOBS:+-j "$JOBS"}
