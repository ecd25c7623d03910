"""Makes the Vulkan build the libmlx.so of this process, at `import mlx.core`.

Imported by mlx_vulkan.pth when Python starts, so it imports nothing itself. The
stock mlx.core asks the dynamic linker for libmlx.so, which takes the one that is
loaded already. MLX_VK=0 leaves the choice to the linker.
"""

import sys


class Finder:
    """Finds nothing; goes when it has seen mlx.core."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "mlx.core":
            sys.meta_path.remove(Finder)
            load()
        return None


def load() -> None:
    import os
    from importlib import metadata

    here = os.path.dirname(os.path.abspath(__file__))
    library = os.path.join(here, "mlx_vulkan", "lib", "libmlx.so")
    if os.environ.get("MLX_VK") == "0" or not os.path.exists(library):
        return
    import warnings

    versions = []
    for package in ("mlx", "mlx-vulkan"):
        try:
            versions.append(metadata.version(package).split(".post")[0])
        except metadata.PackageNotFoundError:
            versions.append(None)
    if None not in versions and versions[0] != versions[1]:
        warnings.warn(
            f"mlx is {versions[0]} and mlx-vulkan is for {versions[1]}: it is not "
            f"used. Run: pip install mlx=={versions[1]}",
            stacklevel=2,
        )
        return
    import ctypes

    try:
        ctypes.CDLL(library)
    except OSError as error:
        warnings.warn(f"mlx-vulkan is not used: {error}", stacklevel=2)


sys.meta_path.insert(0, Finder)
