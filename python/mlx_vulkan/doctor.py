"""Say whether MLX uses the GPU, and what to do if it does not.

Shows the installation, devices, missing features, memory, kernel cache and
settings. The first line is the verdict: OK, SLOW or NOT USED.
"""

import json
import os
import platform

from . import advice, amdgpu, drivers, native, watchdog
from .layout import field, heading, paragraph, wrapped
from .tune import library, table

EXAMPLES = """
mlx-vulkan doctor
mlx-vulkan doctor --json > doctor.json    # to attach to an issue
MLX_VK_DEVICE=cpu mlx-vulkan doctor       # look at the software device
"""
EXIT = "Exit status: 0 for OK and SLOW, 1 for NOT USED."

# Gains of mimalloc on the hosts where it was measured.
GAIN = "which makes graph building about 10 % and encoding about 30 % faster"


def add_arguments(parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead")


def gather() -> dict:
    path = native.library_path()
    packages = ("mlx", "mlx-vulkan", "mlx-lm", *native.OTHER_BACKENDS)
    facts = {
        "problems": native.problems(),
        "libmlx": str(path) if path else None,
        "vulkan": native.is_vulkan(),
        "packages": {name: native.installed(name) for name in packages},
        "python": platform.python_version(),
        "allocator": allocator(),
        **native.report(),
    }
    for device in facts.get("devices", ()):
        if device["selected"]:
            device["tuned"] = library.table_in_use()
    word, reason = advice.verdict(facts)
    steps = advice.steps(facts)
    return {"verdict": word, "reason": reason, "what_to_do": steps, **facts}


def run(args) -> int:
    facts = gather()
    if args.json:
        print(json.dumps(facts, indent=2))
    else:
        show(facts)
    return 1 if facts["verdict"] == advice.NOT_USED else 0


def allocator() -> dict:
    path = native.allocator_path()
    return {
        "path": str(path) if path else None,
        "loaded": native.allocator_is_loaded(),
        "preloaded": os.environ.get("LD_PRELOAD", ""),
    }


def show(facts: dict) -> None:
    print(wrapped(facts["reason"], f"{facts['verdict']}: ", "  "))
    show_installation(facts)
    if facts["vulkan"]:
        show_devices(facts)
        show_cache(facts.get("cache", {}))
        show_config(facts.get("config", []), facts.get("unknown_settings", []))
    show_steps(facts["what_to_do"])


def show_installation(facts: dict) -> None:
    heading("Installation")
    field("libmlx", facts["libmlx"] or "not found")
    for name, version in facts["packages"].items():
        if version:
            field(name, version)
    field("python", facts["python"])
    show_allocator(facts["allocator"])
    for problem in facts["problems"]:
        field("PROBLEM", problem)


def show_allocator(allocator: dict) -> None:
    if allocator["loaded"]:
        field("malloc", "mimalloc, by `mlx-vulkan run`")
    elif allocator["path"]:
        field(
            "malloc",
            "the system's; `mlx-vulkan run -- COMMAND` runs a command with mimalloc, "
            + GAIN,
        )
    else:
        field("malloc", "the system's; mlx_vulkan/lib/libmimalloc.so is missing")
    if allocator["preloaded"]:
        field("", f"LD_PRELOAD={allocator['preloaded']}")


def show_devices(facts: dict) -> None:
    devices = facts.get("devices", [])
    if not devices:
        heading("Devices: none")
    else:
        heading(f"Devices ({'*' if advice.selected(facts) else 'none'} in use)")
    if not facts.get("loader", {}).get("found"):
        print("  The Vulkan loader (libvulkan.so.1) is missing.")
    for index, device in enumerate(devices):
        show_device(index, device)
    if facts.get("local_rank") is not None and not os.environ.get("MLX_VK_DEVICE"):
        note = (
            f"A launcher started this process with local rank {facts['local_rank']}; "
            "the GPUs are assigned to ranks in turn."
        )
        print(wrapped(note, "  ", "  "))
    if advice.selected(facts):
        print("  `mlx-vulkan selftest` checks the results of the device in use.")
        print("  `mlx-vulkan fit MODEL` says whether a model fits its memory.")


def show_device(index: int, device: dict) -> None:
    def line(label: str, value: str) -> None:
        field(label, value, indent=7)

    mark = "*" if device.get("selected") else " "
    print(
        f"{mark} {index}  {device.get('name')}  ({device.get('type')}, "
        f"Vulkan {device.get('api_version')})"
    )
    line("driver", device.get("driver", ""))
    line("uuid", device.get("uuid", ""))
    for heap in device.get("heaps", []):
        kind = "device" if heap.get("device_local") else "host"
        line("heap", f"{size(heap.get('size', 0))} of {kind} memory")
    memory = device.get("memory", {})
    if memory:
        line("memory", memory.get("model", ""))
        largest = f"largest array {size(memory.get('largest_array', 0))}"
        if "budget" in memory:
            largest += f"; available to this process now {size(memory['budget'])}"
        line("", largest)
        if "problem" in memory:
            line("PROBLEM", memory["problem"])
    if device.get("limits"):
        line("limits", limits(device["limits"]))
    optional = device.get("optional", {})
    if optional:
        there = [name for name, value in optional.items() if value]
        absent = [name for name, value in optional.items() if not value]
        line("has", ", ".join(there) or "-")
        line("lacks", ", ".join(absent) or "-")
    if device.get("missing"):
        line("MISSING", f"{', '.join(device['missing'])} (required)")
    if device.get("reason"):
        line("note", device["reason"])
    if tuned := device.get("tuned"):
        line("tuned", table.summary(tuned))
    amdgpu.show(device)
    watchdog.show(device)
    drivers.show(device)


# Limits and the phrases for them.
LIMITS = {
    "subgroup_size": "subgroups of {:,} lanes",
    "max_workgroup_size": "workgroups of up to {:,} invocations",
    "shared_memory": "{} of shared memory",
    "max_push_constants": "{:,} bytes of push constants",
    "max_buffer_size": "buffers of up to {}",
}


def limits(values: dict) -> str:
    return ", ".join(
        words.format(values[name] if "{:,}" in words else size(values[name]))
        for name, words in LIMITS.items()
        if name in values
    )


def show_cache(cache: dict) -> None:
    heading("Kernel cache")
    if not cache.get("path"):
        field("path", native.CACHE_OFF)
        return
    field("path", cache["path"])
    used, limit = size(cache["bytes"]), size(cache["limit"])
    field("entries", f"{cache['entries']:,} ({used} of at most {limit})")
    why = f"no: {cache['why_not']}; every process compiles its kernels again"
    field("writable", "yes" if cache["writable"] else why)
    for driver in cache["driver_caches"]:
        field("driver", f"{driver['name']} ({size(driver['bytes'])})")


def show_config(config: list[dict], unknown: list[dict]) -> None:
    heading("Settings in force")
    given = [entry for entry in config if entry.get("set")]
    for entry in given:
        if "expected" not in entry:
            field(f"{entry['name']}={entry.get('value')}", "")
    if not any("expected" not in entry for entry in given):
        print("  all defaults")
    for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_LOADER_DRIVERS_SELECT"):
        if name in os.environ:
            field(f"{name}={os.environ[name]}", "(read by the Vulkan loader)")
    ignored = [
        f"{entry['name']}={entry['value']}: expected {entry['expected']}; the "
        f"default{' ' + entry['default'] if entry['default'] else ''} is used"
        for entry in given
        if "expected" in entry
    ]
    ignored += [
        f"{entry['name']} is not a setting; did you mean {entry['nearest']}?"
        for entry in unknown
    ]
    if ignored:
        heading("Settings ignored")
        for sentence in ignored:
            print(wrapped(sentence, "  ", "      "))


def show_steps(steps: list[str]) -> None:
    if steps:
        heading("What to do")
    for number, step in enumerate(steps, 1):
        paragraph(f"  {number}. ", step)


def size(count: int) -> str:
    for unit, one in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= one:
            return f"{count / one:,.1f} {unit}".replace(".0 ", " ")
    return f"{count:,} bytes"
