"""Companion of the Vulkan build of MLX: diagnosis, cache, profile, benchmark.

The backend itself is lib/libmlx.so, which _mlx_vulkan.py loads at `import
mlx.core`. Importing this package warns when another backend is the one loaded.
"""

import os
import sys
import warnings

from . import native

__version__ = native.installed("mlx-vulkan") or "unknown"

# The command prints the same problems in its own words.
if os.path.basename(sys.argv[0] if sys.argv else "") not in ("-m", "mlx-vulkan"):
    for _problem in native.problems():
        warnings.warn(_problem, stacklevel=2)
