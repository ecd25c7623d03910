"""Other vendors' Vulkan compilers without their hardware.

    driver_lab.py setup                        fetch and build what is missing
    driver_lab.py run CHIP PROGRAM [ARGS ...]  a program with that chip's driver
    driver_lab.py run --execute CHIP PROGRAM   the same, and kernels run

Mesa's drivers and its drm shims, as Debian packages of later releases, are
unpacked into a folder of their own; nothing of the system changes. The devices
compile pipelines and report statistics; a dispatch does nothing or crashes. With
--execute, an emulator (tests/rdna) runs the code of AMD chips, and a fault that
it finds fails the pytest test, or else the command.
tests/drivers/packages.txt pins what is fetched. Intel's shim, which is in no
package, is built from Mesa's source with the meson of a virtual environment.

The folder is $MLXVK_DRIVER_LAB, else mlx-vulkan-drivers in the user's cache.
"""

import argparse
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "tests" / "drivers" / "packages.txt"
AMD_SOURCE = ROOT / "tests" / "drivers" / "amd_chips.cpp"
RDNA = ROOT / "tests" / "rdna"
MESON = ("meson==1.9.1", "mako==1.3.10", "pyyaml==6.0.3", "packaging==25.0")
# Only the shim: no driver, and none of the libraries that those need.
MESON_OPTIONS = (
    "-Dgallium-drivers= -Dvulkan-drivers= -Dvulkan-layers= -Dplatforms= "
    "-Dtools=drm-shim,intel -Dglx=disabled -Degl=disabled -Dgbm=disabled "
    "-Dopengl=false -Dgles1=disabled -Dgles2=disabled -Dllvm=disabled "
    "-Dzlib=disabled -Dzstd=disabled -Dshader-cache=disabled "
    "-Dxmlconfig=disabled -Dvalgrind=disabled -Dlibunwind=disabled "
    "-Dintel-elk=false -Dbuildtype=release"
).split()
# tests/rdna: runs where it is built. Integers wrap; float operations are single
# ones that GCC may vectorize.
EMULATOR_FLAGS = (
    "-std=c++20 -O3 -march=native -fwrapv -ffp-contract=off -fno-math-errno "
    "-fno-trapping-math -fPIC -fvisibility=hidden -Wall -Wextra"
).split()
SHIM = "src/intel/tools/libintel_noop_drm_shim.so"


class LabError(Exception):
    """A sentence for the user."""


@dataclass
class Chip:
    driver: str  # as people call it
    icd: str  # <icd>_icd*.json
    shim: str  # lib<shim>_noop_drm_shim.so; "": the driver needs no device
    env: dict[str, str] = field(default_factory=dict)
    preload: str = ""  # before the shim
    processor: str = ""  # LLVM's name of what tests/rdna can execute


def amd(name: str, processor: str = "") -> Chip:
    return Chip(
        "RADV", "radeon", "amdgpu", {"AMDGPU_GPU_ID": name}, processor=processor
    )


def amd_like(name: str, numbers: str, processor: str) -> Chip:
    """A chip that the shim does not have, made of a related one."""
    chip = amd(name, processor)
    chip.env["MLXVK_AMD_CHIP"] = numbers
    chip.preload = AMD_CHIPS
    return chip


def intel(name: str) -> Chip:
    return Chip("ANV", "intel", "intel", {"INTEL_STUB_GPU_PLATFORM": name})


def intel_device(number: str) -> Chip:
    return Chip("ANV", "intel", "intel", {"INTEL_STUB_GPU_DEVICE_ID": number})


AMD_CHIPS = "libmlxvk_amd_chips.so"  # of tests/drivers/amd_chips.cpp
CHIPS = {
    "polaris10": amd("polaris10"),
    "vega10": amd("vega10", "gfx900"),
    "vangogh": amd("vangogh"),
    "navi21": amd("navi21", "gfx1030"),
    "navi31": amd("navi31", "gfx1100"),
    "navi33": amd("navi33", "gfx1102"),
    "phoenix": amd("phoenix", "gfx1103"),
    "strix1": amd("strix1", "gfx1150"),
    "gfx1151": amd_like("strix1", "5510 193 2 2 10", "gfx1151"),  # Strix Halo
    "gfx1200": amd_like("gfx1201", "30096 65 2 2 8", "gfx1200"),  # RX 9060 XT
    "gfx1201": amd("gfx1201", "gfx1201"),
    **{name: intel(name) for name in ("tgl", "dg2", "lnl", "bmg", "ptl")},
    "b570": intel_device("e20c"),
    "m1": Chip("Honeykrisp", "asahi", "asahi"),
    "a740": Chip("Turnip", "freedreno", "freedreno", {"FD_GPU_ID": "740"}),
    "nvk": Chip("NVK", "nouveau", "nouveau", {"NOUVEAU_CHIPSET": "172"}),
}
# Executes without an emulator; has cooperative matrices of 8 x 8 x 8.
LAVAPIPE = Chip("lavapipe", "lvp", "", {"MLX_VK_DEVICE": "cpu"})
EXECUTABLE = {name: c for name, c in CHIPS.items() if c.processor}
EXECUTABLE["renoir"] = amd("renoir", "gfx90c")  # compiles as vega10 does
EXECUTABLE["lavapipe"] = LAVAPIPE


def folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(
        os.environ.get("MLXVK_DRIVER_LAB") or Path(cache) / "mlx-vulkan-drivers"
    )


def libraries() -> Path:
    return folder() / "root" / "usr" / "lib" / "x86_64-linux-gnu"


def say(text: str) -> None:
    print(f"== {text}", flush=True)


@dataclass
class Pin:
    digest: str
    size: int
    path: str  # below a mirror

    @property
    def file(self) -> Path:
        return folder() / "files" / Path(self.path).name

    def good(self) -> bool:
        if not self.file.exists() or self.file.stat().st_size != self.size:
            return False
        with open(self.file, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == self.digest


def read_pins() -> tuple[list[Pin], str]:
    """All pins, and the day of snapshot.debian.org that has them."""
    pins, day = [], ""
    for line in PINS.read_text("utf-8").splitlines():
        words = line.split()
        if not words or words[0] == "#":
            continue
        if words[0] == "snapshot":
            day = words[1]
        else:
            pins.append(Pin(words[0], int(words[1]), words[2]))
    return pins, day


def mirrors(day: str) -> list[str]:
    """The system's own mirror first, if it is one of Debian."""
    found = []
    for source in (
        "/etc/apt/sources.list.d/debian.sources",
        "/etc/apt/sources.list",
    ):
        if Path(source).exists():
            text = Path(source).read_text("utf-8", errors="replace")
            found += re.findall(
                r"^(?:URIs:|deb)\s+(https?://\S+/debian)/?\s", text, re.M
            )
    found.append("http://deb.debian.org/debian")
    found.append(f"https://snapshot.debian.org/archive/debian/{day}")
    return list(dict.fromkeys(found))


def fetch(pin: Pin, day: str) -> None:
    if pin.good():
        return
    pin.file.parent.mkdir(parents=True, exist_ok=True)
    partial = pin.file.with_suffix(".partial")
    problems = []
    for mirror in mirrors(day):
        url = f"{mirror}/{pin.path}"
        try:
            with (
                urllib.request.urlopen(url, timeout=60) as source,
                open(partial, "wb") as target,
            ):
                shutil.copyfileobj(source, target)
        except (urllib.error.URLError, OSError) as error:
            problems.append(f"{url}: {error}")
            continue
        partial.rename(pin.file)
        if pin.good():
            return
        problems.append(f"{url}: not the file that {PINS.name} pins")
    raise LabError(
        f"{Path(pin.path).name} cannot be downloaded, and {pin.file.parent} does "
        "not have it. The driver tier needs the network once, for some 140 MB:\n  "
        + "\n  ".join(problems)
    )


def run(command: list[str | Path], what: str, **options) -> None:
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )
    if done.returncode:
        raise LabError(f"{what} failed:\n{done.stdout[-2000:]}")


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Other processes wait."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def once(name: str, key: str, make: Callable[[], None]) -> None:
    """Runs `make` unless it was done for this key: pins that have changed, or a
    setup that was stopped, begin again."""
    stamp = folder() / f"{name}.done"
    if stamp.exists() and stamp.read_text() == key:
        return
    make()
    stamp.write_text(key)


def unpack(packages: list[Pin]) -> None:
    if not shutil.which("dpkg-deb"):
        raise LabError("dpkg-deb is needed to unpack Debian's packages (apt: dpkg).")
    say(f"Unpacking {len(packages)} packages into {folder()}")
    shutil.rmtree(folder() / "root", ignore_errors=True)
    for pin in packages:
        run(["dpkg-deb", "-x", pin.file, folder() / "root"], f"Unpacking {pin.path}")


def build_intel_shim(source: Pin) -> None:
    say("Building Intel's drm shim (once; about three minutes)")
    work = folder() / "shim"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    tools = work / "venv"
    run([sys.executable, "-m", "venv", tools], "Making a virtual environment")
    run(
        [tools / "bin" / "pip", "install", "-q", "--disable-pip-version-check", *MESON],
        "Installing meson (the network is needed once)",
    )
    with tarfile.open(source.file) as archive:
        # Filters are of Python 3.11.4.
        archive.extraction_filter = getattr(tarfile, "tar_filter", None)
        archive.extractall(work)
    tree = next(work.glob("mesa-*"))
    # What Mesa asks of pkg-config: the unpacked libdrm, and an expat that the
    # shim does not use. Its parsers are not built, so bison and flex do nothing.
    root = folder() / "root" / "usr"
    include = f"-I{root}/include -I{root}/include/libdrm"
    for name, libs, flags in (
        ("libdrm", f"-L{libraries()} -l:libdrm.so.2", include),
        ("expat", "", ""),
    ):
        (work / f"{name}.pc").write_text(
            f"Name: {name}\nDescription: {name}\nVersion: 2.5.0\n"
            f"Libs: {libs}\nCflags: {flags}\n"
        )
    (work / "native.ini").write_text(
        "[binaries]\nbison = '/bin/true'\nflex = '/bin/true'\n"
        f"python3 = '{tools}/bin/python3'\n"
    )
    env = {**os.environ, "PKG_CONFIG_LIBDIR": str(work)}
    env["PATH"] = f"{tools}/bin:{env['PATH']}"
    native = ["--native-file", work / "native.ini"]
    run(
        ["meson", "setup", work / "build", tree, *native, *MESON_OPTIONS],
        "Configuring Mesa for Intel's shim",
        env=env,
    )
    run(["ninja", "-C", work / "build", SHIM], "Building Intel's shim", env=env)
    shutil.copy(work / "build" / SHIM, libraries())
    shutil.rmtree(work)


def build_amd_chips() -> None:
    headers = folder() / "root" / "usr" / "include"
    output = libraries() / AMD_CHIPS
    flags = ["-std=c++20", "-O1", "-fPIC", "-shared", "-static-libstdc++"]
    run(
        ["c++", *flags, "-I", headers, AMD_SOURCE, "-o", output, "-ldl"],
        f"Compiling {AMD_SOURCE.name} (apt: g++)",
    )


def build_emulator() -> Path:
    """tests/rdna as a library to preload; quick when it is built."""
    output = ROOT / "build" / "rdna"
    sources = sorted(RDNA.glob("*.cpp"))
    texts = [path.read_bytes() for path in (*sources, *sorted(RDNA.glob("*.h")))]
    texts.append(" ".join(EMULATOR_FLAGS).encode())
    key = hashlib.sha256(b"".join(texts)).hexdigest()
    stamp, library = output / "done", output / "librdna.so"
    with alone(output / "lock"):
        if not library.exists() or not stamp.exists() or stamp.read_text() != key:
            compile_emulator(sources, library)
            stamp.write_text(key)
    return library


def compile_emulator(sources: list[Path], library: Path) -> None:
    say("Building the emulator (once; some two minutes)")
    ccache = [found] if (found := shutil.which("ccache")) else []
    headers = folder() / "root" / "usr" / "include"
    command = [*ccache, "c++", *EMULATOR_FLAGS, "-I", headers, "-c"]

    def compile(source: Path) -> Path:
        target = library.parent / f"{source.stem}.o"
        run([*command, source, "-o", target], f"Compiling {source.name} (apt: g++)")
        return target

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        objects = list(threads.map(compile, sources))
    link = ["c++", "-shared", "-static-libstdc++", *objects, "-o", f"{library}.new"]
    run([*link, "-ldl", "-lpthread"], "Linking the emulator")
    os.replace(f"{library}.new", library)  # processes may use the old one


def setup() -> None:
    """Everything for every chip; quick when it is there."""
    pins, day = read_pins()
    packages = [pin for pin in pins if pin.path.endswith(".deb")]
    (source,) = (pin for pin in pins if "/mesa_" in pin.path)
    everything = PINS.read_text("utf-8")

    def install() -> None:
        say(f"Fetching Mesa's drivers into {folder()} (once; 140 MB)")
        for pin in pins:
            fetch(pin, day)
        unpack(packages)
        build_intel_shim(source)

    with alone(folder() / "lock"):
        once("drivers", everything, install)
        source_text = AMD_SOURCE.read_text("utf-8")
        once("amd-chips", everything + source_text, build_amd_chips)


def first(pattern: str, where: Path) -> Path:
    found = sorted(where.glob(pattern))
    if not found:
        raise LabError(f"There is no {pattern} in {where}: run driver_lab.py setup.")
    return found[0]


def command_for(
    chip: Chip, program: list[str], emulator: Path | None = None
) -> tuple[list[str], dict[str, str]]:
    """The command and the environment that run a program with a chip's driver,
    by the unpacked loader and C library."""
    root = folder() / "root"
    icd = first(f"{chip.icd}_icd*.json", root / "usr" / "share" / "vulkan" / "icd.d")
    loader = first("ld-linux-x86-64.so.2", libraries())
    env = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    env |= {
        "VK_DRIVER_FILES": str(icd),
        "VK_ICD_FILENAMES": str(icd),
        "VK_LOADER_LAYERS_DISABLE": "~implicit~",
        "XDG_RUNTIME_DIR": env.get("XDG_RUNTIME_DIR", "/tmp"),
        "MESA_SHADER_CACHE_DISABLE": "1",
        **chip.env,
    }
    command = [str(loader), "--library-path", str(libraries())]
    preload = [emulator] if emulator else []
    for name in (chip.preload, chip.shim and f"lib{chip.shim}_noop_drm_shim.so"):
        preload += [first(name, libraries())] if name else []
    if preload:
        command += ["--preload", " ".join(map(str, preload))]
    return [*command, *program], env


def execute(chip: Chip, program: list[str]) -> int:
    """Runs a program and its kernels; its exit status, or 1 if the emulator has
    found a fault."""
    if not (found := shutil.which(program[0])):
        raise LabError(f"There is no program {program[0]}.")
    emulator = build_emulator() if chip.processor else None
    with tempfile.TemporaryDirectory() as name:
        python, report = Path(name) / "python", Path(name) / "report"
        report.mkdir()
        command, env = command_for(chip, [found], emulator)
        # For sys.executable of a Python program: the same by the same loader.
        python.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        python.chmod(0o755)

        def extend(name: str, separator: str, *words: str) -> None:
            env[name] = separator.join(filter(None, (env.get(name), *words)))

        env["RDNA_PYTHON"] = str(python)
        extend("PYTHONPATH", os.pathsep, str(RDNA / "python"))
        if emulator:
            env.pop("MLX_VK_DEVICE", None)  # there is no other device
            env |= {"RDNA_PROCESSOR": chip.processor, "RDNA_REPORT": str(report)}
            extend("PYTEST_PLUGINS", ",", "rdna_faults")
            # Measuring the emulator's rates would take 11 seconds.
            extend("MLX_VK_TEST", ",", "assumed_rates")
            extend("MLX_VK_DISABLE", ",", "float64")  # it has no such instructions
        code = subprocess.run([*command, *program[1:]], env=env).returncode
        faults = sum(f.read_text().count("rdna: ") for f in report.iterdir())
    if faults:
        print(f"The emulator reported {faults} faults.", file=sys.stderr)
    return code or int(faults > 0)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("setup")
    runner = commands.add_parser("run")
    runner.add_argument("--execute", action="store_true", help="kernels run")
    runner.add_argument("chip", choices=[*(CHIPS | EXECUTABLE)])
    runner.add_argument("program", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    try:
        setup()
        if args.command == "run" and args.execute:
            if args.chip not in EXECUTABLE:
                raise LabError(f"Only {', '.join(EXECUTABLE)} can be executed.")
            return execute(EXECUTABLE[args.chip], args.program)
        if args.command == "run":
            command, env = command_for((CHIPS | EXECUTABLE)[args.chip], args.program)
            return subprocess.run(command, env=env).returncode
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
