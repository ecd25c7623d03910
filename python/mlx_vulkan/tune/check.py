"""Whether an alternative plan computes what the default does: a product or an
attention of a class, alone, on random operands."""

from . import library

QUANTIZED, DENSE, ATTENTION, NORM = range(4)
BATCH_GATHER = 2
# Modes by code and scale of kernels/quant/formats.h.
MODES = {(0, 0): "affine", (1, 1): "mxfp4", (2, 1): "mxfp8", (1, 2): "nvfp4"}
# The distance of neighbouring numbers of a type, relative; of float32, what sums of
# thousands of products in another order lose.
STEPS = {"bfloat16": 2**-8, "float16": 2**-11, "float32": 2**-18}
SAMPLE, MOST_CALLS = 2e-3, 32  # seconds of a sample alone
NORM_ROWS = 4  # a few, as of a step


class Differs(Exception):
    """The results of two plans of one problem."""


def dtype_of(mx, problem: str):
    names = {"bf16": mx.bfloat16, "f16": mx.float16, "f32": mx.float32}
    name = problem.partition(" T=")[2].partition(" ")[0]
    return names.get(name)


def operation(mx, found: dict):
    """A function that computes a problem of the class, and the size of errors that
    rounding explains, in units of the type's step; None where it is not known how."""
    dtype = dtype_of(mx, found["problem"])
    build = (quantized, dense, attention, norm)[found["kind"]]
    return dtype and build(mx, found["members"], dtype)


def normal(mx, shape, dtype, scale: float = 1.0):
    return (mx.random.normal(shape) * scale).astype(dtype)


def quantized(mx, p: dict, dtype):
    mode = MODES.get((p["code"], p["scale"]))
    if mode is None or p["side"] == 2:
        return None
    shape = (p["n"], p["k"]) if p["transpose"] else (p["k"], p["n"])
    gathered = p["stack"] == BATCH_GATHER
    if gathered:
        shape = (p["matrices"], *shape)
    elif p["batch"] > 1:
        return None
    form = dict(group_size=p["group"], bits=p["bits"], mode=mode)
    w = mx.quantize(normal(mx, shape, dtype, 0.05), **form)
    x = normal(mx, (p["m"], p["k"]), dtype)
    form["transpose"] = bool(p["transpose"])
    size = 8 * 0.05 * p["k"] ** 0.5
    if not gathered:
        return lambda: mx.quantized_matmul(x, *w, **form), size
    x = normal(mx, (p["batch"], p["m"], p["k"]), dtype)
    which = mx.random.randint(0, p["matrices"], (p["batch"],)).astype(mx.uint32)
    which = mx.sort(which) if p["sorted"] else which
    form |= dict(rhs_indices=which, sorted_indices=bool(p["sorted"]))
    return lambda: mx.gather_qmm(x, *w, **form), size


def dense(mx, p: dict, dtype):
    if p["stack"] == BATCH_GATHER or p["aligned"] & 4 or p["a_col"] != 1:
        return None
    front = (p["batch"],) if p["batch"] > 1 else ()
    a = normal(mx, (*front, p["m"], p["k"]), dtype)
    if p["b_row"] == 1 and p["b_col"] != 1:
        b = normal(mx, (*front, p["n"], p["k"]), dtype, 0.05).swapaxes(-1, -2)
    else:
        b = normal(mx, (*front, p["k"], p["n"]), dtype, 0.05)
    return lambda: a @ b, 8 * 0.05 * p["k"] ** 0.5


def attention(mx, p: dict, dtype):
    if p["bits"] or p["options"] & ~1:
        return None
    queries, keys = p["queries"], p["keys"]
    # Large scores: few keys decide, so that a wrong one is seen.
    q = normal(mx, (p["batch"], p["heads"], queries, p["dim"]), dtype, 4.0)
    k = normal(mx, (p["batch"], p["kv_heads"], keys, p["dim"]), dtype)
    v = normal(mx, (p["batch"], p["kv_heads"], keys, p["value_dim"]), dtype)
    mask = "causal" if p["options"] & 1 else None
    if p["mask"]:
        mask = mx.random.uniform(shape=(queries, keys)) < 0.8
    if p["mask"] == 2:
        mask = mx.where(mask, 0.0, -1e9).astype(dtype)
    fast, scale = mx.fast.scaled_dot_product_attention, p["dim"] ** -0.5
    return lambda: fast(q, k, v, scale=scale, mask=mask), 8.0


def norm(mx, p: dict, dtype):
    layer, weight, bias, vec = (p["options"] >> i & 1 for i in range(4))
    if not vec:
        return None
    x = normal(mx, (NORM_ROWS, p["n"]), dtype)
    w = normal(mx, (p["n"],), dtype) if weight else None
    b = normal(mx, (p["n"],), dtype) if bias else None
    if layer:
        return lambda: mx.fast.layer_norm(x, w, b, 1e-5), 2.0
    return lambda: mx.fast.rms_norm(x, w, 1e-5), 2.0


class Check:
    """Holds a class's operands and the default's result."""

    def __init__(self, mx, found: dict):
        mx.random.seed(11)
        self.mx, self.step, self.calls = mx, 0.0, 0
        self.made = operation(mx, found)
        if self.made:
            library.record(True)
            y = self.made[0]()
            self.step = STEPS[str(y.dtype).rpartition(".")[2]]
            self.expected, self.kind = y.astype(mx.float32), (y.shape, y.dtype)
            mx.eval(self.expected)
            # Operands that MLX lays out in another way are another class.
            known = {one["problem"] for one in library.classes()}
            library.record(False)
            self.made = self.made if found["problem"] in known else None

    def seconds(self, choices: list[dict], timestamps: bool) -> float:
        """Of one call, of as many as take some milliseconds."""
        mx, function = self.mx, self.made[0]
        library.use(choices)

        def run():
            mx.eval([function() for _ in range(self.calls)])

        if not self.calls:
            self.calls = 1
            library.measure(run, timestamps)  # compiles
            once = library.measure(run, timestamps)
            self.calls = min(max(int(SAMPLE / once), 1), MOST_CALLS)
        return library.measure(run, timestamps) / self.calls

    def run(self, choices: list[dict]) -> None:
        """Throws Differs, or what MLX throws."""
        if not self.made:
            return
        function, size = self.made
        library.use(choices)
        mx = self.mx
        # A kernel that writes nothing must not find the default's result in its memory.
        mx.clear_cache()
        mx.eval(mx.full(self.kind[0], float("nan"), dtype=self.kind[1]))
        got, expected = function().astype(mx.float32), self.expected
        allowed = self.step * (2 * mx.abs(expected) + size)
        off = mx.abs(got - expected)
        wrong = mx.isfinite(expected) & ~(off <= allowed)  # NaN is, too
        count = wrong.sum().item()
        if count:
            at = mx.argmax(mx.where(wrong, 1, 0)).item()
            values = [x.reshape(-1)[at].item() for x in (got, expected, allowed)]
            raise Differs(
                f"{count} of {wrong.size} items differ: {values[0]:.5g} and not "
                f"{values[1]:.5g}, {values[2]:.2g} allowed"
            )
