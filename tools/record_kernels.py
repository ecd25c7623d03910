"""Write the list of kernels that the library carries compiled.

Models of public shapes, with two layers and zeros for weights, read prompts and
generate a few tokens on each chip of CHIPS, as a Vulkan layer (tests/chips) shows it:
which kernels a chip is asked for depends on plans alone, and nothing is computed. The
list is src/pipeline/shipped.list (src/pipeline/kernel_list.h).

    cmake --build build --target chip_layer
    tools/record_kernels.py             # all chips, and nothing else
    tools/record_kernels.py CHIP ...    # adds their kernels to the list
"""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "src" / "pipeline" / "shipped.list"
# Parts of their names in tests/variants/devices.cpp.
CHIPS = {
    "llvmpipe": "llvmpipe",
    "nvidia": "NVIDIA H200",
    "vega": "VEGA10",
    "vangogh": "VANGOGH",
    "navi21": "NAVI21",
    "navi31": "NAVI31",
    "navi33": "NAVI33",
    "phoenix": "PHOENIX",
    "strix": "STRIX1",
    "strix_halo": "STRIX_HALO",
    "gfx1200": "GFX1200",
    "gfx1201": "GFX1201",
    "tgl": "TGL",
    "dg2": "A770M",
    "lnl": "LNL",
    "bmg": "B570",
}
# SmolLM2 as tools/convert_smollm2.py makes it, and models of the hub with groups of
# 64: shape, dtype, group size, and bits of the embedding.
SMOLLM2 = {
    "model_type": "llama",
    "hidden_size": 576,
    "num_hidden_layers": 2,
    "intermediate_size": 1536,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100000.0,
    "tie_word_embeddings": True,
}
MODELS = {
    "smollm2": ("float32", 32, 8),
    "qwen3-0.6b": ("bfloat16", 64, 4),
}
LENGTHS = (5, 20, 50, 100, 200, 500)
SOFTWARE = (5, 20, 50, 100)
# A chip that is only shown does not run src/runtime/measure_rates.cpp, so that these
# kernels are not recorded.
RATES = (b"probe_rate{ARITHMETIC=0}", b"probe_rate{ARITHMETIC=1}")
HEADER = 40  # bytes before an entry's text (src/pipeline/disk_cache.cpp)


def environment(build: Path, folder: Path, chip: str) -> dict[str, str]:
    """Of a process to which `chip` is shown; its cache is `folder`."""
    layer = {
        "file_format_version": "1.0.0",
        "layer": {
            "name": "VK_LAYER_MLXVK_chip",
            "type": "GLOBAL",
            "library_path": str(build.resolve() / "libchip_layer.so"),
            "api_version": "1.3.0",
            "implementation_version": "1",
            "description": "another chip",
        },
    }
    (folder / "chip.json").write_text(json.dumps(layer))
    return os.environ | {
        "CHIP": chip,
        "VK_INSTANCE_LAYERS": "VK_LAYER_MLXVK_chip",
        "VK_LAYER_PATH": str(folder),
        "MLX_VK_CACHE": str(folder),
        "MLX_VK_DEVICE": "0",
        "MLX_VK_TEST": "trusted,assumed_rates",
        "MLX_VK_DISABLE": "sentinels",
    }


def exercise(name: str, software: bool) -> None:
    """In a process of its own: asks for the kernels of a model."""
    import mlx.core as mx
    from mlx.utils import tree_map

    from mlx_vulkan import native, warm

    mx.set_default_device(mx.gpu)
    model, config, dtype = quantized(name)
    zeros = {}

    def zero(weight):
        floating = mx.issubdtype(weight.dtype, mx.floating)
        key = (tuple(weight.shape), dtype if floating else weight.dtype)
        return zeros.setdefault(key, mx.zeros(*key))

    model.update(tree_map(zero, model.parameters()))
    model.eval()
    lengths = SOFTWARE if software else LENGTHS
    todo = [(str(n), n, False) for n in lengths] + [("drawn", lengths[0], True)]
    warm.exercise(model, config, todo, lambda *_: None)
    print(json.dumps(native.counters()))


def quantized(name: str):
    """A model whose weights are not computed, its config and its dtype."""
    import mlx.core as mx
    import mlx.nn as nn

    from mlx_vulkan.bench.shapes import SHAPES

    dtype, group, embedding = MODELS[name]
    config = SMOLLM2 if name == "smollm2" else SHAPES[name] | {"num_hidden_layers": 2}
    family = importlib.import_module(f"mlx_lm.models.{config['model_type']}")
    model = family.Model(family.ModelArgs.from_dict(config))

    def settings(path, module):
        if not hasattr(module, "to_quantized"):
            return False
        bits = embedding if path.endswith("embed_tokens") else 4
        return {"group_size": group, "bits": bits}

    nn.quantize(model, class_predicate=settings)
    return model, config, getattr(mx, dtype)


def kernels_in(text: bytes) -> set[tuple[bytes, bytes]]:
    """The kernels of a list as text, each behind its line of globals."""
    found, before = set(), b""
    while text:
        line, _, text = text.partition(b"\n")
        if line.startswith(b"globals "):
            before = line
            continue
        if not line or line.startswith(b"#"):
            continue
        if size := re.search(rb"(?:^[^{]*|\}) (\d+)$", line):
            line += b"\n" + text[: int(size[1])]
            text = text[int(size[1]) + 1 :]
        found.add((before, line))
    return found


def run(
    build: Path, name: str, model: str, folder: Path
) -> subprocess.CompletedProcess:
    """Exercises a model on a chip of CHIPS, whose kernel cache is `folder`."""
    words = ["--exercise", model, *(["--software"] * (name == "llvmpipe"))]
    return subprocess.run(
        [sys.executable, __file__, *words],
        env=environment(build, folder, CHIPS[name]),
        capture_output=True,
        text=True,
    )


def record(build: Path, name: str) -> set[tuple[bytes, bytes]]:
    """The kernels of one chip."""
    kernels = set()
    for model in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            done = run(build, name, model, Path(folder))
            if done.returncode:
                sys.exit(f"{name}, {model}: {done.stdout}{done.stderr}")
            (file,) = Path(folder).glob("recent-*.entry")
            kernels |= kernels_in(file.read_bytes()[HEADER:])
    return with_rates(kernels)


def with_rates(kernels: set[tuple[bytes, bytes]]) -> set[tuple[bytes, bytes]]:
    used = {line for line, kernel in kernels if not kernel.startswith(b"probe_")}
    return kernels | {(line, rate) for line in used for rate in RATES}


def text_of(kernels: set[tuple[bytes, bytes]]) -> bytes:
    lines, before = [b"# Written by tools/record_kernels.py."], b""
    for globals_line, kernel in sorted(kernels):
        if globals_line != before:
            lines.append(globals_line)
            before = globals_line
        lines.append(kernel)
    return b"\n".join([*lines, b""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("chips", nargs="*", metavar="CHIP", help=", ".join(CHIPS))
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--exercise", metavar="MODEL", help=argparse.SUPPRESS)
    parser.add_argument("--software", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.exercise:
        exercise(args.exercise, args.software)
        return
    kernels = kernels_in(LIST.read_bytes()) if args.chips else set()
    for name in args.chips or CHIPS:
        more = record(args.build, name)
        print(f"{name}: {len(more)} kernels, {len(more - kernels)} new", flush=True)
        kernels |= more
    LIST.write_bytes(text_of(kernels))


if __name__ == "__main__":
    main()
