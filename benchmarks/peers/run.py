"""mlx-vulkan, llama.cpp and MLX's CUDA backend in turn on one machine: prompts and
decode of random 4-bit models, for README's table and chart.

    python benchmarks/peers/run.py --llama-bench build/bin/llama-bench \\
      --cuda-python cuda/bin/python --output benchmarks/results/2026-11-28-h200.json

Each measurement is a process of its own. Models are written to --models once. Beside
the figures stands the time of an empty Python loop, since a step of a small model takes
as long as its host. How llama.cpp was built: docs/dev/benchmarks.md.
"""

import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = {
    "qwen3-0.6b": "Qwen3-0.6B",
    "qwen3-8b": "Qwen3-8B",
    "qwen3-30b-a3b": "Qwen3-30B-A3B",
}
TOKENS = (512, 4096)
AVERAGES = re.compile(r"Averages: prompt_tps=([\d.]+), generation_tps=([\d.]+)")


def output_of(command: list[str], limit: int = 300, **env: str) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=limit,
        env={**os.environ, **env},
    )
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def loop_seconds() -> float:
    """20 million turns of an empty loop."""
    start = time.perf_counter()
    for _ in range(20_000_000):
        pass
    return round(time.perf_counter() - start, 2)


class Mlx:
    def __init__(self, name: str, python: str, **env: str):
        self.name, self.python, self.env = name, python, env
        code = "import importlib.metadata as m, mlx.core; print(m.version('mlx'))"
        self.version = output_of([python, "-c", code], **env).strip()
        self.command = ["-m", "mlx_lm", "benchmark", "--model", "MODEL"]
        self.command += ["-p", "TOKENS", "-g", "128", "-n", "2"]

    def make(self, shape: str, models: Path) -> None:
        self.model = models / shape
        if not (self.model / "tokenizer.json").exists():
            make = HERE.parent / "make_model.py"
            words = [self.python, str(make), shape, str(self.model), "--gpu"]
            output_of(words, **self.env)

    def measure(self) -> dict[tuple[str, int], float]:
        found = {}
        for n in TOKENS:
            values = {"MODEL": str(self.model), "TOKENS": str(n)}
            words = [self.python, *(values.get(w, w) for w in self.command)]
            speeds = AVERAGES.search(output_of(words, **self.env))
            found["prompt", n], found["decode", n] = map(float, speeds.groups())
        return found


class Llama:
    name = "llama.cpp Vulkan"

    def __init__(self, program: str):
        self.program = program
        self.version = "unknown"
        lengths = ",".join(map(str, TOKENS))
        common = "-m MODEL -ngl 99 -fa 1 -r 2 -o json"
        self.commands = [
            f"{common} -p {lengths} -n 0".split(),
            f"{common} -p 0 -n 128 -d {lengths}".split(),
        ]

    @property
    def command(self) -> list[str]:
        return [w for c in self.commands for w in ("llama-bench", *c, ";")][:-1]

    def make(self, shape: str, models: Path) -> None:
        self.model = models / f"{shape}.gguf"
        if not self.model.exists():
            make = str(HERE / "make_gguf.py")
            output_of([sys.executable, make, shape, str(self.model)])

    def measure(self) -> dict[tuple[str, int], float]:
        found = {}
        for command in self.commands:
            words = [str(self.model) if w == "MODEL" else w for w in command]
            for row in json.loads(output_of([self.program, *words])):
                self.version = f"build {row['build_number']} ({row['build_commit']})"
                phase = "decode" if row["n_gen"] else "prompt"
                tokens = row["n_depth"] if row["n_gen"] else row["n_prompt"]
                found[phase, tokens] = row["avg_ts"]
        return found


def engines(args) -> list:
    us = Mlx("mlx-vulkan", sys.executable)
    code = "import sys; print('_mlx_vulkan' in sys.modules)"
    if output_of([sys.executable, "-c", code]).strip() != "True":
        raise SystemExit(
            "The wheel's .pth file was not read, so steps would not be traced: install "
            "mlx-vulkan into a virtual environment, not below PYTHONPATH."
        )
    code = "import importlib.metadata as m; print(m.version('mlx-vulkan'))"
    us.version = output_of([sys.executable, "-c", code]).strip()
    if args.commit:
        us.version += f", commit {args.commit}"
    made = [us]
    if args.llama_bench:
        made.append(Llama(args.llama_bench))
    if args.cuda_python:
        made.append(Mlx("MLX CUDA", args.cuda_python))
    for engine in made:
        engine.measured = str(date.today())
    return made


def device() -> dict[str, str]:
    code = "import mlx.core as mx; print(mx.device_info()['device_name'])"
    name = output_of([sys.executable, "-c", code]).strip()
    smi = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        driver = output_of(smi).split()[0]
    except (OSError, SystemExit):
        driver = "unknown"
    return {"device": name, "driver": driver}


def three(values: list[float]) -> list[int]:
    """Least, median, most; three significant digits."""
    picked = min(values), statistics.median(values), max(values)
    return [int(float(f"{v:.3g}")) for v in picked]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--llama-bench", help="the program")
    parser.add_argument("--cuda-python", help="a Python with mlx[cuda] and mlx-lm")
    parser.add_argument("--models", type=Path, default=Path(".models"))
    parser.add_argument("--shape", action="append", choices=NAMES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--commit", help="of this project, for the result")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    competitors, values, loops = engines(args), {}, []
    for shape in args.shape or NAMES:
        for engine in competitors:
            engine.make(shape, args.models)
        for _ in range(args.rounds):
            loops.append(loop_seconds())
            for engine in competitors:
                for (phase, tokens), speed in engine.measure().items():
                    row = values.setdefault((NAMES[shape], phase, tokens), {})
                    row.setdefault(engine.name, []).append(speed)
                    print(NAMES[shape], phase, tokens, engine.name, round(speed, 1))
                    sys.stdout.flush()
        facts = {
            **device(),
            "host": f"20 million turns of a Python loop: {min(loops)} to "
            f"{max(loops)} s",
            "weights": "random, 4-bit, groups of 128, bfloat16 activations "
            "(llama.cpp: Q4_0)",
            "engines": [
                {
                    "name": e.name,
                    "version": e.version,
                    "measured": e.measured,
                    "command": shlex.join(e.command),
                }
                for e in competitors
            ],
            "unit": "tokens/s",
            "starts": args.rounds,
            "values": "least, median, most",
            "rows": [
                {
                    "model": model,
                    "what": phase,
                    "tokens": tokens,
                    "values": [three(row[e.name]) for e in competitors],
                }
                for (model, phase, tokens), row in values.items()
            ],
        }
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
