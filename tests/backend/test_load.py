"""Files as arrays: values, streams, errors. tests/chaos/test_card.py: their memory."""

import os

import mlx.core as mx
import numpy as np
import pytest

MIB = 1 << 20


def files(folder):
    """Arrays of all dtypes and sizes, in files of each kind."""
    rng = np.random.default_rng(1)
    arrays = {
        "large": rng.standard_normal((5000, 1201)).astype(np.float32),  # two blocks
        "half": rng.standard_normal((300, 7)).astype(np.float16),
        "bytes": rng.integers(0, 255, (1 << 16) + 3).astype(np.uint8),
        "small": np.arange(5, dtype=np.int64),
        "empty": np.zeros((0, 3), np.float32),
        "scalar": np.array(2.5, np.float32),
    }
    tensors = {k: mx.array(v) for k, v in arrays.items()}
    mx.save_safetensors(str(folder / "a.safetensors"), tensors)
    mx.savez(str(folder / "a.npz"), **tensors)
    for k, v in arrays.items():
        np.save(folder / f"{k}.npy", v)
    np.save(folder / "swapped.npy", arrays["large"].astype(">f4"))
    np.save(folder / "columns.npy", np.asfortranarray(arrays["large"]))
    return arrays


@pytest.mark.parametrize("stream", [None, mx.cpu, mx.gpu])
def test_values(tmp_path, stream):
    arrays = files(tmp_path)
    for kind in ("safetensors", "npz"):
        loaded = mx.load(str(tmp_path / f"a.{kind}"), stream=stream)
        assert loaded.keys() == arrays.keys()
        for k, v in loaded.items():
            assert v.shape == arrays[k].shape
            np.testing.assert_array_equal(np.array(v), arrays[k], err_msg=k)
    for k, v in arrays.items():
        got = mx.load(str(tmp_path / f"{k}.npy"), stream=stream)
        np.testing.assert_array_equal(np.array(got), v, err_msg=k)
    for k in ("swapped", "columns"):
        got = mx.load(str(tmp_path / f"{k}.npy"), stream=stream)
        np.testing.assert_array_equal(np.array(got), arrays["large"], err_msg=k)
    with open(tmp_path / "a.safetensors", "rb") as file:
        loaded = mx.load(file, stream=stream, format="safetensors")
        np.testing.assert_array_equal(np.array(loaded["large"]), arrays["large"])


def test_used_on_both_devices(tmp_path):
    arrays = files(tmp_path)
    loaded = mx.load(str(tmp_path / "a.safetensors"))
    on_cpu = mx.sum(loaded["large"], stream=mx.cpu)
    on_gpu = loaded["large"] * 2
    np.testing.assert_array_equal(np.array(on_gpu), arrays["large"] * 2)
    assert abs(on_cpu.item() - arrays["large"].sum(dtype=np.float64)) < 1
    on_cpu = loaded["half"].astype(mx.float32, stream=mx.cpu)
    np.testing.assert_array_equal(np.array(on_cpu), arrays["half"])


def test_a_file_that_was_cut(tmp_path):
    files(tmp_path)
    path = tmp_path / "large.npy"
    a = mx.load(str(path), stream=mx.gpu)
    other = mx.load(str(tmp_path / "half.npy"), stream=mx.gpu)
    os.truncate(path, 1 * MIB)
    with pytest.raises(RuntimeError, match="Unable to read"):
        mx.eval(a + 1)
    with pytest.raises(RuntimeError, match="Unable to read"):
        mx.eval(a)
    assert other.shape == (300, 7)
    mx.eval(other * 2)  # the stream lives


def test_gguf(tmp_path):
    rng = np.random.default_rng(2)
    arrays = {
        "large": rng.standard_normal((5000, 1201)).astype(np.float32),
        "half": rng.standard_normal((300, 7)).astype(np.float16),
        "numbers": rng.integers(-9, 9, 70000).astype(np.int32),
    }
    path = str(tmp_path / "a.gguf")
    mx.save_gguf(path, {k: mx.array(v) for k, v in arrays.items()})
    for stream in (None, mx.cpu, mx.gpu):
        for k, v in mx.load(path, stream=stream).items():
            np.testing.assert_array_equal(np.array(v), arrays[k], err_msg=k)
