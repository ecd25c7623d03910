"""The conversion is lossless: MLX dequantizes to gguf's bits."""

import json

import gguf
import mlx.core as mx
import numpy as np
import pytest

import convert_smollm2


@pytest.fixture(scope="module")
def reader(gguf_file):
    return gguf.GGUFReader(gguf_file)


@pytest.fixture(scope="module")
def weights(model_folder):
    return mx.load(str(model_folder / "model.safetensors"))


def reference(tensor, fields) -> np.ndarray:
    """gguf's own f32 values, with llama.cpp's row order undone."""
    if tensor.tensor_type == gguf.GGMLQuantizationType.F32:
        return tensor.data
    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    heads = convert_smollm2.row_heads(tensor.name, fields)
    return values if heads is None else convert_smollm2.unpermute(values, heads)


def converted(weights, name: str, device) -> np.ndarray:
    if f"{name}.scales" not in weights:
        return np.array(weights[f"{name}.weight"])
    bits = 8 if name == "model.embed_tokens" else 4
    parts = [weights[f"{name}.{part}"] for part in ("weight", "scales", "biases")]
    with mx.stream(device):
        return np.array(mx.dequantize(*parts, group_size=32, bits=bits))


def test_every_tensor_is_converted(reader, weights):
    names = {convert_smollm2.mlx_name(t.name) for t in reader.tensors}
    assert names == {name.rsplit(".", 1)[0] for name in weights}


@pytest.mark.parametrize("device", [mx.cpu, mx.gpu], ids=["cpu", "gpu"])
def test_bits_equal_gguf(reader, weights, device):
    # The whole embedding and layers 0 and 29 on the GPU; everything on the CPU.
    for tensor in reader.tensors:
        name = convert_smollm2.mlx_name(tensor.name)
        if device == mx.gpu and ".layers." in name:
            if name.split(".")[2] not in ("0", "29"):
                continue
        want = reference(tensor, reader.fields)
        got = converted(weights, name, device)
        assert np.array_equal(got.view(np.uint32), want.view(np.uint32)), name


def test_unpermute_is_llama_cpps_inverse():
    heads, rows = 3, 24
    original = np.arange(rows * 2).reshape(rows, 2)
    # What llama.cpp's converter does to the rows of q and k.
    permuted = original.reshape(heads, 2, rows // heads // 2, 2)
    permuted = permuted.swapaxes(1, 2).reshape(rows, 2)
    assert np.array_equal(convert_smollm2.unpermute(permuted, heads), original)


@pytest.mark.parametrize(
    "text",
    [
        "The year 2024 had 366 days.",
        "  two  spaces\n\ttab\n\n",
        "naïve café, 東京, Привет, 🙂",
        "def f(x):\n    return x**2  # don't",
    ],
)
def test_tokenizer_round_trip(loaded, text):
    _, tokenizer = loaded
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    digits = [tokenizer.decode([i]).strip() for i in ids]
    assert all(len(d) == 1 for d in digits if d.isdigit())


def test_special_tokens(loaded, model_folder):
    _, tokenizer = loaded
    assert tokenizer.encode("<|im_start|>user<|im_end|>")[::2] == [1, 2]
    assert 2 in tokenizer.eos_token_ids
    config = json.loads((model_folder / "config.json").read_text())
    assert config["quantization"]["model.embed_tokens"]["bits"] == 8
