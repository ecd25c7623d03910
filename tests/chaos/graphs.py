"""Random graphs of exact operations: each value has its twin in NumPy.

Values are vectors of a graph's length, int32 (which wraps) throughout; floats occur
inside of an operation, where no order of sums changes the result.
"""

import mlx.core as mx
import numpy as np

INT = np.int32


class Wanted(Exception):
    """What a callback raises."""


class Wrong(AssertionError):
    """A value that is not NumPy's."""


def wrap(x):
    return np.asarray(x).astype(np.int64).astype(np.uint32).astype(INT)


def binary(r):
    both = [
        (mx.add, lambda a, b: wrap(a.astype(np.int64) + b)),
        (mx.subtract, lambda a, b: wrap(a.astype(np.int64) - b)),
        (mx.multiply, lambda a, b: wrap(a.astype(np.int64) * b)),
        (mx.maximum, np.maximum),
        (mx.minimum, np.minimum),
        (mx.bitwise_xor, np.bitwise_xor),
        (mx.bitwise_and, np.bitwise_and),
    ]
    return both[r.integers(len(both))]


def elementwise(g, a, b):
    f, h = binary(g.r)
    return f(a[0], b[0], stream=g.stream()), h(a[1], b[1])


def with_number(g, a, b):
    f, h = binary(g.r)
    k = INT(g.r.integers(-99, 99))
    return f(a[0], mx.array(k), stream=g.stream()), h(a[1], k)


def backwards(g, a, b):
    s = g.stream()
    return mx.add(a[0][::-1], b[0], stream=s), wrap(a[1][::-1].astype(np.int64) + b[1])


def transposed(g, a, b):
    s, rows = g.stream(), g.rows
    x = mx.reshape(a[0], (rows, -1), stream=s)
    y = a[1].reshape(rows, -1).T.reshape(-1)
    return mx.reshape(mx.transpose(x, stream=s), (-1,), stream=s), y


def swapped(g, a, b):
    at = int(g.r.integers(0, g.n + 1))
    x = mx.concatenate([a[0][at:], b[0][:at]], stream=g.stream())
    return x, np.concatenate([a[1][at:], b[1][:at]])


def sort(g, a, b):
    return mx.sort(a[0], stream=g.stream()), np.sort(a[1])


def running(g, a, b):
    low = mx.bitwise_and(a[0], mx.array(INT(255)), stream=g.stream())
    sums = mx.cumsum(low, stream=g.stream())
    return sums, wrap(np.cumsum((a[1] & 255).astype(np.int64)))


def less_sum(g, a, b):
    s, rows = g.stream(), g.rows
    x = mx.reshape(a[0], (rows, -1), stream=s)
    x = mx.subtract(x, mx.sum(x, axis=-1, keepdims=True, stream=s), stream=s)
    y = a[1].reshape(rows, -1).astype(np.int64)
    y = y - wrap(y.sum(-1, keepdims=True))
    return mx.reshape(x, (-1,), stream=s), wrap(y).reshape(-1)


def taken(g, a, b):
    at = g.r.integers(-g.n, g.n, g.n).astype(INT)
    return mx.take(a[0], mx.array(at), stream=g.stream()), a[1][at]


def scattered(g, a, b):
    m = max(1, g.n // 2)
    at = g.r.integers(0, g.n, m).astype(INT)
    with mx.stream(g.stream()):
        x = a[0].at[mx.array(at)].add(b[0][:m])
    y = a[1].astype(np.int64)
    np.add.at(y, at, b[1][:m])
    return x, wrap(y)


def chosen(g, a, b):
    s = g.stream()
    return mx.where(a[0] > b[0], a[0], b[0] + 1, stream=s), np.where(
        a[1] > b[1], a[1], wrap(b[1].astype(np.int64) + 1)
    )


def product(g, a, b):
    s, rows = g.stream(), g.rows
    columns = g.n // rows
    if max(rows, columns) > 512:
        return elementwise(g, a, b)

    def seven(x):
        low = mx.bitwise_and(x, mx.array(INT(7)), stream=s)
        return low.astype(mx.float32, stream=s)

    x = mx.matmul(
        mx.reshape(seven(a[0]), (rows, columns), stream=s),
        mx.reshape(seven(b[0]), (columns, rows), stream=s),
        stream=s,
    )
    y = (a[1] & 7).reshape(rows, columns) @ (b[1] & 7).reshape(columns, rows)
    x = mx.sum(x.astype(mx.int32, stream=s), axis=0, stream=s)
    x = mx.reshape(mx.broadcast_to(x[:, None], (rows, columns)), (-1,), stream=s)
    y = np.broadcast_to(y.sum(0)[:, None], (rows, columns))
    return mx.add(x, a[0], stream=s), wrap(y.reshape(-1).astype(np.int64) + a[1])


def expression(r):
    """Of x and y, with constants that make it a kernel of its own."""
    text = "x"
    for _ in range(int(r.integers(2, 7))):
        k = int(r.integers(2, 1000))
        text = (
            f"({text} + {k} * y)",
            f"(({text} ^ {k}) - x)",
            f"({text} * y - {k})",
            f"(({text} & {k}) + x * x)",
        )[r.integers(4)]
    return eval(f"lambda x, y: {text}")


def compiled(g, a, b):
    # On the GPU alone: MLX's CPU keeps kernels by the digits of their constants, and
    # takes those of 70 and 130 for those of 701 and 30.
    f = expression(g.kernels())
    with mx.stream(g.gpu()):
        x = mx.compile(f)(a[0], b[0])
    with np.errstate(over="ignore"):
        return x, f(a[1], b[1])


def kernel(g, a, b):
    """In Metal's language, with a constant that makes it a kernel of its own."""
    k = int(g.kernels().integers(1, 100_000))
    f = mx.fast.metal_kernel(
        name=f"chaos_{k}",
        input_names=["x", "y"],
        output_names=["z"],
        source=f"uint i = thread_position_in_grid.x; z[i] = x[i] + y[i] * {k};",
    )
    stream = g.gpu()
    (x,) = f(
        inputs=[a[0], b[0]],
        grid=(g.n, 1, 1),
        threadgroup=(min(g.n, 64), 1, 1),
        output_shapes=[(g.n,)],
        output_dtypes=[mx.int32],
        stream=stream,
    )
    return x, wrap(a[1] + b[1].astype(np.int64) * k)


def mapped(g, a, b):
    with mx.stream(g.stream()):
        x = mx.vmap(lambda p, q: p * 3 - q)(a[0], b[0])
    return x, wrap(a[1].astype(np.int64) * 3 - b[1])


def dropped(g, a, b):
    """Work that nobody waits for."""
    mx.async_eval(mx.sort(a[0] * 3, stream=g.stream()))
    return a[0], a[1]


def large(g, a, b):
    """More than a block of the memory allocator has left."""
    n = int(g.r.integers(9, 12)) << 20
    k = int(g.r.integers(1, 99))
    s = g.gpu()
    x = mx.max(mx.full((n,), k, mx.int32, stream=s), stream=s)
    return mx.add(a[0], x, stream=s), wrap(a[1].astype(np.int64) + k)


OPERATIONS = (
    [elementwise] * 8
    + [with_number] * 4
    + [backwards, transposed, swapped, sort, running, less_sum, taken, scattered]
    + [chosen, product, compiled, compiled, kernel, mapped, dropped]
)


# What raises while a graph is made. Each leaves behind what it had begun.


def raise_in_custom_function(x):
    f = mx.custom_function(lambda x: x + 1)

    @f.vjp
    def _(primals, cotangents, outputs):
        raise Wanted("in a vjp", (primals[0] * 2).shape)

    mx.grad(lambda x: f(x).sum())(x.astype(mx.float32))


def raise_in_compile(x):
    def f(x):
        y = x * 2
        raise Wanted("while it is traced", y.shape)

    mx.compile(f)(x)


def raise_in_vmap(x):
    def f(x):
        y = x + 3
        raise Wanted("in a mapped function", y.shape)

    mx.vmap(f)(x)


def raise_in_grad(x):
    def f(x):
        y = mx.sort(x) * 5
        raise Wanted("in a function to differentiate", y.shape)

    mx.value_and_grad(f)(x.astype(mx.float32))


def raise_behind_async_eval(x):
    mx.async_eval(mx.sort(x) * 2)
    raise Wanted("behind an async_eval")


RAISING = [
    raise_in_custom_function,
    raise_in_compile,
    raise_in_vmap,
    raise_in_grad,
    raise_behind_async_eval,
]

SHAPES = [(1, 1), (1, 7), (3, 5), (8, 8), (1, 255), (16, 63), (64, 64), (5, 1001)]
LARGE_SHAPES = [(100, 300), (1, 70_001), (256, 257)]


class Graph:
    """A graph in the making, of one thread's streams."""

    def __init__(self, r, gpus, cpus, big=False, new=0.05):
        self.r, self.gpus, self.cpus = r, gpus, cpus
        self.big, self.new = big, new
        shapes = LARGE_SHAPES if r.random() < 0.05 else SHAPES
        self.rows, columns = shapes[r.integers(len(shapes))]
        self.n = self.rows * columns
        self.mixed = bool(cpus) and r.random() < 0.3
        self.one = gpus[r.integers(len(gpus))] if r.random() < 0.6 else None
        self.leaves, self.outputs, self.names = [], [], []

    def __str__(self):
        how = "streams of both devices" if self.mixed else "several streams"
        how = "one stream" if self.one and not self.mixed else how
        return f"{self.rows} x {self.n // self.rows} on {how}: {', '.join(self.names)}"

    def gpu(self):
        return self.one or self.gpus[self.r.integers(len(self.gpus))]

    def stream(self):
        if self.mixed and self.r.random() < 0.3:
            return self.cpus[self.r.integers(len(self.cpus))]
        return self.gpu()

    def kernels(self):
        """Of which a kernel's text is drawn: a new one with probability `new`."""
        known = int(self.r.integers(12))
        return self.r if self.r.random() < self.new else np.random.default_rng(known)

    def leaf(self):
        want = self.r.integers(-1000, 1000, self.n).astype(INT)
        self.leaves.append((mx.array(want), want))
        return self.leaves[-1]

    def run(self, steps):
        """Makes, evaluates and checks it."""
        r = self.r
        values = [self.leaf(), self.leaf()]
        for _ in range(steps):
            f = OPERATIONS[r.integers(len(OPERATIONS))]
            if self.big and r.random() < 0.02:
                f = large
            near = len(values) - 6
            a, b = (values[max(0, i)] for i in r.integers(near, len(values), 2))
            self.names.append(f.__name__)
            values.append(f(self, a, b))
            if r.random() < 0.05:
                mx.async_eval(values[-1][0])
            if len(values) > 4 and r.random() < 0.3:
                del values[int(r.integers(len(values) - 1))]
        outputs = [values[-1]]
        outputs += [v for v in values[:-1] if r.random() < 0.3]
        if r.random() < 0.7:
            mx.eval([x for x, _ in outputs])
        elif r.random() < 0.5:
            mx.async_eval([x for x, _ in outputs])
        self.outputs = outputs
        for x, want in outputs:
            check(x, want)


def check(x, want):
    have = np.array(x)
    if not np.array_equal(have, want):
        at = np.flatnonzero(have != want)
        raise Wrong(
            f"{len(at)} of {want.size} items are wrong, first of item {at[0]}: "
            f"{have[at[0]]} instead of {want[at[0]]}"
        )
