"""What the library's tuner answers (src/ops/tuned/tuner.cpp)."""

import ctypes
import json

from .. import native


def ask(task: str, **more):
    """Throws RuntimeError with the library's sentence."""
    call = native.library().mlx_vulkan_tuner
    call.restype = ctypes.c_char_p
    call.argtypes = [ctypes.c_char_p]
    answer = json.loads(call(json.dumps({"do": task, **more}).encode()).decode())
    if isinstance(answer, dict) and "error" in answer:
        raise RuntimeError(answer["error"])
    return answer


def status() -> dict:
    return ask("status")


def table_in_use() -> dict:
    """Also of a device that is not started."""
    return ask("table")


def record(on: bool) -> None:
    ask("record", on=on)


def classes() -> list[dict]:
    """The classes of problems planned since recording began, with candidates."""
    return ask("classes")


def prepare() -> None:
    """Builds the kernels of the candidates of each recorded problem."""
    ask("prepare")


def use(choices: list[dict]) -> None:
    names = ("problem", "variant")
    ask("use", choices=[{name: one[name] for name in names} for one in choices])


def store(table: dict) -> bool:
    return ask("store", table=table)


def measure(function, timestamps: bool) -> float:
    """Seconds that the device is busy with what `function` starts; of the clock on
    the wall where it has no timestamps."""
    import time

    import mlx.core as mx

    mx.synchronize()
    ask("spans", on=timestamps)
    begun = time.perf_counter()
    function()
    mx.synchronize()
    seconds = time.perf_counter() - begun
    if timestamps:
        seconds = ask("busy") or seconds
        ask("spans", on=False)
    return seconds
