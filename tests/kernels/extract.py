"""The mx.fast.metal_kernel bodies of installed packages, as lines of JSON.

    python tests/kernels/extract.py [--root FOLDER] PACKAGE... [--mlx-tests FOLDER]

Packages are imported from FOLDER or the environment with mx.metal.is_available
true and mx.fast.metal_kernel replaced by a recorder; kernels that are made on
first use come from the calls in kernels.toml. Nothing runs on a GPU. Each line is
an object:

    package, file, line, name, input_names, output_names, source, header,
    ensure_row_contiguous, atomic_outputs
    instances: list of {templates: [{name, value}], arguments: [{name, type,
        output, constant, reference, atomic}], threads: [x, y, z]}

where types are MSL names. A kernel of a package that cannot be had is a line
{package, file, line, error}. The code of a package runs here, as it would in its
use, with stand-ins for what it imports and this machine lacks.
"""

import argparse
import ast
import fnmatch
import importlib
import importlib.util
import itertools
import json
import sys
import types
from pathlib import Path

import mlx.core as mx
import tomllib

HERE = Path(__file__).resolve().parent

MSL = {
    "bool": "bool",
    "u8": "uint8_t",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "f16": "float16_t",
    "bf16": "bfloat16_t",
    "f32": "float",
    "c64": "complex64_t",
}
OF_MLX = {
    mx.bool_: "bool",
    mx.uint8: "u8",
    mx.uint16: "u16",
    mx.uint32: "u32",
    mx.uint64: "u64",
    mx.int8: "i8",
    mx.int16: "i16",
    mx.int32: "i32",
    mx.int64: "i64",
    mx.float16: "f16",
    mx.bfloat16: "bf16",
    mx.float32: "f32",
    mx.complex64: "c64",
}
# Imported by mlx-vlm beside what extracting kernels needs.
STAND_INS = (
    *("PIL", "cv2", "datasets", "fastapi", "llguidance", "miniaudio", "mlx_audio"),
    *("multipart", "scipy", "sounddevice", "soundfile", "starlette", "torch"),
    *("torchvision", "uvicorn", "websockets", "cryptography", "huggingface_hub"),
)


class StandIn(type):
    """A class that has every attribute, and can be called and derived from."""

    def __new__(mcs, name, bases=(), body=None, **_):
        return super().__new__(mcs, name, tuple(b for b in bases), body or {})

    def __init__(cls, name, bases=(), body=None, **_):
        super().__init__(name, bases, body or {})

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(name)


class StandInModule(types.ModuleType):
    __path__: list[str] = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(name)


class Finder:
    """Finds modules of STAND_INS that are not installed. Last on the path."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in STAND_INS:
            return importlib.util.spec_from_loader(name, Finder)
        return None

    @staticmethod
    def create_module(spec):
        return StandInModule(spec.name)

    @staticmethod
    def exec_module(module):
        pass


class Recorder:
    """Takes the place of mx.fast.metal_kernel and keeps what it is given."""

    def __init__(self):
        self.kernels = []

    def __call__(
        self,
        name,
        input_names,
        output_names,
        source,
        header="",
        ensure_row_contiguous=True,
        atomic_outputs=False,
        compile_options=None,
    ):
        frame = sys._getframe(1)
        kernel = {
            "file": frame.f_code.co_filename,
            "line": frame.f_lineno,
            "name": name,
            "input_names": list(input_names),
            "output_names": list(output_names),
            "source": source,
            "header": header,
            "ensure_row_contiguous": ensure_row_contiguous,
            "atomic_outputs": atomic_outputs,
            "instances": [],
        }
        self.kernels.append(kernel)

        def call(
            *,
            inputs,
            output_shapes,
            output_dtypes,
            grid,
            threadgroup,
            template=(),
            init_value=None,
            verbose=False,
            stream=None,
        ):
            inputs = [x if isinstance(x, mx.array) else mx.array(x) for x in inputs]
            threads = [min(g, t) for g, t in zip(grid, threadgroup)]
            instance = {
                "templates": [
                    {"name": n, "value": value_of_template(v)} for n, v in template
                ],
                "arguments": arguments(
                    kernel,
                    [(OF_MLX[x.dtype], x.ndim == 0, x.size < 8) for x in inputs],
                    [OF_MLX[t] for t in output_dtypes],
                ),
                "threads": threads,
            }
            if instance not in kernel["instances"]:
                kernel["instances"].append(instance)
            return [mx.zeros(s, t) for s, t in zip(output_shapes, output_dtypes)]

        return call


def value_of_template(value):
    return MSL[OF_MLX[value]] if isinstance(value, mx.Dtype) else value


def arguments(kernel, inputs, outputs):
    """The function's parameters as MLX would write them: of each input its
    dtype, whether it has no dimensions, whether it is small."""
    taken = []

    def add(name, kind, **flags):
        default = {"output": False, "constant": False, "reference": False}
        taken.append({"name": name, "type": kind, **default, "atomic": False, **flags})

    for name, (kind, scalar, small) in zip(kernel["input_names"], inputs):
        add(name, MSL[kind], constant=scalar or small, reference=scalar)
        if not scalar:
            for suffix, its_kind in (("_shape", "int"), ("_strides", "int64_t")):
                if name + suffix in kernel["source"]:
                    add(name + suffix, its_kind, constant=True)
            if name + "_ndim" in kernel["source"]:
                add(name + "_ndim", "int", constant=True, reference=True)
    for name, kind in zip(kernel["output_names"], outputs):
        add(name, MSL[kind], output=True, atomic=kernel["atomic_outputs"])
    return taken


def instances(kernel, row):
    """Those that a row of kernels.toml describes, one for each float type."""
    parameters = [p.partition("=")[::2] for p in row.get("template", "").split()]
    varied = [name for name, value in parameters if not value]
    varied += row.get("free", "").split()
    kinds = row.get("types", "f16 bf16 f32").split()
    # Parameters that vary do so independently only in callers of none.
    for kind in kinds if varied else [None]:
        chosen = dict.fromkeys(varied, kind)
        templates = []
        for name, text in parameters:
            if name in chosen or text in MSL or text in chosen:
                chosen.setdefault(name, chosen.get(text, text))
                value = MSL[chosen[name]]
            elif text in ("true", "false"):
                value = text == "true"
            else:
                value = int(text)
            templates.append({"name": name, "value": value})
        inputs = []
        for text in row["inputs"].split()[: len(kernel["input_names"])]:
            bare = text.rstrip(".@")
            scalar, small = text.endswith("."), text.endswith("@")
            inputs.append((chosen.get(bare, bare), scalar, small))
        outputs = [chosen.get(text, text) for text in row["outputs"].split()]
        if len(inputs) != len(kernel["input_names"]) or len(outputs) != len(
            kernel["output_names"]
        ):
            raise ValueError(
                f"kernels.toml has {len(inputs)} inputs and {len(outputs)} outputs "
                f"for {kernel['name']}, which takes {kernel['input_names']} and "
                f"{kernel['output_names']}"
            )
        yield {
            "templates": templates,
            "arguments": arguments(kernel, inputs, outputs),
            "threads": row["threads"],
        }


def calls_of_metal_kernel(path):
    """Lines on which a file makes kernels."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            "fast.metal_kernel"
        ):
            yield node.lineno


def patched(recorder):
    mx.fast.metal_kernel = recorder
    mx.metal.is_available = lambda: True
    mx.default_device = lambda: mx.gpu
    if Finder not in sys.meta_path:
        sys.meta_path.append(Finder)


def package(name, root, table):
    """Kernels of a package, and of each that cannot be had, why."""
    recorder = Recorder()
    original = mx.fast.metal_kernel, mx.metal.is_available, mx.default_device
    patched(recorder)
    problems = {}
    try:
        folder = root / name
        # Without the package's own __init__, which imports all of it.
        bare = types.ModuleType(name)
        bare.__path__ = [str(folder)]
        sys.modules[name] = bare
        wanted = {
            path: lines
            for path in sorted(folder.rglob("*.py"))
            if (lines := sorted(calls_of_metal_kernel(path)))
        }
        for path in wanted:
            parts = path.relative_to(root).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            try:
                loaded = importlib.import_module(module)
            except Exception as e:
                problems[path] = f"{module} is not imported: {e!r}"
                continue
            for row in table.get("factory", []):
                for call in row["calls"] if row["module"] == module else []:
                    try:
                        eval(call, {**vars(loaded), "mx": mx})
                    except Exception as e:
                        problems[path] = f"{module}.{call}: {e!r}"
    finally:
        mx.fast.metal_kernel, mx.metal.is_available, mx.default_device = original
    for kernel in unique(recorder.kernels):
        complete(kernel, table)
        kernel["file"] = str(Path(kernel["file"]).relative_to(root))
        yield {"package": name, **kernel}
    for path, lines in wanted.items():
        made = {
            k["line"] for k in recorder.kernels if k["file"] == relative(path, root)
        }
        for line in lines:
            if line not in made:
                why = problems.get(path, "no call of kernels.toml makes it")
                file = relative(path, root)
                yield {"package": name, "file": file, "line": line, "error": why}


def relative(path, root):
    return str(path.relative_to(root))


def unique(kernels):
    """Those of one place and text once."""
    seen = {}
    for kernel in kernels:
        key = kernel["file"], kernel["line"], kernel["name"], kernel["source"]
        kept = seen.setdefault(key, kernel)
        if kept is not kernel:
            kept["instances"] += kernel["instances"]
    return seen.values()


def complete(kernel, table):
    """Adds instances by kernels.toml, which has more types than the calls of
    factories."""
    for row in table.get("kernel", []):
        if fnmatch.fnmatchcase(kernel["name"], row["name"]):
            for instance in instances(kernel, row):
                if instance not in kernel["instances"]:
                    kernel["instances"].append(instance)
            return


def mlx_tests(folder):
    """Kernels of MLX's own Python tests, by running the tests that have any
    with the recorder (what they then assert of zeros does not matter)."""
    import unittest

    recorder = Recorder()
    original = mx.fast.metal_kernel, mx.metal.is_available
    mx.fast.metal_kernel, mx.metal.is_available = recorder, lambda: True
    sys.path.insert(0, str(folder))
    try:
        for path in sorted(folder.glob("test_*.py")):
            tree = ast.parse(path.read_text())
            names = {
                node.name
                for node in ast.walk(tree)
                if isinstance(node, ast.FunctionDef)
                and node.name.startswith("test")
                and "metal_kernel" in ast.unparse(node)
            }
            if not names:
                continue
            module = importlib.import_module(path.stem)
            tests = itertools.chain.from_iterable(
                unittest.defaultTestLoader.loadTestsFromModule(module)
            )
            chosen = [test for test in tests if test._testMethodName in names]
            unittest.TestSuite(chosen).run(unittest.TestResult())
    finally:
        sys.path.remove(str(folder))
        mx.fast.metal_kernel, mx.metal.is_available = original
    for kernel in unique(recorder.kernels):
        if kernel["instances"]:  # one test wants a refusal before any call
            kernel["file"] = Path(kernel["file"]).name
            yield {"package": "mlx", **kernel}


def extract(packages, root=None, tests=None):
    """All lines. `root`: the folder that has the packages (else where they are
    installed)."""
    files = ("kernels.toml", "factories.toml")
    table = {
        k: v for f in files for k, v in tomllib.loads((HERE / f).read_text()).items()
    }
    for name in packages:
        folder = root
        if folder is None or not (folder / name).is_dir():
            spec = importlib.util.find_spec(name)
            folder = Path(spec.submodule_search_locations[0]).parent
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        yield from package(name, folder, table)
    if tests is not None:
        yield from mlx_tests(tests)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packages", nargs="*", metavar="PACKAGE")
    parser.add_argument("--root", type=Path, help="the folder that has the packages")
    parser.add_argument("--mlx-tests", type=Path, help="python/tests of MLX's source")
    args = parser.parse_args()
    for kernel in extract(args.packages, args.root, args.mlx_tests):
        print(json.dumps(kernel))


if __name__ == "__main__":
    main()
