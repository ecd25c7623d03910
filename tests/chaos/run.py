"""Chaos: threads, streams and random graphs under random faults, for a while.

    python tests/chaos/run.py [--seconds 20] [--seed N] [--jobs 1] [--scene storm ...]

Rounds of processes (scene.py) one after the other, or --jobs at once. A Vulkan layer
(faults.cpp, `cmake --build build --target chaos_faults`) makes calls fail by each
round's seed; files of the kernel cache are cut, processes are killed, forked and left.
After each round: values are NumPy's, or an error names its cause; nothing hangs, no
memory stays, and a process that reads the cache later computes what is right.

    storm    faults that pass: memory, kernels, submissions, disk; callbacks that raise
    final    the device is lost, drops work or hangs
    fork     children of a process that uses the GPU
    exit     the interpreter ends with work under way
    disk     a kernel cache on a disk that is full or breaks, then without faults
    cut      a kernel cache whose files were cut or changed
    kill     a process that compiles is killed, and the next one finds its cache

A failed round is repeated with --seed and --round of its line. Ends with counts as
JSON, what failed in short, and `N passed, N failed, 0 skipped` rounds.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# What a process may be set to, and what costs: all of it is covered elsewhere, too.
SETTINGS = (
    {},
    {},
    {"MLX_VK_MEMORY": "unified"},
    {"MLX_VK_MEMORY": "discrete"},
    {"MLX_VK_MEMORY": "uncached"},
    {"MLX_VK_DEBUG": "guard"},
    {"MLX_VK_DEBUG": "noncoherent", "MLX_VK_TEST": "small_buffer=0"},
    {"MLX_MAX_OPS_PER_BUFFER": "3"},
    {"MLX_VK_MEMORY": "discrete", "MLX_VK_DEBUG": "shuffle"},
)
HUNG = {"MLX_VK_TIMEOUT": "1,error"}


class Failed(Exception):
    """What a round has found."""


def environment(args, folder: Path, seed: int, **more: str) -> dict[str, str]:
    layer = {
        "file_format_version": "1.0.0",
        "layer": {
            "name": "VK_LAYER_MLXVK_chaos",
            "type": "GLOBAL",
            "library_path": str(args.library),
            "api_version": "1.3.0",
            "implementation_version": "1",
            "description": "faults",
        },
    }
    (folder / "chaos.json").write_text(json.dumps(layer))
    env = {k: v for k, v in os.environ.items() if not k.startswith("CHAOS_")}
    layers = [env.get("VK_INSTANCE_LAYERS"), "VK_LAYER_MLXVK_chaos"]
    env["VK_INSTANCE_LAYERS"] = os.pathsep.join(filter(None, layers))
    # The folders of other layers are looked at, too: MLX_VK_DEBUG=validate needs one.
    others = "/usr/share/vulkan/explicit_layer.d"
    env["VK_LAYER_PATH"] = f"{folder}:{env.get('VK_LAYER_PATH', others)}"
    env["LD_PRELOAD"] = " ".join(
        filter(None, [str(args.library), env.get("LD_PRELOAD")])
    )
    env["CHAOS_LIBRARY"] = str(args.library)
    env["CHAOS_SEED"] = str(seed)
    env["CHAOS_FAULTS"] = args.secret
    env["MLX_VK_CACHE"] = str(args.cache)
    # OpenBLAS stops its threads before a fork and waits for ever if one computes.
    env["OPENBLAS_NUM_THREADS"] = "1"
    return {**env, **more}


def stacks(process: subprocess.Popen) -> str:
    """Of all threads: Python's go to its stderr; native ones where there is gdb."""
    process.send_signal(signal.SIGUSR1)
    time.sleep(1)
    if not shutil.which("gdb"):
        return "(no gdb for native stacks)"
    command = ["gdb", "-p", str(process.pid), "-batch", "-ex", "set pagination off"]
    done = subprocess.run(
        [*command, "-ex", "thread apply all backtrace 25"],
        capture_output=True,
        text=True,
        errors="replace",
    )
    return done.stdout[-20_000:]


class Round:
    """One scene, with what its seed chose."""

    def __init__(self, args, number: int):
        self.args, self.number = args, number
        self.r = random.Random(args.seed * 1_000_003 + number)
        self.scene = self.r.choice(args.scene)
        if number < len(args.scene):
            self.scene = args.scene[number]  # each one at least once
        self.seed = self.r.randrange(1 << 31)
        self.settings = self.r.choice(SETTINGS)
        self.totals = {"counts": Counter(), "named": Counter(), "met": Counter()}

    def process(self, *words, folder, limit=None, expects=(0,), kill=None, **more):
        """One process of scene.py; what it counted, or None if it was killed."""
        seed = str(self.seed)
        settings = {**self.settings, **more, **self.args.set}
        env = environment(self.args, folder, self.seed, **settings)
        command = [sys.executable, str(HERE / "scene.py"), *words, "--seed", seed]
        with open(folder / "out", "w+") as out, open(folder / "err", "w+") as err:
            p = subprocess.Popen(command, env=env, stdout=out, stderr=err, cwd=folder)
            try:
                p.wait(kill if kill is not None else limit or self.args.limit)
            except subprocess.TimeoutExpired:
                native = "" if kill is not None else stacks(p)
                p.kill()
                p.wait()
                if kill is None:
                    raise Failed(f"hangs\n{said(err)}\n{native}") from None
            out.seek(0)
            lines = out.read().splitlines()
            if kill is not None and p.returncode == -signal.SIGKILL:
                self.totals["met"]["killed"] += 1
                return None
            if p.returncode not in expects:
                raise Failed(f"exit code {p.returncode}\n{said(err)}")
        if not lines:
            raise Failed("says nothing")
        result = json.loads(lines[-1])
        for name, total in self.totals.items():
            total.update(result[name])
        if result["failures"]:
            raise Failed("\n".join(result["failures"]))
        return result

    def run(self, folder: Path) -> None:
        getattr(self, self.scene)(folder)

    # Scenes.

    def storm(self, folder):
        threads = self.r.choice((1, 2, self.args.threads, self.args.threads))
        words = ["storm", "--threads", str(threads)]
        words += ["--streams", str(self.r.randint(1, 3))]
        words += ["--cpu-streams", str(self.r.randint(0, 2))]
        words += ["--new", str(self.r.choice((0.02, 0.05, 0.5)))]
        self.process(*words, "--seconds", str(self.args.storm), folder=folder)

    def final(self, folder):
        fault = self.r.choice(self.args.finals)
        words = ["final", "--fault", fault, "--threads", str(self.r.randint(1, 4))]
        hung = fault == "hang"
        # A hung device's driver would wait at exit for ever: the process leaves.
        self.process(
            *words,
            "--cpu-streams",
            str(self.r.randint(0, 1)),
            folder=folder,
            expects=(1,) if hung else (0,),
            **(HUNG if hung else {}),
        )

    def fork(self, folder):
        words = ["fork", "--threads", str(self.r.randint(1, 3)), "--seconds", "1"]
        self.process(*words, folder=folder)
        self.totals["met"]["fork"] += self.totals["counts"].pop("forks")

    def exit(self, folder):
        words = ["exit", "--threads", str(self.r.randint(0, 3)), "--seconds", "0.5"]
        cache = str(folder / "cache") if self.r.random() < 0.3 else str(self.args.cache)
        self.process(*words, folder=folder, MLX_VK_CACHE=cache)
        self.totals["met"]["exit"] += 1

    def compiling(self, folder, **more):
        words = ["compile", "--graphs", "10", "--seconds", "20"]
        return self.process(*words, folder=folder, **more)

    def disk(self, folder):
        cache = {"MLX_VK_CACHE": str(folder / "cache")}
        kinds = ("disk_open", "disk_full", "disk_close", "disk_rename", "disk_read")
        faults = [
            f"{k}={self.r.choice((0.1, 0.5, 1))}" for k in self.r.sample(kinds, 2)
        ]
        faults += filter(None, [self.args.secret])
        self.compiling(folder, CHAOS_FAULTS=",".join(faults), **cache)
        self.clean(folder, **cache)

    def kill(self, folder):
        cache = {"MLX_VK_CACHE": str(folder / "cache")}
        for _ in range(2):
            faults = ",".join(filter(None, [self.args.secret, "slow_pipeline=0.5"]))
            after = self.r.uniform(0.5, 2)
            self.compiling(folder, kill=after, CHAOS_FAULTS=faults, **cache)
        self.clean(folder, **cache)

    def cut(self, folder):
        cache = folder / "cache"
        known = list(self.args.cache.glob("*.entry"))
        # What another round is writing at the moment is renamed or gone.
        partial = shutil.ignore_patterns("*.tmp-*")
        shutil.copytree(self.args.cache, cache, ignore=partial)
        for entry in self.r.sample(known, min(len(known), 40)):
            spoil(cache / entry.name, self.r)
            self.totals["met"]["cut"] += 1
        if not known:
            self.compiling(folder, MLX_VK_CACHE=str(cache))
            for entry in sorted(cache.glob("*.entry")):
                spoil(entry, self.r)
                self.totals["met"]["cut"] += 1
        self.clean(folder, MLX_VK_CACHE=str(cache))

    def clean(self, folder, **cache):
        """A process without faults, on that cache, has no errors."""
        result = self.compiling(folder, **cache)
        if not self.args.secret and result["counts"].get("errors"):
            raise Failed(f"{result['named']} where there is no fault")


def said(file) -> str:
    file.seek(0)
    return file.read()[-6000:]


def spoil(file: Path, r: random.Random) -> None:
    data = bytearray(file.read_bytes())
    how = r.randrange(4)
    if how == 0 and data:
        data[r.randrange(len(data))] ^= 1 << r.randrange(8)
    elif how == 1:
        data += r.randbytes(r.randint(1, 100))
    elif how == 2:
        data = bytearray(r.randbytes(len(data)))
    else:
        del data[r.randint(0, max(0, len(data) - 1)) :]
    file.unlink()
    file.write_bytes(data)


class Chaos:
    def __init__(self, args):
        self.args = args
        self.lock = threading.Lock()
        self.total = {"counts": Counter(), "named": Counter(), "met": Counter()}
        self.rounds, self.failures, self.failed = Counter(), Counter(), []
        self.seconds = Counter()

    def one(self, number: int) -> None:
        round = Round(self.args, number)
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                round.run(Path(folder))
                failure = None
            except Failed as e:
                failure = str(e)
        with self.lock:
            for name, total in self.total.items():
                total.update(round.totals[name])
            self.rounds[round.scene] += 1
            self.seconds[round.scene] += time.monotonic() - begun
            if failure:
                self.failures[round.scene] += 1
                how = f"--seed {self.args.seed} --round {number}"
                said = f"{round.scene} {round.settings} ({how}) failed: {failure}"
                print("--", said, flush=True)
                self.failed.append(said[:400])

    def loop(self, numbers, until: float) -> None:
        while time.monotonic() < until:
            with self.lock:
                number = next(numbers)
            self.one(number)

    def run(self) -> int:
        args, begun = self.args, time.monotonic()
        if args.round is not None:
            self.one(args.round)
        else:
            numbers = iter(range(1 << 30))
            until = begun + args.seconds
            with ThreadPoolExecutor(args.jobs) as pool:
                for done in [
                    pool.submit(self.loop, numbers, until) for _ in range(args.jobs)
                ]:
                    done.result()
        summary = {"seed": args.seed, "seconds": round(time.monotonic() - begun, 1)}
        summary |= {"rounds": self.rounds, "failed": self.failures}
        summary["seconds_of"] = {k: round(v, 1) for k, v in self.seconds.items()}
        summary |= {k: dict(sorted(v.items())) for k, v in self.total.items()}
        print(json.dumps(summary, indent=1))
        if args.json:
            args.json.write_text(json.dumps(summary))
        print(*self.failed, sep="\n")
        failed = self.failures.total()
        print(f"{self.rounds.total() - failed} passed, {failed} failed, 0 skipped")
        return 1 if failed else 0


def main() -> int:
    scenes = ["storm", "final", "fork", "exit", "disk", "cut", "kill"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=1, help="rounds at once")
    parser.add_argument("--threads", type=int, default=4, help="of a process, at most")
    parser.add_argument("--storm", type=float, default=4, help="seconds of a storm")
    parser.add_argument("--limit", type=float, default=120, help="seconds of a process")
    parser.add_argument("--scene", nargs="+", choices=scenes, default=scenes)
    parser.add_argument("--finals", nargs="+", default=["lost_submit", "lost_wait"])
    parser.add_argument("--round", type=int, help="this one only")
    parser.add_argument("--json", type=Path, help="write the counts to this file")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=VALUE", help="variables of all"
    )
    parser.add_argument(
        "--secret", default="", help="faults that nobody expects: NAME=PROBABILITY,..."
    )
    args = parser.parse_args()
    args.set = dict(word.split("=", 1) for word in args.set)
    args.library = args.build.resolve() / "libchaos_faults.so"
    if not args.library.exists():
        sys.exit(f"{args.library} is not built (target chaos_faults)")
    with tempfile.TemporaryDirectory() as folder:
        args.cache = Path(folder) / "cache"
        args.cache.mkdir(mode=0o700)
        return Chaos(args).run()


if __name__ == "__main__":
    sys.exit(main())
