"""Copies, casts, views, slices, concatenation: operations that only move data."""

import numpy as np

from . import (
    ALL,
    COMPLEX,
    FLOATS,
    INTS,
    Case,
    Raw,
    arrays,
    normal,
    special,
    uniform,
    wide,
)

CASES = []
MOVED = dict(exact=True, tags=("copy",))


def np_pad(x, width, value):
    return np.pad(x, width, constant_values=value)


def np_slice_update(x, update, index):
    x = x.copy()
    x[index] = update
    return x


# Name, fn, oracle, input shapes.
ROWS = [
    (
        "contiguous",
        lambda mx, x: mx.contiguous(x),
        lambda x: x,
        [(3, 5, 37)],
    ),
    ("contiguous_large", lambda mx, x: mx.contiguous(x), lambda x: x, [(9, 130, 65)]),
    (
        "transpose_copy",
        lambda mx, x: mx.contiguous(mx.transpose(x, (2, 0, 1))),
        lambda x: np.transpose(x, (2, 0, 1)),
        [(5, 34, 67)],
    ),
    (
        "transpose_2d",
        lambda mx, x: mx.contiguous(mx.transpose(x)),
        np.transpose,
        [(70, 131)],
    ),
    (
        "reshape_of_transpose",
        lambda mx, x: mx.reshape(mx.swapaxes(x, 0, 1), (-1,)),
        lambda x: np.swapaxes(x, 0, 1).reshape(-1),
        [(6, 5, 33)],
    ),
    (
        "reversed",
        lambda mx, x: mx.contiguous(x[::-1, :, ::-2]),
        lambda x: x[::-1, :, ::-2],
        [(3, 5, 37)],
    ),
    (
        "broadcast_copy",
        lambda mx, x: mx.contiguous(mx.broadcast_to(x, (4, 5, 37))),
        lambda x: np.broadcast_to(x, (4, 5, 37)),
        [(5, 1)],
    ),
    (
        "ten_dimensions",
        lambda mx, x: mx.contiguous(mx.transpose(x, (9, 1, 7, 3, 5, 4, 6, 2, 8, 0))),
        lambda x: np.transpose(x, (9, 1, 7, 3, 5, 4, 6, 2, 8, 0)),
        [(2, 3, 2, 1, 2, 3, 2, 1, 2, 3)],
    ),
    (
        "pad",
        lambda mx, x: mx.pad(x, ((1, 2), (0, 3)), constant_values=mx.array(1, x.dtype)),
        lambda x: np_pad(x, ((1, 2), (0, 3)), 1),
        [(5, 7)],
    ),
    (
        "slice_assign",
        lambda mx, x, u: mx.slice_update(x, u, mx.array([1, 3]), [0, 1]),
        lambda x, u: np_slice_update(x, u, np.s_[1:4, 3:7]),
        [(7, 9), (3, 4)],
    ),
    (
        "at_index",
        lambda mx, x, u: assign(mx, x, u, np.s_[1:6:2, ::-3]),
        lambda x, u: np_slice_update(x, u, np.s_[1:6:2, ::-3]),
        [(7, 9), (3, 3)],
    ),
    (
        "at_index_broadcast",
        lambda mx, x, u: assign(mx, x, u, np.s_[:, 2:5]),
        lambda x, u: np_slice_update(x, u, np.s_[:, 2:5]),
        [(7, 9), ()],
    ),
    (
        "dynamic_slice",
        lambda mx, x: mx.slice(x, mx.array([2, 1]), [0, 1], [3, 5]),
        lambda x: x[2:5, 1:6],
        [(7, 9)],
    ),
    (
        "split_unevenly",
        lambda mx, x: mx.split(x, [2, 5], axis=1),
        lambda x: np.split(x, [2, 5], axis=1),
        [(3, 9, 4)],
    ),
    (
        "tile_repeat",
        lambda mx, x: mx.repeat(mx.tile(x, (2, 3)), 2, axis=0),
        lambda x: np.repeat(np.tile(x, (2, 3)), 2, axis=0),
        [(3, 5)],
    ),
    (
        "roll",
        lambda mx, x: mx.roll(x, 3, axis=1),
        lambda x: np.roll(x, 3, axis=1),
        [(4, 11)],
    ),
    (
        "flatten_unflatten",
        lambda mx, x: mx.unflatten(mx.flatten(mx.transpose(x)), 0, (7, -1)),
        lambda x: x.T.reshape(7, -1),
        [(5, 7)],
    ),
    (
        "full",
        lambda mx, v: mx.full((4, 33), v),
        lambda v: np.full((4, 33), v),
        [()],
    ),
]


def assign(mx, x, u, index):
    x = mx.array(x)
    x[index] = u
    return x


for name, fn, oracle, shapes in ROWS:
    CASES.append(
        Case(
            name,
            arrays(*shapes, gen=wide),
            fn,
            oracle,
            ALL,
            bench=arrays((4096, 4096)) if name == "transpose_2d" else None,
            **MOVED,
        )
    )

for axis in (0, 1, 2):
    for count in (1, 2, 5):
        shapes = [[3, 4, 6] for _ in range(count)]
        for i, s in enumerate(shapes):
            s[axis] = i + 1
        CASES.append(
            Case(
                f"concatenate_{count}_axis_{axis}",
                arrays(*map(tuple, shapes), gen=wide),
                lambda mx, *xs, axis=axis: mx.concatenate(xs, axis=axis),
                lambda *xs, axis=axis: np.concatenate(xs, axis=axis),
                ("bool", "uint8", "bfloat16", "float32", "int64", "complex64"),
                **MOVED,
            )
        )
CASES.append(
    Case(
        "concatenate_empty",
        arrays((0, 4), (3, 4), (0, 4)),
        lambda mx, *xs: mx.concatenate(xs),
        lambda *xs: np.concatenate(xs),
        ("float32", "int8"),
        **MOVED,
    )
)

# Every bit of a value survives, NaN payloads and subnormals included.
for width, unsigned in ((1, "uint8"), (2, "uint16"), (4, "uint32"), (8, "uint64")):
    views = {1: "int8", 2: "bfloat16 float16", 4: "float32 int32", 8: "int64 complex64"}
    for to in views[width].split():
        CASES.append(
            Case(
                f"bits_{unsigned}_as_{to}",
                arrays((3, 5, 37), gen=wide),
                lambda mx, x, to=to, back=unsigned: mx.view(
                    mx.contiguous(mx.view(x, getattr(mx, to))[::-1]), getattr(mx, back)
                ),
                lambda x: x[::-1],
                (unsigned,),
                **MOVED,
            )
        )
CASES += [
    Case(
        f"view_{dtype}_as_{to}",
        arrays((5, 16), gen=wide),
        lambda mx, x, to=to: mx.view(x, getattr(mx, to)),
        lambda x, to=to: np.ascontiguousarray(x).view(to),
        (dtype,),
        **MOVED,
    )
    for dtype, to in (
        ("uint8", "uint32"),
        ("uint32", "uint8"),
        ("int16", "uint64"),
        ("uint64", "int16"),
    )
]


# Casts between all pairs. Values fit both types, since C leaves other casts undefined.
def cast_values(to):
    def gen(rng, shape, dtype):
        if dtype == "bool" or to == "bool":
            return normal(rng, shape, dtype)
        unsigned = "uint" in to or "uint" in dtype
        return (
            uniform(0, 100)(rng, shape, dtype)
            if unsigned
            else uniform(-100, 100)(rng, shape, dtype)
        )

    return gen


def dtype(mx, name):
    return mx.bool_ if name == "bool" else getattr(mx, name)


def np_cast(x, to):
    if to == "bool":
        return x != 0
    if x.dtype.kind == "c" and to not in COMPLEX:
        x = x.real
    if to in FLOATS:
        return x.astype(np.float64)
    return x.astype(to)


for to in ALL:
    CASES.append(
        Case(
            f"cast_to_{to}",
            arrays((4, 5, 33), gen=cast_values(to)),
            lambda mx, x, to=to: x.astype(dtype(mx, to)),
            lambda x, to=to: np_cast(x, to),
            ALL,
            layouts=("contiguous", "transposed", "negative", "offset", "broadcast"),
            exact=True,
            bench=arrays((4096, 4096)) if to == "bfloat16" else None,
            tags=("cast",),
        )
    )
    CASES.append(
        Case(
            f"scalar_cast_to_{to}",
            arrays((), gen=cast_values(to)),
            lambda mx, x, to=to: x.astype(dtype(mx, to)),
            lambda x, to=to: np_cast(x, to),
            ("bool", "uint8", "int64", "bfloat16", "float32"),
            exact=True,
            tags=("cast",),
        )
    )
for to in FLOATS:
    CASES.append(
        Case(
            f"cast_special_to_{to}",
            arrays((9, 33), gen=special),
            lambda mx, x, to=to: x.astype(dtype(mx, to)),
            lambda x: x,
            FLOATS,
            layouts=("contiguous",),
            exact=True,
            tags=("cast", "special"),
        )
    )
CASES += [
    # Ties, subnormals and overflow of the narrow types.
    Case(
        "cast_ties",
        lambda rng, dtype: [
            Raw(
                np.concatenate(
                    [
                        np.arange(2048, 4200) + 0.0,
                        np.arange(-600, 600) * 2.0**-25,
                        np.array([65504, 65519.99, 65520, 7e4, 3.4e38, -7e4]),
                        1 + np.arange(600) * 2.0**-11,
                    ]
                ).astype(np.float32)
            )
        ],
        lambda mx, x: [x.astype(mx.float16), x.astype(mx.bfloat16)],
        lambda x: [x, x],
        ("float32",),
        exact=True,
        layouts=("contiguous",),
        tags=("cast",),
    ),
    Case(
        "cast_all_halves",
        lambda rng, dtype: [Raw(np.arange(65536).astype(np.uint16))],
        lambda mx, x: [
            mx.view(x, mx.float16).astype(mx.float32),
            mx.view(x, mx.float16).astype(mx.bfloat16),
        ],
        lambda x: [x.view(np.float16).astype(np.float64)] * 2,
        ("uint16",),
        exact=True,
        layouts=("contiguous",),
        tags=("cast",),
    ),
    Case(
        "cast_integers_wrap",
        arrays((9, 33), gen=wide),
        lambda mx, x: [x.astype(mx.int8), x.astype(mx.uint16), x.astype(mx.int64)],
        lambda x: [x.astype(np.int8), x.astype(np.uint16), x.astype(np.int64)],
        INTS,
        exact=True,
        layouts=("contiguous", "stepped"),
        tags=("cast",),
    ),
]

for n in (0, 1, 2, 3, 5, 31, 33, 65537):
    CASES.append(
        Case(
            f"copy_size_{n}",
            arrays((n,), gen=wide),
            lambda mx, x: [mx.contiguous(x[::-1]), mx.array(x)],
            lambda x: [x[::-1], x],
            ("bool", "uint8", "bfloat16", "float32", "complex64"),
            exact=True,
            tags=("copy", "sizes"),
        )
    )
