"""Fuzz what reads bytes from elsewhere, with libFuzzer under ASan and UBSan.

    python tests/fuzz/run.py [--seconds 60] [--build build] [PARSER ...]

    gguf      mx.load of GGUF files
    spirv     reflection of SPIR-V modules
    cache     entries and the folder of the disk cache
    hostfile  the JSON of MLX_HOSTFILE
    metal     Metal's language: preprocessor, parser, translation to GLSL

Builds them with Clang in build-fuzz (once), begins with what build-fuzz/corpus
has from earlier runs and with seeds made here, and goes on for --seconds each.
What is found lies in build-fuzz/found; `build-fuzz/fuzz_metal FILE` shows it again.
Needs an installed mlx_vulkan, whose libmlx.so the GGUF fuzzer's arrays are of.
"""

import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "build-fuzz"
PARSERS = ("gguf", "spirv", "cache", "hostfile", "metal")
# Bytes of an input: files of a few tensors, modules of small kernels.
LONGEST = {"gguf": 4096, "spirv": 65536, "cache": 4096, "hostfile": 4096}


def clang() -> tuple[str, str]:
    versions = ["", *(f"-{n}" for n in range(22, 13, -1))]
    for suffix in versions:
        if shutil.which(f"clang++{suffix}"):
            return f"clang{suffix}", f"clang++{suffix}"
    sys.exit(
        "Clang was not found; run as root: apt-get install clang-14 "
        "libclang-rt-14-dev (Ubuntu 24.04: clang-18 libclang-rt-18-dev)"
    )


def make(build: Path) -> None:
    c, cxx = clang()
    subprocess.run(
        ["cmake", "-S", str(ROOT), "-B", str(HERE), "-G", "Ninja"]
        + ["-DMLXVK_SANITIZE=fuzzer", "-DCMAKE_BUILD_TYPE=RelWithDebInfo"]
        + [f"-DCMAKE_C_COMPILER={c}", f"-DCMAKE_CXX_COMPILER={cxx}"]
        + [f"-DMLXVK_FUZZ_MLX={build.resolve() / 'mlx' / 'libmlx.so'}"],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    targets = [f"fuzz_{name}" for name in PARSERS]
    subprocess.run(["ninja", "-C", str(HERE), *targets], check=True)
    subprocess.run(["ninja", "-C", str(build), "mlxvk-glslc"], check=True)


def gguf_seeds(build: Path) -> list[bytes]:
    def text(s: str) -> bytes:
        return struct.pack("<Q", len(s)) + s.encode()

    def file(values: list[bytes], tensors: list[tuple], data: int) -> bytes:
        out = struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(values))
        out += b"".join(values)
        for name, dims, kind, offset in tensors:
            out += text(name) + struct.pack("<I", len(dims))
            out += struct.pack(f"<{len(dims)}QIQ", *dims, kind, offset)
        return out + b"\0" * (-len(out) % 32) + bytes(i % 251 for i in range(data))

    values = [
        text("general.alignment") + struct.pack("<II", 4, 32),
        text("name") + struct.pack("<I", 8) + text("a model"),
        text("list") + struct.pack("<IIQ", 9, 8, 2) + text("one") + text(""),
        text("v") + struct.pack("<IIQ5f", 9, 6, 5, 1, 2, 3, 4, 5),
        text("none") + struct.pack("<IIQ", 9, 6, 0),  # memcpy from null, once
        text("yes") + struct.pack("<IB", 7, 1),
        text("d") + struct.pack("<Id", 12, 2.5),
    ]
    plain = [("a.weight", (8, 8), 0, 0), ("b", (3,), 1, 256), ("c", (), 26, 288)]
    coded = [("q.weight", (32, 2), 2, 0), ("r", (32,), 3, 64), ("s", (64,), 8, 96)]
    return [file(values, plain, 320), file([], coded, 192), file(values[:1], [], 0)]


def spirv_seeds(build: Path) -> list[bytes]:
    """The shortest modules of some kernels that plans choose."""
    seeds, out = [], HERE / "seed.spv"
    compiler = str(build / "mlxvk-glslc")
    for kernel in ("arange", "rope", "sort", "softmax", "gather", "scan", "reduce_col"):
        listed = subprocess.run(
            [compiler, "--all", kernel + "{"], stdout=subprocess.PIPE, text=True
        ).stdout
        variants = re.findall(r"^(.*)\{(.*)\}: (\d+) bytes", listed, re.M)
        name, defines, _ = min(variants, key=lambda v: int(v[2]))
        command = [compiler, "--spv", str(out), name, *defines.split()]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        seeds.append(out.read_bytes())
    return seeds


def cache_seeds(build: Path) -> list[bytes]:
    header = b"MLXVKCCH" + struct.pack("<IIQQQ", 1, 40, 0, 8, 0)
    names = (b"k.entry", b"k.entry.tmp-1-2-3", b"driver-x.entry", b"other")
    listed = [b"\2" + name + b"\0" + b"12345678" for name in names]
    return [b"\0" + header + b"12345678", b"\1\0\0\1abcd", b"\1\x20\0\x80", *listed]


def hostfile_seeds(build: Path) -> list[bytes]:
    ring = b'[["127.0.0.1:32323"], ["127.0.0.1:32324", "[fe80::1]:5000"]]'
    return [b"1\n" + ring, b"0\n", b"2\n" + ring, b"x\n[]", b'0\n{"a": [1, null]}']


def metal_seeds(build: Path) -> list[bytes]:
    """The kernels of mlx-lm and of MLX's tests."""
    import json

    source = Path((build / "mlx_source_dir.txt").read_text().strip())
    command = [sys.executable, str(ROOT / "tests/kernels/extract.py"), "mlx_lm"]
    command += ["--mlx-tests", str(source / "python" / "tests")]
    lines = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    seeds = []
    for kernel in map(json.loads, lines.splitlines()):
        for instance in kernel.get("instances", [])[:1]:
            words = []
            for a in instance["arguments"]:
                flags = "o" * a["output"] + "c" * a["constant"]
                flags += "r" * a["reference"] + "a" * a["atomic"]
                words.append(f"{a['name']}:{a['type']}:{flags}")
            for t in instance["templates"]:
                words.append(f"{t['name']}={str(t['value'])}")
            line = " ".join(words).replace("=True", "=true").replace("=False", "=false")
            text = f"{line}\n{kernel['header']}\1{kernel['source']}"
            seeds.append(text.encode())
            seeds.append((",8 ,a " + text).encode())
    return seeds


def words_of_metal() -> str:
    """What mutations insert: the pieces of the null tier's fuzzer."""
    text = (ROOT / "msl/tests/fuzz_test.cpp").read_text()
    pieces = re.search(r'kPieces = R"\((.*?)\)"', text, re.S)[1].split()
    names = (
        "simd_sum simd_shuffle_down thread_position_in_grid atomic_fetch_add_explicit"
    )
    names += (
        " threadgroup_barrier mem_flags as_type half4 uchar2 complex64_t fma select"
    )
    escaped = (
        p.replace("~", " ").replace("\\", "\\\\") for p in pieces + names.split()
    )
    return "".join(
        '"{}"\n'.format(word.replace('"', '\\"')) for word in escaped if word.isascii()
    )


def fuzz(name: str, seconds: int, build: Path) -> bool:
    corpus, found = HERE / "corpus" / name, HERE / "found"
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(exist_ok=True)
    seeds = globals()[f"{name}_seeds"](build)
    assert seeds, f"no seeds for {name}"
    for i, seed in enumerate(seeds):
        (corpus / f"seed-{i}").write_bytes(seed)
    # A hang is one of these seconds; llvmpipe's threads keep what they have.
    command = [str(HERE / f"fuzz_{name}"), str(corpus), f"-max_total_time={seconds}"]
    command += ["-timeout=20", "-rss_limit_mb=4096", "-print_final_stats=1"]
    command += [f"-artifact_prefix={found}/{name}-", "-verbosity=1", "-reload=0"]
    command += [f"-max_len={LONGEST.get(name, 16384)}"]
    if name == "metal":
        (HERE / "metal.dict").write_text(words_of_metal())
        command += [f"-dict={HERE / 'metal.dict'}"]
    print(f"== {name}: {len(seeds)} seeds, {seconds} s", flush=True)
    env = {"MLX_VK_DEVICE": "cpu", "MLX_VK_CACHE": "off", **os.environ}
    # The driver and LLVM keep what they allocate until the end.
    env["ASAN_OPTIONS"] = "detect_leaks=0" if name == "gguf" else "detect_leaks=1"
    env["UBSAN_OPTIONS"] = "print_stacktrace=1"
    done = subprocess.run(
        command, env=env, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    tail = done.stderr.splitlines()
    shown = [x for x in tail if x.startswith(("stat::", "Done "))]
    last = [x for x in tail if " cov: " in x][-1:]
    print("\n".join(last + shown if done.returncode == 0 else tail[-60:]), flush=True)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parser", nargs="*", metavar="PARSER", help=", ".join(PARSERS))
    parser.add_argument("--seconds", type=int, default=60, help="of each")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    args = parser.parse_args()
    if unknown := set(args.parser) - set(PARSERS):
        parser.error(f"there is no parser {', '.join(unknown)}")
    make(args.build)
    names = args.parser or PARSERS
    bad = [name for name in names if not fuzz(name, args.seconds, args.build)]
    print(f"{len(names) - len(bad)} passed, {len(bad)} failed, 0 skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
