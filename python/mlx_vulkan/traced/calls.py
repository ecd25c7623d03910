"""The library's side of traced steps: src/overrides/traced_calls.cpp."""

import struct

import mlx.core as mx

_NO_GRID = (1, 1, 1)


def call(part: str, inputs=(), scalars=(), shape=None, dtype=None) -> list[mx.array]:
    return mx.fast.precompiled_cuda_kernel(
        name="mlx_vulkan." + part,
        compiled_source=b"",
        inputs=inputs,
        output_shapes=[] if shape is None else [shape],
        output_dtypes=[] if dtype is None else [dtype],
        scalars=scalars,
        grid=_NO_GRID,
        threadgroup=_NO_GRID,
    )


def given(index: int, like: mx.array, open_length: bool = False) -> mx.array:
    """Stands for an input of the step; its axis -2 has any length if it is open."""
    (made,) = call(
        "given", scalars=[index, open_length], shape=like.shape, dtype=like.dtype
    )
    return made


def late(part: str, inputs, *scalars) -> mx.array:
    """What each step builds from its positions: src/ops/traced/late.h."""
    (made,) = call(part, inputs, scalars)
    return made


def bits(number: float) -> int:
    """A float32 as an int32, which mlx.core hands on."""
    return struct.unpack("i", struct.pack("f", number))[0]


def record(outputs: list[mx.array], n_given: int) -> int:
    (number,) = call("record", outputs, [n_given])
    return number.item()


def watch(number: int, arrays: list[mx.array]) -> bool:
    """Makes a step end when one of these arrays is replaced in place."""
    addresses = struct.pack(f"{len(arrays)}Q", *map(id, arrays))
    halves = struct.unpack(f"{2 * len(arrays)}i", addresses)
    size = mx.array.__basicsize__
    (can,) = call("watch", arrays, [number, size, *halves])
    return can.item()


def run(number: int, inputs, positions) -> list[mx.array]:
    """The outputs of a recorded step; empty if it does not hold for these."""
    return call("run", inputs, [number, *positions])


def begin(keys: mx.array) -> None:
    """Lets the GPU start with what the layer of these keys reads."""
    call("begin", [keys])


def forget(number: int) -> None:
    call("forget", scalars=[number])
