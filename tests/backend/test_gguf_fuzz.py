"""GGUF files that are cut or changed: an error or arrays, never more than that.

MLX_VK_TEST_FULL=1 runs the long count.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import mlx.core as mx

HERE = Path(__file__).resolve().parent
COUNT = 20_000 if os.environ.get("MLX_VK_TEST_FULL") == "1" else 1500


def sample(path: Path) -> bytes:
    mx.save_gguf(
        str(path),
        {"a.weight": mx.arange(64.0).reshape(8, 8), "b": mx.zeros((3,), mx.float16)},
        {
            "general.name": "x",
            "n": mx.array(7, mx.uint32),
            "list": ["one", "two", ""],
            "v": mx.arange(5),
        },
    )
    return path.read_bytes()


def change(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if not out:
            break
        at = rng.randrange(min(len(out), 700))  # the heads, mostly
        match rng.randint(0, 5):
            case 0:
                out[at] ^= 1 << rng.randint(0, 7)
            case 1:
                out[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
            case 2:  # a count or an offset
                value = rng.choice([0, 1, 2**31, 2**32 - 1, 2**62, 2**63, 2**64 - 1])
                out[at : at + 8] = value.to_bytes(8, "little")
            case 3:
                del out[rng.randrange(len(out)) :]
            case 4:
                del out[at : at + rng.randint(1, 16)]
            case 5:
                out[at:at] = rng.randbytes(rng.randint(1, 16))
    return bytes(out)


def fuzz(folder: str, seed: int, count: int) -> None:
    rng, path = random.Random(seed), Path(folder) / "x.gguf"
    data = sample(path)
    assert set(mx.load(str(path))) == {"a.weight", "b"}
    loaded = 0
    for i in range(count):
        path.write_bytes(change(rng, data))
        print(i, file=sys.stderr)
        try:
            arrays, _ = mx.load(str(path), return_metadata=True)
            mx.eval(list(arrays.values()))
            loaded += 1
        except (RuntimeError, ValueError) as error:
            assert len(str(error)) < 2000 and "std::" not in str(error), error
    print(loaded, count)


def test_damaged_files(tmp_path):
    code = f"import test_gguf_fuzz as t; t.fuzz({str(tmp_path)!r}, 1, {COUNT})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    loaded, count = map(int, done.stdout.split())
    # Most changes hit a name or a value; many must not.
    assert count == COUNT and count // 20 < loaded < count * 19 // 20
