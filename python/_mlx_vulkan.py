"""Makes the Vulkan build the libmlx.so of this process, at `import mlx.core`.

Imported by mlx_vulkan.pth when Python starts, so it imports nothing itself. The
stock mlx.core asks the dynamic linker for libmlx.so, which takes the one that is
loaded already. MLX_VK=0 leaves the choice to the linker.

Then mx.metal.is_available() is true where mlx-lm's and mlx-vlm's models ask whether
they may make Metal kernels, which run here, or everywhere with MLX_VK_METAL_KERNELS=1.
libmlx itself, whose arrays would tell DLPack that they are Metal's, answers no.

Model classes and caches of mlx-lm and mlx-vlm are handed to mlx_vulkan.traced, unless
MLX_VK_TRACE=0.
"""

import sys

# Modules, and packages (with a dot), that ask before they make kernels.
ASK_FOR_KERNELS = (
    "mlx_lm.models.",
    "mlx_lm.tuner.losses",
    "mlx_lm.utils",
    "mlx_vlm.models.",
    "mlx_vlm.quantization.",
    "mlx_vlm.turboquant",
)
# Several tokens by the additions, one by one, that Metal's own kernels make for one
# token: those of this backend add in other orders.
WANT_METAL_BITS = (
    "mlx_vlm.models.exact_speculative_verify",
    "mlx_vlm.models.fast_ops",
    "mlx_vlm.models.quantized_verifier",
    "mlx_vlm.models.qwen3_5.language",
    ".speculative_verifier",
)


class Finder:
    """Finds nothing but mlx.core, and goes when it has seen that."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "mlx.core":
            ours = load()
            sys.meta_path.remove(Finder)
            if ours:
                import os

                if os.environ.get("MLX_VK_TRACE") != "0":
                    sys.meta_path.insert(0, ModelFinder)
                return with_kernels(name)
        return None


class ModelFinder:
    """Finds mlx-lm's and mlx-vlm's models, whose steps are then traced, and their
    caches, with which prompts begin early."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith(("mlx_lm.models.", "mlx_vlm.models.")):
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            then(spec.loader, trace_model)
        return spec


def then(loader, act) -> None:
    """Makes a loader call act(module) once, behind its module's code."""
    execute = loader.exec_module

    def exec_module(module):
        del loader.exec_module
        execute(module)
        act(module)

    loader.exec_module = exec_module


def trace_model(module) -> None:
    if module.__name__ in ("mlx_lm.models.cache", "mlx_vlm.models.cache"):
        from mlx_vulkan.traced import caches, prompts

        caches.learn(module)
        prompts.begin_early(module)
    is_vlm = module.__name__.startswith("mlx_vlm.")
    model = getattr(module, "LanguageModel" if is_vlm else "Model", None)
    if getattr(model, "__module__", None) == module.__name__:
        from mlx_vulkan.traced import trace_class

        trace_class(model)


def with_kernels(name: str):
    """Where `name` is, as others find it, to be given its answer once it is loaded."""
    import os
    from importlib.util import find_spec

    spec = find_spec(name)
    setting = os.environ.get("MLX_VK_METAL_KERNELS")
    if spec is None or setting == "0":
        return spec
    then(spec.loader, lambda module: answer(module, to_all=setting == "1"))
    return spec


def answer(mx, to_all: bool) -> None:
    available = mx.metal.is_available

    def is_available() -> bool:
        if to_all:
            return mx.is_available(mx.gpu)
        try:
            caller = sys._getframe(1).f_globals.get("__name__") or ""
        except ValueError:  # called by no Python code
            return False
        return (
            caller.startswith(ASK_FOR_KERNELS)
            and not caller.endswith(WANT_METAL_BITS)
            and mx.is_available(mx.gpu)
        )

    is_available.__doc__ = available.__doc__
    is_available.__module__ = available.__module__
    mx.metal.is_available = is_available


def mismatch() -> str | None:
    """That mlx and mlx-vulkan are of different versions, and how to mend it."""
    from importlib import metadata

    try:
        mlx = metadata.version("mlx")
        ours = metadata.version("mlx-vulkan")
    except metadata.PackageNotFoundError:
        return None
    version = ours.split(".post")[0]
    if mlx == version:
        return None
    return (
        f"mlx is {mlx}, but mlx-vulkan is {ours}, which needs mlx {version}. Run: "
        f"pip install 'mlx-vulkan=={mlx}.*' or pip install mlx=={version}"
    )


def leads_here(library: str) -> bool:
    """Whether mlx/lib/libmlx.so is the one that only needs mlx_vulkan's."""
    try:
        with open(library, "rb") as file:
            return b"/mlx_vulkan/lib/libmlx.so" in file.read(1 << 16)
    except OSError:
        return False


def load() -> bool:
    """Whether the Vulkan build is the one that mlx.core will have."""
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    library = os.path.join(here, "mlx_vulkan", "lib", "libmlx.so")
    if not os.path.exists(library):
        return False
    import warnings

    if wrong := mismatch():
        # Another backend's library may stand there, which mlx can use.
        if leads_here(os.path.join(here, "mlx", "lib", "libmlx.so")):
            raise ImportError(wrong)
        warnings.warn(f"mlx-vulkan is not used: {wrong}", stacklevel=2)
        return False
    if os.environ.get("MLX_VK") == "0":
        return False
    import ctypes

    try:
        ctypes.CDLL(library)
        # Another that was loaded before is asked for by that name, too.
        return hasattr(ctypes.CDLL("libmlx.so"), "mlx_vulkan_doctor_json")
    except OSError as error:
        warnings.warn(f"mlx-vulkan is not used: {error}", stacklevel=2)
        return False


sys.meta_path.insert(0, Finder)
