"""One process of tests/chaos/run.py: graphs under faults, which it judges itself.

The last line of its output is what it counted, as JSON. Whatever ends the process
otherwise, or keeps it from ending, is judged by who started it.
"""

import argparse
import contextlib
import ctypes
import faulthandler
import gc
import itertools
import json
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections import Counter

import graphs
import mlx.core as mx
import numpy as np

# Whoever looks first after a loss names the call.
LOST = r"device was lost \(vk\w+: ERROR_DEVICE_LOST|vkQueueSubmit: ERROR_DEVICE_LOST"

# What an error says that tells of a fault.
CAUSES = {
    "buffer": r"Unable to allocate|vkCreateBuffer|OUT_OF_DEVICE_MEMORY",
    "memory": r"Unable to allocate|vkAllocateMemory|OUT_OF_DEVICE_MEMORY",
    "shader": r"vkCreateShaderModule",
    "pipeline": r"vkCreateComputePipelines",
    "commands": r"vkAllocateCommandBuffers",
    "begin": r"vkBeginCommandBuffer",
    "end": r"vkEndCommandBuffer",
    "submit": r"vkQueueSubmit",
    "lost_submit": LOST,
    "lost_wait": LOST,
    "drop": r"GPU dropped work",
    "hang": r"no progress|has not finished",
    "cpu": r"::eval_cpu\]",
}
SILENT = ("slow_pipeline", "slow_submit")
DISK = ("disk_open", "disk_full", "disk_close", "disk_rename", "disk_read")
PASSING = ("buffer", "memory", "shader", "pipeline", "commands", "begin", "end")
PASSING += ("submit", *SILENT, *DISK)
FINAL = ("lost_submit", "lost_wait", "drop", "hang")


def traced(error):
    return "".join(traceback.format_exception(error))[-1500:]


class Faults:
    """The layer's schedule and counts."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.chaos_set.argtypes = [ctypes.c_char_p, ctypes.c_double]
        self.library.chaos_met.restype = ctypes.c_uint64
        self.library.chaos_name.restype = ctypes.c_char_p
        self.library.chaos_pipelines.restype = ctypes.c_uint64
        self.library.chaos_unused_device_memory.restype = ctypes.c_int64
        self.armed = set()

    def set(self, name, probability):
        if probability > 0:
            self.armed.add(name)
        assert self.library.chaos_set(name.encode(), probability), name

    def calm(self):
        for name in self.armed:
            self.set(name, 0)

    def met(self):
        counts, i = {}, 0
        while name := self.library.chaos_name(i):
            counts[name.decode()] = self.library.chaos_met(name)
            i += 1
        return {name: n for name, n in counts.items() if n}

    def pipelines(self):
        return self.library.chaos_pipelines()

    def unused_device_memory(self):
        return self.library.chaos_unused_device_memory()


def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Scene:
    def __init__(self, args):
        self.args = args
        self.r = np.random.default_rng(args.seed)
        self.faults = Faults(os.environ["CHAOS_LIBRARY"])
        self.lock = threading.Lock()
        self.counts = Counter()
        self.named = Counter()
        self.failures = []
        self.ended = threading.Event()
        self.numbers = itertools.count(1)  # of threads, for their seeds

    def fail(self, kind, text):
        with self.lock:
            self.counts[kind] += 1
            if len(self.failures) < 5:
                self.failures.append(f"{kind}: {text}")

    def judge(self, error, graph=None):
        """An error has to name what was done to it."""
        text = str(error)
        if isinstance(error, graphs.Wrong):
            self.fail("wrong", f"{graph}\n{traced(error)}")
            return
        for name in sorted(self.faults.armed | {"cpu"}):
            if name in CAUSES and re.search(CAUSES[name], text):
                with self.lock:
                    self.named[name] += 1
                return
        self.fail("unnamed", traced(error))

    def one(self, r, gpus, cpus, new=0.05):
        """A graph; afterwards what it was made of is as it was, and what it was to
        make is right or raises again."""
        graph = graphs.Graph(r, gpus, cpus, big=True, new=new)
        try:
            graph.run(int(r.integers(1, 16)))
            outcome = "right"
        except Exception as e:
            self.judge(e, graph)
            outcome = "errors"
            del e
        with self.lock:
            self.counts[outcome] += 1
            self.counts["graphs"] += 1
        if outcome == "errors":
            for x, want in (*graph.leaves, *graph.outputs):
                try:
                    graphs.check(x, want)
                except Exception as e:
                    self.judge(e, graph)

    def callback(self, r):
        """What a callback raises comes out as it is."""
        f = graphs.RAISING[r.integers(len(graphs.RAISING))]
        try:
            f(mx.arange(int(r.integers(1, 300))))
            self.fail("swallowed", f.__name__)
        except graphs.Wanted:
            with self.lock:
                self.counts["callbacks"] += 1
        except Exception as e:
            self.judge(e)

    def cpu_error(self, r, gpu, cpu):
        """An operation of a CPU stream that throws, with readers on the GPU."""
        try:
            bad = mx.linalg.inv(mx.zeros((3, 3)), stream=cpu)
            after = mx.add(bad, 1, stream=gpu)
            for _ in range(int(r.integers(0, 20))):
                after = mx.add(after, 1, stream=gpu if r.random() < 0.5 else cpu)
            mx.eval(after)
            self.fail("swallowed", "an inverse of a singular matrix")
        except Exception as e:
            self.judge(e)
            with self.lock:
                self.counts["cpu_errors"] += 1
        # MLX's CPU stream keeps its error until it is asked for it.
        with contextlib.suppress(RuntimeError):
            mx.synchronize(cpu)

    def streams(self):
        a = self.args
        gpus = [mx.new_stream(mx.gpu) for _ in range(a.streams)]
        return gpus, [mx.new_stream(mx.cpu) for _ in range(a.cpu_streams)]

    def work(self, number):
        try:
            mx.set_default_device(mx.gpu)
            r = np.random.default_rng([self.args.seed, number])
            gpus, cpus = self.streams()
            spare = mx.new_stream(mx.cpu)
            while not self.ended.is_set():
                draw = r.random()
                if draw < 0.03:
                    self.callback(r)
                elif draw < 0.05:
                    self.cpu_error(r, gpus[0], spare)
                elif draw < 0.08:
                    mx.clear_cache()
                else:
                    self.one(r, gpus, cpus, self.args.new)
            for s in (*gpus, *cpus):
                with contextlib.suppress(RuntimeError):
                    mx.synchronize(s)
        except BaseException as e:
            self.fail("thread ended", traced(e))

    def begin(self):
        self.ended.clear()
        self.threads = [
            threading.Thread(target=self.work, args=(next(self.numbers),))
            for _ in range(self.args.threads)
        ]
        for t in self.threads:
            t.start()

    def end(self):
        self.ended.set()
        for t in self.threads:
            t.join()

    def weather(self, seconds, names):
        """Faults come and go."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.faults.calm()
            if names and self.r.random() < 0.7:
                for _ in range(int(self.r.integers(1, 3))):
                    p = (0.01, 0.1, 0.5, 1.0)[self.r.integers(4)]
                    self.faults.set(names[self.r.integers(len(names))], p)
            time.sleep(float(self.r.uniform(0.01, 0.1)))
        self.faults.calm()

    def calm_graphs(self, count):
        """With no fault about there is no error, on any stream."""
        gpus, cpus = self.streams()
        for _ in range(count):
            graph = graphs.Graph(self.r, gpus, cpus, new=0)
            try:
                graph.run(int(self.r.integers(1, 12)))
                self.counts["calm"] += 1
            except Exception as e:
                self.fail("not recovered", traced(e))

    def settled(self):
        """Bytes of arrays and of the process when nothing is under way."""
        active, quiet = None, 0
        end = time.monotonic() + 5
        # A CPU stream's thread lets go of a task's arrays after it has reported it.
        while quiet < 3 and time.monotonic() < end:
            gc.collect()
            with contextlib.suppress(RuntimeError):
                mx.synchronize()
            mx.clear_cache()
            mx.get_cache_memory()  # what leaves has left
            before, active = active, mx.get_active_memory()
            quiet = quiet + 1 if active == before else 0
            time.sleep(0.02)
        ctypes.CDLL(None).malloc_trim(0)  # what the C library keeps of freed blocks
        return mx.get_active_memory(), rss()

    # Scenes.

    def storm(self):
        """Faults that pass: the process goes on, and nothing is left behind."""
        self.calm_graphs(3)
        active, _ = self.settled()
        sizes, names = [], self.args.faults
        if self.r.random() < 0.5:  # so that calls which are rare meet theirs
            names = list(self.r.choice(names, min(3, len(names)), replace=False))
        for _ in range(2):  # the first one fills pools and arenas
            made = self.faults.pipelines()
            self.begin()
            self.weather(self.args.seconds * 0.5, names)
            self.end()
            made = self.faults.pipelines() - made
            self.calm_graphs(5)
            after, size = self.settled()
            sizes.append(size)
            if after != active:
                self.fail("leak", f"{after - active} bytes of arrays stay")
        half, size = sizes
        self.counts["rss_growth"] = size - half
        # On a software device the allocator's empty blocks are memory of the process,
        # and work of the second half may have been the first to touch their pages.
        unused = self.faults.unused_device_memory()
        self.counts["unused_device_memory"] = unused
        allowed = (96 << 20) + made * (2 << 20) + unused
        if size - half > allowed:
            self.fail(
                "leak", f"the process grew by {size - half} bytes, {made} new kernels"
            )

    def final(self):
        """A fault that is the device's last."""
        self.begin()
        self.weather(float(self.r.uniform(0.05, 0.6)), SILENT)
        name = self.args.fault
        self.faults.set(name, 0.2)
        until = time.monotonic() + 20
        while not self.faults.met().get(name) and time.monotonic() < until:
            time.sleep(0.01)
        self.faults.set(name, 0)
        if not self.faults.met().get(name):
            self.fail("not met", name)
        until = time.monotonic() + 20
        while not self.named[name] and time.monotonic() < until:
            time.sleep(0.01)
        if not self.named[name]:
            self.fail("swallowed", f"{name} raised nothing")
        self.end()

    def fork(self):
        """Children of a process in mid-eval are told, and it goes on itself."""
        self.begin()
        known = mx.array(np.arange(100, dtype=np.int32))
        mx.eval(known)
        until = time.monotonic() + self.args.seconds
        while time.monotonic() < until:
            time.sleep(float(self.r.uniform(0, 0.05)))
            child = os.fork()
            if child == 0:
                forked(known)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if code != 0:
                said = {-signal.SIGALRM: "hangs", 2: "has no error"}.get(code, code)
                self.fail("fork", f"the child {said}")
            self.counts["forks"] += 1
        self.end()
        self.calm_graphs(5)

    def exit(self):
        """The interpreter ends while all are at work."""
        self.begin()
        time.sleep(float(self.r.uniform(0, self.args.seconds)))
        gpus, cpus = self.streams()
        g = graphs.Graph(self.r, gpus, cpus)
        x = g.leaf()[0]
        kept = []
        for _ in range(int(self.r.integers(1, 200))):
            x = mx.sort(x + 1, stream=g.stream()) * 3
            kept.append(x)
        mx.async_eval(x)
        self.ended.set()
        if self.r.random() < 0.5:
            for t in self.threads:
                t.join()
            mx.async_eval(kept)
        self.report()
        if self.r.random() < 0.3:
            raise SystemExit(0)

    def compile(self):
        """Graphs whose kernels nobody has, in the order of the seed."""
        gpus, cpus = self.streams()
        until = time.monotonic() + self.args.seconds
        while self.counts["graphs"] < self.args.graphs and time.monotonic() < until:
            self.one(self.r, gpus, cpus, new=0.7)

    def report(self):
        result = {"counts": self.counts, "named": self.named}
        result |= {"met": self.faults.met(), "failures": self.failures}
        print(json.dumps(result), flush=True)


def forked(known):
    """Ends the child of a fork: 0 if it was told that it cannot use the GPU."""
    faulthandler.cancel_dump_traceback_later()
    signal.alarm(20)
    code = 2
    try:
        mx.eval(mx.add(known, 1, stream=mx.gpu))
    except Exception as e:
        code = 0 if "fork" in str(e) else 3
    os._exit(code)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scene")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--streams", type=int, default=2)
    parser.add_argument("--cpu-streams", type=int, default=1)
    parser.add_argument("--new", type=float, default=0.05)
    parser.add_argument("--graphs", type=int, default=1 << 30)
    parser.add_argument("--fault", choices=FINAL)
    parser.add_argument("--faults", nargs="*", default=PASSING)
    args = parser.parse_args()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    mx.set_default_device(mx.gpu)
    scene = Scene(args)
    scene.faults.library.chaos_seed(ctypes.c_uint64(args.seed))
    getattr(scene, args.scene)()
    if args.scene != "exit":
        scene.report()
    return 0


if __name__ == "__main__":
    sys.exit(main())
