"""Make a wheel the same bytes wherever it is built, and say what is in it.

    finish_wheel.py WHEEL --build BUILD [--into dist]
    finish_wheel.py --compare WHEEL OTHER

Adds dist-info/sboms/mlx-vulkan.cdx.json (PEP 770, CycloneDX): the sources locked by
third_party that are compiled in, with versions, checksums and licences;
what auditwheel copied in has its own file there. Then the archive is written again:
files in order, the times of SOURCE_DATE_EPOCH or of the last commit, permissions that
do not depend on a umask. A file that holds the path of the build or of the tree is
refused. --compare names the files that differ.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "third_party"
# What of a package of third_party/Cargo.toml is compiled, and its licence.
GLSLANG = "BSD-3-Clause AND BSD-2-Clause AND MIT AND Apache-2.0"
COMPILED = {
    "rlx-mlx-sys": [("mlx", "MIT")],
    "vk-mem": [
        ("VulkanMemoryAllocator", "MIT"),
        ("Vulkan-Headers", "Apache-2.0 OR MIT"),
    ],
    "glslang-sys": [("glslang", GLSLANG)],
    "libmimalloc-sys": [("mimalloc", "MIT")],
}


def cached(build: Path, name: str) -> str | None:
    """A variable of the build's CMake."""
    cache = (build / "CMakeCache.txt").read_text()
    found = re.search(rf"^{name}:\w+=(.+)$", cache, re.M)
    return found[1] if found else None


def mlx_of(build: Path) -> list[dict]:
    """MLX: a package, or a commit for a release that no package holds."""
    version = cached(build, "MLXVK_MLX")
    table = json.loads((SOURCES / "mlx.json").read_text())["versions"]
    commit = table[version].get("commit")
    if not commit:
        return locked(build, SOURCES / f"mlx-{version}" / "Cargo.toml")
    purl = f"pkg:github/ml-explore/mlx@{commit}"
    part = {"type": "library", "bom-ref": purl, "name": "mlx", "version": version}
    return [part | {"purl": purl, "licenses": [{"expression": "MIT"}]}]


def locked(build: Path, manifest: Path) -> list[dict]:
    """The direct packages of a lock file, as components."""
    words = ["metadata", "--locked", "--offline", "--format-version", "1"]
    cargo = cached(build, "CARGO_PROGRAM") or shutil.which("cargo") or "cargo"
    command = [cargo, *words, "--manifest-path", str(manifest)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"cargo does not know the locked sources: {run.stderr}")
    sums = dict(
        re.findall(
            r'name = "(.+)"\nversion = ".+"\nsource = ".+"\nchecksum = "(.+)"',
            manifest.with_suffix(".lock").read_text(),
        )
    )
    components = []
    for package in json.loads(run.stdout)["packages"]:
        name, version = package["name"], package["version"]
        if name not in COMPILED:
            continue
        purl = f"pkg:cargo/{name}@{version.replace('+', '%2B')}"
        licence = package["license"].replace("/", " OR ")
        components.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "purl": purl,
                "licenses": [{"expression": licence}],
                "hashes": [{"alg": "SHA-256", "content": sums[name]}],
                "components": [
                    {
                        "type": "library",
                        "bom-ref": f"{purl}#{inner}",
                        "name": inner,
                        "licenses": [{"expression": terms}],
                    }
                    for inner, terms in COMPILED[name]
                ],
            }
        )
    direct = manifest.read_text().partition("[dependencies]")[2]
    missing = {n for n in COMPILED if n in direct} - {c["name"] for c in components}
    if missing or not components:
        sys.exit(f"{manifest.with_suffix('.lock')} lacks {', '.join(sorted(missing))}")
    return components


def sbom(wheel: Path, build: Path, when: int) -> bytes:
    name, version = wheel.name.split("-")[:2]
    purl = f"pkg:pypi/{name.replace('_', '-')}@{version}"
    components = locked(build, SOURCES / "Cargo.toml") + mlx_of(build)
    components.sort(key=lambda c: c["name"])
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)),
            "component": {
                "type": "library",
                "bom-ref": purl,
                "name": name.replace("_", "-"),
                "version": version,
                "purl": purl,
                "licenses": [{"expression": "MIT"}],
            },
        },
        "components": components,
        "dependencies": [
            {"ref": purl, "dependsOn": [c["bom-ref"] for c in components]}
        ],
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def commit_time() -> int:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch:
        return int(epoch)
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return int(subprocess.run(command, capture_output=True, check=True).stdout)


def contents(wheel: Path) -> dict[str, tuple[bytes, bool]]:
    """Files, and whether they are programs or libraries."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            info.filename: (archive.read(info), bool(info.external_attr >> 16 & 0o100))
            for info in archive.infolist()
            if not info.is_dir()
        }


def record(files: dict[str, tuple[bytes, bool]], name: str) -> bytes:
    lines = []
    for path, (data, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
        lines.append(f"{path},sha256={digest.decode()},{len(data)}")
    return "\n".join([*lines, f"{name},,", ""]).encode()


def write(wheel: Path, files: dict[str, tuple[bytes, bool]], when: int) -> None:
    date = time.gmtime(max(when, 315532800))[:6]  # zip's years begin in 1980
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, (data, program) in files.items():
            info = zipfile.ZipInfo(path, date)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if program else 0o100644) << 16
            info.create_system = 3
            archive.writestr(info, data)


def finish(wheel: Path, build: Path, into: Path) -> Path:
    when = commit_time()
    files = contents(wheel)
    for place in {str(build.resolve()), str(ROOT)}:
        for path, (data, _) in files.items():
            if place.encode() in data:
                sys.exit(f"{path} holds the path {place}, and so depends on it")
    info = next(p for p in files if p.endswith(".dist-info/RECORD"))
    files.pop(info)
    folder = info.rpartition("/")[0]
    files[f"{folder}/sboms/mlx-vulkan.cdx.json"] = (sbom(wheel, build, when), False)
    ordered = dict(sorted(files.items(), key=lambda f: (folder in f[0], f[0])))
    ordered[info] = (record(files, info), False)
    into.mkdir(parents=True, exist_ok=True)
    made = into / wheel.name
    write(made, ordered, when)
    print(hashlib.sha256(made.read_bytes()).hexdigest(), made)
    return made


def compare(one: Path, other: Path) -> int:
    a, b = contents(one), contents(other)
    differ = sorted(path for path in a.keys() | b.keys() if a.get(path) != b.get(path))
    print(*(f"differs: {path}" for path in differ), sep="\n")
    same = one.read_bytes() == other.read_bytes()
    print("the same bytes" if same else "not the same bytes")
    return 0 if same else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("other", type=Path, nargs="?")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--into", type=Path, default=ROOT / "dist")
    args = parser.parse_args()
    if args.compare:
        return compare(args.wheel, args.other)
    finish(args.wheel, args.build, args.into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
