"""Show devices, missing features, memory, cache, versions and settings."""

import json
import os
import platform
import sys

from . import drivers, native, watchdog

# docs/benchmarks-host.md, "The calling thread".
GAIN = "which takes a tenth off building a model's graph and a third off encoding it"


def add_arguments(parser) -> None:
    parser.add_argument("--json", action="store_true", help="for programs")


def gather() -> dict:
    path = native.library_path()
    packages = ("mlx", "mlx-vulkan", "mlx-lm", *native.OTHER_BACKENDS)
    return {
        "problems": native.problems(),
        "libmlx": str(path) if path else None,
        "vulkan": native.is_vulkan(),
        "packages": {name: native.installed(name) for name in packages},
        "python": platform.python_version(),
        "allocator": allocator(),
        **native.report(),
    }


def run(args) -> int:
    facts = gather()
    if args.json:
        print(json.dumps(facts, indent=2))
    else:
        show(facts)
    return 1 if facts["problems"] or not usable(facts) else 0


def allocator() -> dict:
    path = native.allocator_path()
    return {
        "path": str(path) if path else None,
        "loaded": native.allocator_is_loaded(),
        "preloaded": os.environ.get("LD_PRELOAD", ""),
    }


def usable(facts: dict) -> bool:
    return any(device.get("selected") for device in facts.get("devices", ()))


def heading(text: str) -> None:
    bold = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{bold[0]}{text}{bold[1]}")


def show(facts: dict) -> None:
    heading("Installation")
    print(f"  libmlx    {facts['libmlx'] or 'not found'}")
    for name, version in facts["packages"].items():
        if version:
            print(f"  {name:<9} {version}")
    print(f"  python    {facts['python']}")
    show_allocator(facts["allocator"])
    for problem in facts["problems"]:
        print(f"  PROBLEM   {problem}")
    if not facts["vulkan"]:
        return

    show_loader(facts.get("loader", {}))
    devices = facts.get("devices", [])
    heading("Devices" if devices else "Devices: none")
    for index, device in enumerate(devices):
        show_device(index, device)
    if facts.get("local_rank") is not None and not os.environ.get("MLX_VK_DEVICE"):
        print(
            f"  A launcher started this process with local rank {facts['local_rank']}; "
            "the ranks share out the GPUs."
        )
    if usable(facts):
        print("  `mlx-vulkan selftest` checks what the selected device (*) computes.")
    else:
        explain_no_device(facts)
    show_cache(facts.get("cache", {}))
    show_config(facts.get("config", []))


def show_allocator(allocator: dict) -> None:
    if allocator["loaded"]:
        print("  malloc    mimalloc, by `mlx-vulkan run`")
    elif allocator["path"]:
        print(
            "  malloc    the system's; `mlx-vulkan run -- COMMAND` runs a command with "
            f"mimalloc,\n            {GAIN}"
        )
    else:
        print("  malloc    the system's; mlx_vulkan/lib/libmimalloc.so is missing")
    if allocator["preloaded"]:
        print(f"            LD_PRELOAD={allocator['preloaded']}")


def show_loader(loader: dict) -> None:
    heading("Vulkan loader")
    for key, value in loader.items():
        if value not in ("", None):
            print(f"  {key:<9} {render(value)}")


def show_device(index: int, device: dict) -> None:
    mark = "*" if device.get("selected") else " "
    print(
        f"{mark} {index}  {device.get('name')}  ({device.get('type')}, "
        f"Vulkan {device.get('api_version')})"
    )
    print(f"       driver    {device.get('driver')}")
    print(f"       uuid      {device.get('uuid')}")
    for heap in device.get("heaps", []):
        kind = "device" if heap.get("device_local") else "host"
        print(f"       heap      {render(heap.get('size'))}, {kind} memory")
    memory = device.get("memory", {})
    if memory:
        print(f"       memory    {memory.get('model')}")
        largest = f"largest array {render(memory.get('largest_array'))}"
        if "budget" in memory:
            largest += f", for this process now {render(memory['budget'])}"
        print(f"                 {largest}")
        if "problem" in memory:
            print(f"       PROBLEM   {memory['problem']}")
    limits = device.get("limits", {})
    if limits:
        words = {name.replace("_", " "): value for name, value in limits.items()}
        print(f"       limits    {render(words)}")
    optional = device.get("optional", {})
    if optional:
        there = [name for name, value in optional.items() if value]
        absent = [name for name, value in optional.items() if not value]
        print(f"       has       {', '.join(there) or '-'}")
        print(f"       has not   {', '.join(absent) or '-'}")
    if device.get("missing"):
        print(f"       MISSING   {', '.join(device['missing'])} (required)")
    if device.get("reason"):
        print(f"       note      {device['reason']}")
    watchdog.show(device)
    drivers.show(device)


def explain_no_device(facts: dict) -> None:
    chosen = os.environ.get("MLX_VK_DEVICE")
    devices = facts.get("devices", [])
    if not devices:
        print(
            "  Vulkan lists no device, so MLX runs on the CPU. Install the driver of "
            "your GPU\n  (Debian: apt install mesa-vulkan-drivers; NVIDIA: its own "
            "driver with Vulkan) and\n  check it with vulkaninfo --summary."
        )
    elif chosen:
        print(f"  MLX_VK_DEVICE={chosen} selects none of them.")
    elif any(device.get("usable") for device in devices):
        print(
            "  Only software devices are here; they are used when asked for: "
            "MLX_VK_DEVICE=cpu"
        )
    else:
        print("  None of them can run this backend; what is MISSING says why.")


def show_cache(cache: dict) -> None:
    heading("Cache of compiled kernels")
    if not cache.get("path"):
        print(f"  {native.CACHE_OFF}")
        return
    print(f"  path      {cache['path']}")
    used, limit = file_size(cache["bytes"]), file_size(cache["limit"])
    print(f"  entries   {cache['entries']:,} ({used} of at most {limit})")
    why = f"no: {cache['why_not']}; kernels compile anew in each process"
    print(f"  writable  {'yes' if cache['writable'] else why}")
    for driver in cache["driver_caches"]:
        print(f"  driver    {driver['name']} ({file_size(driver['bytes'])})")


def show_config(config: list[dict]) -> None:
    known = {entry["name"] for entry in config}
    heading("Settings in force")
    in_force = [entry for entry in config if entry.get("set")]
    for entry in in_force:
        print(f"  {entry['name']}={entry.get('value')}")
    if not in_force:
        print("  all defaults")
    for name in sorted(os.environ):
        if name.startswith("MLX_VK_") and known and name not in known:
            print(f"  {name} is not a setting of this version")
    for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_LOADER_DRIVERS_SELECT"):
        if name in os.environ:
            print(f"  {name}={os.environ[name]}  (read by the Vulkan loader)")


def file_size(size: int) -> str:
    mib, kib = size / (1 << 20), size / (1 << 10)
    return f"{mib:,.1f} MiB" if mib >= 1 else f"{kib:,.1f} KiB"


def render(value) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {render(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(render(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and value >= 1 << 20:
        return f"{value / (1 << 20):,.0f} MiB"
    return f"{value:,}" if isinstance(value, int) else str(value)
