#!/bin/bash
# The ARM wheel under qemu-user, on the arm64 build of lavapipe: import, doctor, and
# operations of each family against NumPy.
# Usage: smoke.sh BUILD PYTHON WHEEL   (BUILD/root is tools/aarch64.sh's)
set -euo pipefail
build="$1" python="$2" wheel="$3"
root="$build/root"
site="$build/site"
here="$(dirname "$(readlink -f "$0")")"
mlx=$(basename "$wheel" | sed -n 's/^mlx_vulkan-\([0-9.]*\)\.post.*/\1/p')

rm -rf "$site"
# The frontend's wheel is of this Python, and everything else of any.
"$python" -m pip install -q --no-deps --only-binary=:all: --target "$site" \
  --python-version 3.11 --implementation cp --platform manylinux_2_35_aarch64 \
  "mlx==$mlx" 'rich>=13' markdown-it-py mdurl pygments "$wheel"

arm() {
  qemu-aarch64-static -L "$root" -E LD_LIBRARY_PATH= \
    -E PYTHONPATH="$site:$root/usr/lib/python3/dist-packages" \
    -E VK_DRIVER_FILES="$root/usr/share/vulkan/icd.d/lvp_icd.aarch64.json" \
    -E MLX_VK_DEVICE=cpu -E MLX_VK_FALLBACK=deny -E XDG_CACHE_HOME="$build/cache" \
    "$root/usr/bin/python3.11" "$@"
}
arm -m mlx_vulkan doctor
arm "$here/smoke.py"
