"""The libmlx.so that this process uses, and its report."""

import ctypes
import functools
import importlib.util
import json
import os
import sys
from importlib import metadata
from pathlib import Path

from .arguments import Failed

OTHER_BACKENDS = ("mlx-cpu", "mlx-cuda-12", "mlx-cuda-13")
REPAIR = "pip install --force-reinstall --no-deps mlx-vulkan"
REPAIR_ALL = "pip install --force-reinstall mlx-vulkan"
CACHE_OFF = "off (MLX_VK_CACHE=off or empty, or there is no home folder)"


def installed(package: str) -> str | None:
    """The installed version of a distribution, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def other_backends() -> list[str]:
    return [name for name in OTHER_BACKENDS if installed(name)]


@functools.cache
def import_error() -> str | None:
    """Why `import mlx.core` fails, or None when it works."""
    try:
        import mlx.core  # noqa: F401
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def own_library() -> Path:
    return Path(__file__).resolve().parent / "lib" / "libmlx.so"


class LoadedObject(ctypes.Structure):
    """The beginning of dl_phdr_info, dl_iterate_phdr(3)."""

    _fields_ = (("address", ctypes.c_void_p), ("name", ctypes.c_char_p))


def loaded_libraries() -> list[str]:
    """Names of this process's libraries, from the dynamic linker: /proc/self/maps may
    lack parts while other threads map memory."""
    names = []

    @ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(LoadedObject), ctypes.c_size_t, ctypes.c_void_p
    )
    def note(entry, size, data):
        names.append(os.fsdecode(entry.contents.name or b""))
        return 0

    ctypes.CDLL(None).dl_iterate_phdr(note, None)
    return names


def loaded_library() -> str | None:
    """The path of the loaded libmlx.so; of several it is our own, since
    mlx/lib/libmlx.so only links to that."""
    names = [n for n in loaded_libraries() if Path(n).name == "libmlx.so"]
    ours = [n for n in names if Path(n).resolve() == own_library()]
    return next(iter(ours or names), None)


def library_path() -> Path | None:
    """The libmlx.so that is loaded, else the one that an import would take."""
    if loaded := loaded_library():
        return Path(loaded).resolve()
    if own_library().exists() and os.environ.get("MLX_VK") != "0":
        return own_library()
    spec = importlib.util.find_spec("mlx")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder) / "lib" / "libmlx.so"
        if path.exists():
            return path
    return None


def allocator_path() -> Path | None:
    """The mimalloc that `mlx-vulkan run` preloads."""
    path = Path(__file__).parent / "lib" / "libmimalloc.so"
    return path.resolve() if path.exists() else None


def allocator_is_loaded() -> bool:
    return any(Path(n).name == "libmimalloc.so" for n in loaded_libraries())


@functools.cache
def library() -> ctypes.CDLL | None:
    # mlx.core first: it decides which libmlx a process runs on.
    import_error()
    # Under its own name, so that no second copy can be loaded.
    path = loaded_library() or library_path()
    if path is None:
        return None
    try:
        return ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError:
        return None


def is_vulkan() -> bool:
    return hasattr(library(), "mlx_vulkan_doctor_json")


def report() -> dict:
    """The library's report: loader, devices, config, cache, counters."""
    if not is_vulkan():
        return {}
    call = library().mlx_vulkan_doctor_json
    call.restype = ctypes.c_char_p
    call.argtypes = []
    return json.loads(call().decode())


def require_device() -> None:
    """Throws Failed if MLX does not run on a Vulkan device."""
    facts = report()
    if not any(device.get("selected") for device in facts.get("devices", ())):
        why = facts.get("loader", {}).get("why") or "libmlx.so is not the Vulkan build"
        raise Failed(
            f"There is no Vulkan device: {why}. `mlx-vulkan doctor` says what to do."
        )


def prepare_cuts(on: bool) -> None:
    """Sets whether kernels of batches that end elsewhere are compiled too."""
    call = library().mlx_vulkan_prepare_cuts
    call.restype = None
    call.argtypes = [ctypes.c_bool]
    call(on)


def counters() -> dict:
    return report().get("counters", {})


def problems() -> list[str]:
    """Problems of this installation, as sentences with the repair."""
    found = []
    path = library_path()
    if installed("mlx") is None and importlib.util.find_spec("mlx") is None:
        return [f"The frontend package mlx is missing; run: {REPAIR_ALL}"]
    ours, frontend = installed("mlx-vulkan"), installed("mlx")
    if ours and frontend and ours.split(".post")[0] != frontend:
        version = ours.split(".post")[0]
        return [
            f"mlx is {frontend} but mlx-vulkan is {ours}; they must be the same "
            f"version: pip install 'mlx-vulkan=={frontend}.*' or pip install "
            f"mlx=={version}"
        ]
    if import_error():
        found.append(f"`import mlx.core` fails ({import_error()}).")
    if path is None:
        found.append(f"No libmlx.so is installed; run: {REPAIR}")
    elif library() is not None and not is_vulkan():
        found.append(not_loaded(path))
    return found


def not_loaded(path: Path) -> str:
    others = " or ".join(other_backends()) or "another backend"
    text = f"{path} is loaded, which is not the Vulkan build (it is from {others}). "
    if os.environ.get("MLX_VK") == "0":
        return text + "MLX_VK=0 asks for that: unset it."
    if "_mlx_vulkan" not in sys.modules:
        return text + (
            "Python has not run mlx_vulkan.pth, for example because the packages are "
            "on PYTHONPATH only. Import _mlx_vulkan before mlx.core, or reinstall: "
            + REPAIR
        )
    return text + f"To repair: {REPAIR}"
